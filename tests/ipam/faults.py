"""What the proxy is told to do, as data: plans that are pure functions of a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fault_proxy import FAIR, Asked, Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from fault_proxy import Traffic


BAD_WRITES = (
    Fault("refuse", 409),
    Fault("refuse", 429),
    Fault("refuse", 500),
    Fault("refuse_after", 500),
    Fault("refuse_after", 504),
    Fault("cut_before"),
    Fault("cut_after"),
)
"""Conflict, overload, failure; and what was done though the client is told otherwise, or nothing."""
BAD_READS = (Fault("refuse", 429), Fault("refuse", 500), Fault("refuse", 503), Fault("cut_before"), Fault("cut_after"))


@dataclass(frozen=True)
class Unreliable:
    """A share of all requests goes wrong; watches are opened but live a short life.

    `silent` is the share of writes that are done and then never answered: only a time limit ends such a wait.
    """

    seed: int
    rate: float = 0.2
    silent: float = 0.0

    def fault(self, traffic: Traffic, number: int) -> Fault:
        rng = random.Random(f"{self.seed}:{traffic}:{number}")
        if traffic == "watch":
            return Fault("close", after=rng.randrange(5, 40))
        chance = rng.random()
        if traffic == "write" and chance > 1 - self.silent:
            return Fault("stall_after")
        if chance >= self.rate:
            return FAIR
        return rng.choice(BAD_WRITES if traffic == "write" else BAD_READS)


@dataclass(frozen=True)
class Stale:
    """Watches tell everything, but up to some seconds late."""

    seed: int
    seconds: float = 5.0

    def fault(self, traffic: Traffic, number: int) -> Fault:
        if traffic != "watch":
            return FAIR
        return Fault("lag", seconds=self.seconds, seed=self.seed * 1000 + number)


@dataclass(frozen=True)
class Confused:
    """Watches that end, forget, repeat themselves and change the order of their lines."""

    seed: int
    kinds: tuple[str, ...] = ("outdate", "duplicate", "replay", "reorder", "close", "cut_within", "refuse")

    def fault(self, traffic: Traffic, number: int) -> Fault:
        if traffic != "watch":
            return FAIR
        rng = random.Random(f"{self.seed}:{number}")
        kind = rng.choice(self.kinds)
        return Fault(
            kind,  # type: ignore[arg-type]
            code=410,
            seconds=0.03,
            after=rng.randrange(2, 12),
            lines=rng.randrange(10, 30),
            seed=rng.randrange(1 << 30),
        )


def on(*plurals: str, traffic: tuple[Traffic, ...], fault: Fault) -> Callable[[Asked], Fault | None]:
    """Aim one fault at some kinds of objects and requests."""
    return lambda asked: fault if asked.plural in plurals and asked.traffic in traffic else None
