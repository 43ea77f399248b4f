"""A random history of Services and pools, and what MetalLB's rules make of it, step by step.

A history is data: steps that put or remove one Service or one pool. `Replay` plays it on MetalLB's decisions alone,
one Service at a time and without any server; a test plays the same steps on a server with a controller at work and
expects the same addresses after each. Whatever follows the same rules can be put in the controller's place: the
stand-in, or MetalLB itself.

MetalLB goes through Services that have equally many addresses in no order at all, and picks among several pools for
everyone as it comes. So a random history has no step whose outcome would depend on that: each is tried in several
orders, and left out where they disagree.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from typing import Any

from butler.local.world.metallb_allocator import Allocator, Counts
from butler.local.world.metallb_pools import Pools, UnusablePools, configuration
from butler.local.world.metallb_service import converge, forget, is_ours

Json = dict[str, Any]
NAMESPACE = "default"
KEYS = ("", "", "one", "two")
MOST = 8
LINES = ("10.0.0.0-10.0.0.2", "10.0.0.254-10.0.1.1", "10.0.2.8/31", "10.0.3.1/32", "10.0.2.9-10.0.2.11")


@dataclass(frozen=True)
class Step:
    """Put a Service or a pool as it is given here, or remove it."""

    kind: str
    name: str
    obj: Json | None

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.obj and (self.obj['metadata'].get('annotations'), self.obj['spec'])}"


def service(name: str, ports: list[int], annotations: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"app": "same"},
            "ports": [{"name": f"p{port}", "port": port, "protocol": "TCP"} for port in ports],
            **spec,
        },
    }


def pool(name: str, addresses: list[str], **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"addresses": addresses, **spec}}


def scripted() -> list[Step]:
    """The turns that people will see: full, freed, shrunk, moved, shared, asked for, unusable, all gone."""
    together = {"metallb.io/allow-shared-ip": "k"}
    return [
        Step("service", "s00", service("s00", [80])),  # before there is any pool
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.1-10.0.0.2"])),
        Step("service", "s01", service("s01", [80])),
        Step("service", "s02", service("s02", [80])),  # one too many
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.1-10.0.0.2", "10.0.0.9-10.0.0.9"])),
        Step("service", "s00", None),
        Step("service", "s03", service("s03", [80])),
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.2-10.0.0.4", "10.0.0.9-10.0.0.9"])),
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.2-10.0.0.4"])),
        Step("service", "s01", service("s01", [80], {"metallb.io/loadBalancerIPs": "10.0.0.3"})),
        Step("service", "s04", service("s04", [81], together)),
        Step("pool", "special", pool("special", ["10.0.2.0/30"], autoAssign=False, avoidBuggyIPs=True)),
        Step("service", "s04", service("s04", [81], {**together, "metallb.io/address-pool": "special"})),
        Step("service", "s05", service("s05", [82], {**together, "metallb.io/address-pool": "special"})),
        Step("service", "s05", service("s05", [81], {**together, "metallb.io/address-pool": "special"})),
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.2-10.0.0.4"], autoAssign=False)),
        Step("service", "s06", service("s06", [80])),
        Step("pool", "default-pool", pool("default-pool", ["10.0.2.0-10.0.2.9"])),  # unusable: both have them
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.3-10.0.0.4"])),
        Step("service", "s02", service("s02", [80], type="ClusterIP")),
        Step("service", "s07", service("s07", [80], loadBalancerClass="example.com/other")),
        Step("pool", "special", None),
        Step("pool", "default-pool", None),
    ]


def random_steps(seed: int, length: int) -> list[Step]:
    """The same steps for the same seed."""
    chance = random.Random(seed)
    replay = Replay()
    steps: list[Step] = []
    made = 0
    while len(steps) < length:
        step = _random_step(chance, replay, f"s{made:03}")
        if depends_on_order(replay, step):
            continue
        made += step.name == f"s{made:03}"
        replay.play(step)
        steps.append(step)
    return steps


def depends_on_order(replay: Replay, step: Step) -> bool:
    """Whether the addresses after a step hang on the order in which equal Services are gone through."""
    outcomes = []
    for order in range(6):
        other = copy.deepcopy(replay)
        other.order = random.Random(order)
        outcomes.append(other.play(step))
    return any(outcome != outcomes[0] for outcome in outcomes)


def _random_step(chance: random.Random, replay: Replay, fresh: str) -> Step:
    turn = chance.random()
    services, pools = sorted(replay.services), sorted(replay.pools)
    if (turn < 0.4 and len(services) < MOST) or not services:
        return Step("service", fresh, _random_service(chance, fresh))
    if turn < 0.55:
        return Step("service", chance.choice(services), None)
    if turn < 0.75:
        name = chance.choice(services)
        return Step("service", name, _random_service(chance, name))
    if turn < 0.97 or not pools:
        # One pool gives by itself and one only when asked.
        name = chance.choice(("default-pool", "special"))
        lines = chance.sample(LINES, chance.randint(1, 2))
        asked_only = name == "special" or chance.random() < 0.1
        return Step("pool", name, pool(name, lines, autoAssign=not asked_only, avoidBuggyIPs=chance.random() < 0.3))
    return Step("pool", chance.choice(pools), None)


def _random_service(chance: random.Random, name: str) -> Json:
    annotations: Json = {}
    if key := chance.choice(KEYS):
        annotations["metallb.io/allow-shared-ip"] = key
    spec: Json = {}
    turn = chance.random()
    if turn < 0.12:
        spec["loadBalancerIP"] = f"10.0.{chance.randint(0, 3)}.{chance.randint(0, 11)}"
    elif turn < 0.24:
        annotations["metallb.io/address-pool"] = chance.choice(("special", "default-pool", "none"))
    elif turn < 0.3:
        spec["type"] = "ClusterIP"
    if chance.random() < 0.2 and "type" not in spec:
        spec["externalTrafficPolicy"] = "Local"
    return service(name, sorted(chance.sample((80, 81, 82), chance.randint(1, 2))), annotations, **spec)


class Replay:
    """MetalLB's decisions on a history, without a server."""

    def __init__(self) -> None:
        self.services: dict[str, Json] = {}
        self.pools: dict[str, Json] = {}
        self.order: random.Random | None = None
        """Where Services stand equal, their order; None: that of their names."""
        self._allocator = Allocator()
        self._configured: Pools = {}
        self.refusal = ""
        """Why the pools as they are were not taken over."""

    def play(self, step: Step) -> dict[str, list[str]]:
        """Take one step; the addresses of all load balancers after it."""
        if step.kind == "pool":
            self._put(self.pools, step)
            try:
                self._configured = configuration(self.pools.values())
            except UnusablePools as why:
                self.refusal = str(why)
                return self.addresses()
            self.refusal = ""
            self._allocator.set_pools(self._configured)
            again = True
        else:
            before = self.services.get(step.name, {})
            self._put(self.services, step)
            if step.obj is not None:
                kept = before.get("status", {}) if step.obj["spec"]["type"] == "LoadBalancer" else {}
                self.services[step.name] = {
                    **step.obj,
                    "spec": {**step.obj["spec"], "clusterIPs": ["10.96.0.9"]},
                    "status": kept,
                }
            again = self._look_at(step.name)
        while again:
            asked = [self._look_at(name) for name in self._in_turn()]  # all of them, even if one asks for another pass
            again = any(asked)
        return self.addresses()

    def addresses(self) -> dict[str, list[str]]:
        return {
            name: [entry["ip"] for entry in service.get("status", {}).get("loadBalancer", {}).get("ingress") or ()]
            for name, service in self.services.items()
            if service["spec"]["type"] == "LoadBalancer"
        }

    def counts(self) -> dict[str, Counts]:
        """What the status of every pool says."""
        known = self._allocator.counts()
        return {name: known.get(name, Counts()) for name in self.pools}

    @staticmethod
    def _put(objects: dict[str, Json], step: Step) -> None:
        if step.obj is None:
            objects.pop(step.name, None)
        else:
            objects[step.name] = step.obj

    def _look_at(self, name: str) -> bool:
        """Bring one Service to where it should be; whether all are to be looked at after it."""
        found = self.services.get(name)
        if found is None:
            return forget(f"{NAMESPACE}/{name}", self._allocator)
        if not is_ours(found):
            return False
        outcome = converge(found, self._allocator)
        if outcome.patch is not None and "status" in outcome.patch:
            self.services[name] = {**found, "status": outcome.patch["status"]}
        return outcome.concerns_others

    def _in_turn(self) -> list[str]:
        shown = self.addresses()
        names = sorted(self.services)
        if self.order is not None:
            self.order.shuffle(names)
        return sorted(names, key=lambda name: -len(shown.get(name, ())))
