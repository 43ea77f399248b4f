"""A random history of Services and pools, and what MetalLB's rules make of it, step by step.

A history is data: steps that put or remove one Service or one pool. `Replay` plays it on MetalLB's decisions alone,
one Service at a time and without any server; a test plays the same steps on a server with a controller at work and
expects the same addresses after each. Whatever follows the same rules can be put in the controller's place.
Names grow with time, so that the order of names is the order of creation.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from butler.local.world.metallb_allocator import Allocator
from butler.local.world.metallb_pools import Pools, Unusable, configuration
from butler.local.world.metallb_service import converge, is_ours

Json = dict[str, Any]
NAMESPACE = "default"
KEYS = ("", "", "one", "two")
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
        Step("pool", "default-pool", pool("default-pool", ["10.0.0.2-10.0.0.4"])),
        Step("service", "s01", service("s01", [80], {"metallb.io/loadBalancerIPs": "10.0.0.4"})),
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
    services: dict[str, Json] = {}
    pools: dict[str, Json] = {}
    steps: list[Step] = []
    made = 0
    while len(steps) < length:
        turn = chance.random()
        if turn < 0.4 or not services:
            name = f"s{made:03}"
            made += 1
            services[name] = _random_service(chance, name)
            steps.append(Step("service", name, services[name]))
        elif turn < 0.55:
            name = chance.choice(sorted(services))
            del services[name]
            steps.append(Step("service", name, None))
        elif turn < 0.75:
            name = chance.choice(sorted(services))
            services[name] = _random_service(chance, name)
            steps.append(Step("service", name, services[name]))
        elif turn < 0.97 or not pools:
            # One pool gives by itself and one only when asked: among several of a kind MetalLB follows no order.
            name = chance.choice(("default-pool", "special"))
            lines = chance.sample(LINES, chance.randint(1, 2))
            asked_only = name == "special" or chance.random() < 0.1
            pools[name] = pool(name, lines, autoAssign=not asked_only, avoidBuggyIPs=chance.random() < 0.3)
            steps.append(Step("pool", name, pools[name]))
        else:
            name = chance.choice(sorted(pools))
            del pools[name]
            steps.append(Step("pool", name, None))
    return steps


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
        self._allocator = Allocator()
        self._pool_objects: dict[str, Json] = {}
        self._pools: Pools | None = None
        self._services: dict[str, Json] = {}

    def play(self, step: Step) -> dict[str, list[str]]:
        """Take one step; the addresses of all load balancers after it."""
        if step.kind == "pool":
            self._put(self._pool_objects, step)
            try:
                self._pools = configuration(self._pool_objects.values())
            except Unusable:
                return self.addresses()
            self._allocator.set_pools(self._pools)
            self._settle([*self._services])
        else:
            before = self._services.get(step.name, {})
            self._put(self._services, step)
            if step.obj is not None:
                kept = before.get("status", {}) if step.obj["spec"]["type"] == "LoadBalancer" else {}
                self._services[step.name] = {
                    **step.obj,
                    "spec": {**step.obj["spec"], "clusterIPs": ["10.96.0.9"]},
                    "status": kept,
                }
            self._settle([step.name])
        return self.addresses()

    def addresses(self) -> dict[str, list[str]]:
        return {
            name: [entry["ip"] for entry in each.get("status", {}).get("loadBalancer", {}).get("ingress") or ()]
            for name, each in self._services.items()
            if each["spec"]["type"] == "LoadBalancer"
        }

    @staticmethod
    def _put(objects: dict[str, Json], step: Step) -> None:
        if step.obj is None:
            objects.pop(step.name, None)
        else:
            objects[step.name] = step.obj

    def _settle(self, names: list[str]) -> None:
        if self._pools is None and not self._pool_objects:
            self._pools = {}
        waiting = self._in_turn(names)
        while waiting:
            name = waiting.pop(0)
            key = f"{NAMESPACE}/{name}"
            before = self._allocator.held_by(key)
            found = self._services.get(name)
            if found is None:
                self._allocator.unassign(key)
            elif is_ours(found):
                patch = converge(found, self._allocator).patch
                if patch is not None and "status" in patch:
                    self._services[name] = {**found, "status": patch["status"]}
            if before is not None and self._allocator.held_by(key) != before:
                waiting = self._in_turn([*self._services])

    def _in_turn(self, names: list[str]) -> list[str]:
        shown = self.addresses()
        return sorted(names, key=lambda name: (not shown.get(name), name))
