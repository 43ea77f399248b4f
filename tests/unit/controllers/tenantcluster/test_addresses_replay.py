"""plan() again and again, against a small model of pools, with a view that lags: nothing is asked for twice, nothing
leaks, and where there is room the cluster ends with what it wants."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import ConditionType, Finalizer, Label
from butler.ipam.addresses import Family, address_text, parse_address
from butler.rules.tenant.addresses import plan
from unit.controllers.tenantcluster.values import HOME, NOW, UID, cluster, pool, provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.rules.tenant.addresses import Addresses

BASES = {"a": "10.40.0.0", "b": "10.41.0.0"}
NODES, BALANCERS = IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER
ON = provider(
    pools=({"name": "a", "priority": 1}, {"name": "b", "priority": 2}),
    gateway="10.40.0.1",
    balancers={"defaultPoolSize": 3},
)


@dataclass
class World:
    """Pools that grant from the front of one long run, and allocations as a server would keep them."""

    free: dict[str, int]
    replicas: int = 2
    lb_size: int | None = None
    allocations: dict[str, IPAllocation] = field(default_factory=dict)
    history: list[dict[str, IPAllocation]] = field(default_factory=lambda: [{}])
    given: dict[str, int] = field(default_factory=lambda: dict.fromkeys(BASES, 0))
    numbers: count[int] = field(default_factory=lambda: count(1))
    asked: int = 0
    peak: dict[IPAllocationType, int] = field(default_factory=lambda: {NODES: 5, BALANCERS: 3})

    def pools(self) -> Mapping[str, NetworkPool]:
        return {name: pool(name, f"{BASES[name]}/16", free=free) for name, free in self.free.items()}

    def put(self, each: IPAllocation | None, name: str) -> None:
        after = dict(self.allocations)
        after.pop(name, None)
        if each is not None:
            after[name] = msgspec.structs.replace(
                each, metadata=msgspec.structs.replace(each.metadata, resource_version=str(next(self.numbers)))
            )
        self.allocations = after
        self.history.append(after)

    # The controller.

    def look(self, lag: int) -> Addresses:
        view = self.history[max(0, len(self.history) - 1 - lag)]
        networking = {"lbPoolSize": self.lb_size} if self.lb_size else None
        wanted = cluster(replicas=self.replicas, networking=networking)
        self.peak[NODES] = max(self.peak[NODES], self.replicas)
        self.peak[BALANCERS] = max(self.peak[BALANCERS], self.lb_size or 0)
        found = plan(wanted, ON, self.pools(), view.values(), view.__contains__, HOME)
        for allocation in found.create:
            waits = [
                other
                for other in view.values()
                if other.spec.type is allocation.spec.type and other.status.phase in ("Pending", "Failed")
            ]
            assert not waits, "asked while something waits"
            assert allocation.metadata.labels[Label.TENANT_UID] == UID
            assert allocation.metadata.labels[Label.TENANT] == "web"
            assert allocation.metadata.finalizers == (Finalizer.IP_ALLOCATION,)
            assert allocation.spec.tenant_cluster_ref.name == "web"
            assert allocation.spec.count is not None
            if allocation.metadata.name not in self.allocations:
                meta = msgspec.structs.replace(
                    allocation.metadata, uid=f"u{next(self.numbers)}", creation_timestamp=NOW
                )
                self.put(msgspec.structs.replace(allocation, metadata=meta), allocation.metadata.name)
                self.asked += 1
        for allocation in found.drop:
            if self.allocations.get(allocation.metadata.name) == allocation:  # the server compares versions
                gone = msgspec.structs.replace(allocation.metadata, deletion_timestamp=NOW)
                self.put(msgspec.structs.replace(allocation, metadata=gone), allocation.metadata.name)
        return found

    # The pools and the life of allocations.

    def decide(self) -> None:
        for name, allocation in list(self.allocations.items()):
            status = allocation.status
            if allocation.metadata.deletion_timestamp is not None:
                released = msgspec.structs.replace(status, phase=IPAllocationPhase.RELEASED)
                is_released = status.phase is IPAllocationPhase.RELEASED
                self.put(None if is_released else msgspec.structs.replace(allocation, status=released), name)
            elif status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED):
                self._answer(allocation)

    def _answer(self, each: IPAllocation) -> None:
        of, size = each.spec.pool_ref.name, each.spec.count or 0
        if self.free[of] < size:
            conditions = with_condition(
                (), type=ConditionType.READY, status=False, reason="PoolExhausted", message="full", now=NOW
            )
            status = msgspec.structs.replace(each.status, phase=IPAllocationPhase.FAILED, conditions=conditions)
        else:
            first = parse_address(BASES[of])[1] + 10 + self.given[of]
            self.free[of] -= size
            self.given[of] += size
            status = msgspec.structs.replace(
                each.status,
                phase=IPAllocationPhase.ALLOCATED,
                start_address=address_text(first, Family.V4),
                end_address=address_text(first + size - 1, Family.V4),
            )
        if status != each.status:
            self.put(msgspec.structs.replace(each, status=status), each.metadata.name)

    # What has to be so.

    def held(self, kind: IPAllocationType) -> int:
        return sum(
            allocation.spec.count or 0
            for allocation in self.allocations.values()
            if allocation.spec.type is kind and allocation.status.phase is IPAllocationPhase.ALLOCATED
        )

    def check(self) -> None:
        for kind in (NODES, BALANCERS):
            live = [
                allocation
                for allocation in self.allocations.values()
                if allocation.spec.type is kind and allocation.status.phase is not IPAllocationPhase.RELEASED
            ]
            waiting = [allocation for allocation in live if allocation.status.phase is not IPAllocationPhase.ALLOCATED]
            assert len(waiting) <= 1, "asked twice"
            assert sum(allocation.spec.count or 0 for allocation in live) <= self.peak[kind], (
                "more than was ever wanted"
            )


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.integers(0, 4)),
        st.tuples(st.just("decide"), st.just(0)),
        st.tuples(st.just("replicas"), st.integers(1, 9)),
        st.tuples(st.just("lb"), st.integers(1, 9)),
        st.tuples(st.just("room in a"), st.integers(0, 6)),
        st.tuples(st.just("room in b"), st.integers(0, 6)),
    ),
    max_size=40,
)


@given(STEPS, st.integers(0, 12), st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_whatever_happens_nothing_is_asked_for_twice_and_room_is_used(
    steps: list[tuple[str, int]], a: int, b: int
) -> None:
    world = World({"a": a, "b": b})
    for step, number in steps:
        match step:
            case "look":
                world.look(number)
            case "decide":
                world.decide()
            case "replicas":
                world.replicas = number
            case "lb":
                world.lb_size = number
            case "room in a":
                world.free["a"] += number
            case _:
                world.free["b"] += number
        world.check()

    world.free = dict.fromkeys(world.free, 100)
    for _ in range(12):
        found = world.look(0)
        world.check()
        world.decide()
    assert found.blocked is None, found.blocked
    assert world.held(NODES) >= world.replicas
    assert world.held(BALANCERS) >= (world.lb_size or 1)
    before = world.asked
    assert not world.look(0).create
    assert not world.look(0).drop
    assert world.asked == before


@given(STEPS)
@settings(max_examples=100, deadline=None)
def test_a_cluster_that_waits_says_so_and_one_that_does_not_has_what_it_wants(steps: list[tuple[str, int]]) -> None:
    world = World({"a": 0, "b": 0})
    for step, number in steps:
        if step == "look":
            found = world.look(0)
            enough = world.held(NODES) >= world.replicas and world.held(BALANCERS) >= (world.lb_size or 1)
            assert (found.blocked is None) <= enough
            if not enough:
                assert found.blocked is not None
                assert found.blocked.waits
                assert found.blocked.message
        elif step == "decide":
            world.decide()
        elif step == "replicas":
            world.replicas = number
        elif step.startswith("room"):
            world.free[step[-1]] += number


def test_a_request_that_moves_is_not_asked_for_twice_by_a_view_that_sees_it_go_before_it_sees_it_come() -> None:
    world = World({"a": 2, "b": 0})
    world.look(0)
    world.decide()  # refused
    world.free["b"] = 100
    world.look(0)  # dropped: it can be had elsewhere
    world.decide()  # Released
    world.decide()  # gone
    world.look(1)  # still sees it Released
    world.look(1)  # sees it gone
    world.look(0)
    world.check()
