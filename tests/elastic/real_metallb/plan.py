"""What users do to the Services of a tenant, drawn from a seed: the same seed does the same things in the same order.

The plan knows what it has made and nothing of what came of it, so nothing that a server does, or how fast it is, can
change what is done next. It holds Services of all shapes that MetalLB tells apart: those that take what they get, those
that share, that name an address inside the pool or outside, that name the pool, that are of another class, that stop
being load balancers and become ones again, that change their mind, and that are deleted but held by a finalizer.
How many there are goes up and down, so that a tenant grows and shrinks; and quota and pool are at times too small.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ipam.history import Json

CREATE, DELETE, LET_GO, RETYPE, ASK, QUOTA, SQUAT, LEAVE, PAUSE = (
    "create", "delete", "let go", "retype", "ask", "quota", "squat", "leave", "pause",
)  # fmt: skip
FINALIZER = "example.com/hold"
CROWDS = (0, 0, 2, 4, 7, 11, 15, 19)
"""How many Services there are to be for a while."""
PACE = 0.12
"""Seconds between two things that are done, on average. MetalLB itself moves Services that it has just served when much
happens at once."""


class Act(NamedTuple):
    """One thing that is done, and how long nothing is done after it."""

    verb: str
    name: str = ""
    body: Json | None = None
    number: int | None = None
    pause: float = 0.0


@dataclass
class Made:
    """A Service of the plan."""

    name: str
    balances: bool = True
    held: bool = False
    """By a finalizer."""


@dataclass
class Plan:
    """An endless sequence of acts; `inside` are addresses that the tenant may come to hold, `grace` the grace time."""

    seed: int
    inside: Sequence[str]
    grace: float
    made: dict[str, Made] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    """Held by their finalizers."""
    squatters: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._count = 0
        self._crowd = 4

    def acts(self) -> Iterator[Act]:
        while True:
            self._crowd = self._random.choice(CROWDS)
            for _ in range(self._random.randint(12, 30)):
                yield from self._next()
            if self._random.random() < 0.4:
                yield Act(PAUSE, pause=self.grace * self._random.uniform(0.8, 2.2))

    def ending(self) -> Iterator[Act]:
        """Everything that was made goes."""
        yield Act(QUOTA, number=None)
        yield from (Act(LEAVE, name) for name in self.squatters)
        yield from (Act(LET_GO, name) for name in self.deleted)
        for made in self.made.values():
            yield Act(DELETE, made.name)
            if made.held:
                yield Act(LET_GO, made.name)

    # One step.

    def _next(self) -> Iterator[Act]:
        draw = self._random.random()
        if draw < 0.04:
            yield self._limit()
        elif draw < 0.08 and self.deleted:
            yield self._paced(Act(LET_GO, self.deleted.pop(0)))
        elif draw < 0.16 and self.made:
            yield self._change(self._random.choice(list(self.made.values())))
        elif self._wants_more():
            yield from self._come()
        elif self.made:
            yield from self._go()
        else:
            yield self._paced(Act(PAUSE))

    def _wants_more(self) -> bool:
        chance = 0.85 if len(self.made) < self._crowd else 0.15
        return self._random.random() < chance

    def _paced(self, act: Act) -> Act:
        return act._replace(pause=act.pause + self._random.expovariate(1 / PACE))

    def _limit(self) -> Act:
        if self._random.random() < 0.5:
            return self._paced(Act(QUOTA, number=self._random.choice((None, None, 4, 8, 14))))
        if self.squatters:
            return self._paced(Act(LEAVE, self.squatters.pop()))
        self._count += 1
        self.squatters.append(f"squat-{self._count}")
        return self._paced(Act(SQUAT, self.squatters[-1], number=self._random.choice((6, 10, 14))))

    def _change(self, made: Made) -> Act:
        if self._random.random() < 0.7:
            made.balances = not made.balances
            kind = "LoadBalancer" if made.balances else "ClusterIP"
            return self._paced(Act(RETYPE, made.name, {"spec": {"type": kind}}))
        wanted = self._random.choice((None, self._random.choice(self.inside)))
        return self._paced(Act(ASK, made.name, _noted({"metallb.io/loadBalancerIPs": wanted})))

    def _go(self) -> Iterator[Act]:
        burst = self._random.randint(3, 6) if self._random.random() < 0.08 else 1
        for _ in range(min(burst, len(self.made))):
            made = self.made.pop(self._random.choice(sorted(self.made)))
            if made.held:
                self.deleted.append(made.name)
            yield Act(DELETE, made.name)
        yield self._paced(Act(PAUSE))

    def _come(self) -> Iterator[Act]:
        draw = self._random.random()
        if draw < 0.08:
            yield from (self._make() for _ in range(self._random.randint(3, 6)))
        elif draw < 0.18:
            key = {"metallb.io/allow-shared-ip": f"key-{self._count}"}
            yield from (self._make(notes=key, port=port) for port in (80, 443, 8443)[: self._random.randint(2, 3)])
        elif draw < 0.26:
            yield self._make(notes={"metallb.io/loadBalancerIPs": self._random.choice(self.inside)})
        elif draw < 0.29:
            yield self._make(loadBalancerIP=f"192.0.2.{self._random.randint(1, 200)}")
        elif draw < 0.39:
            yield self._make(notes={"metallb.io/address-pool": "default-pool"})
        elif draw < 0.41:
            yield self._make(notes={"metallb.io/address-pool": "another"})
        elif draw < 0.44:
            yield self._make(loadBalancerClass="example.com/other")
        elif draw < 0.48:
            yield self._make(type="ClusterIP")
        else:
            yield self._make()
        yield self._paced(Act(PAUSE))

    def _make(self, *, notes: dict[str, str] | None = None, port: int = 80, **spec: str) -> Act:
        self._count += 1
        name = f"s{self._count}"
        held = self._random.random() < 0.12
        self.made[name] = Made(name, spec.get("type", "LoadBalancer") == "LoadBalancer", held)
        meta = {"name": name, "annotations": notes or {}, "finalizers": [FINALIZER] if held else []}
        wanted = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": port}], **spec}
        return Act(CREATE, name, {"metadata": meta, "spec": wanted})


def _noted(notes: dict[str, str | None]) -> Json:
    return {"metadata": {"annotations": notes}}
