"""A tenant, its pools and a MetalLB as plain values, with the decisions of the controller applied as it applies them.

Nothing fails and nothing is late here: this is about whether the decisions, one after the other, come to a good end.
A drain is one step. What must never happen is checked where it would happen; `World.come_to_rest` says the rest.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationType
from butler.ipam.addresses import Family, Range, address_text
from butler.rules.loadbalancer.growth import grow
from butler.rules.loadbalancer.idleness import due, idle_marks, still_idle, when_idle_changes
from butler.rules.loadbalancer.policy import LoadBalancerPolicy
from butler.rules.loadbalancer.usage import asked_count, granted_range, is_growth, usage_of
from butler.rules.tenant.address_requests import further_names
from unit.controllers.tenantcluster.values import NOW, allocation, cluster, pool
from unit.rules.loadbalancer.balancers import GRACE

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool
    from butler.ipam.free_space import FreeSpace
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.usage import Usage

POOLS = ("vlan40", "vlan41")
BASES = {"vlan40": 10 << 24 | 40 << 16, "vlan41": 10 << 24 | 41 << 16}
SIZE = 16
MOST_ROUNDS = 300


class Held(NamedTuple):
    """A Service as the tenant has it; `port` decides whether it can share an address with another."""

    service: Balancer
    port: int = 80


class World:
    """All there is. Every method that ends in a look leaves the controller informed, as watches do."""

    def __init__(self, free: dict[str, FreeSpace], initial: int, pinned: bool) -> None:
        self.free = free
        self.policy = LoadBalancerPolicy(elastic=True, increment=1, pools=POOLS)
        self.allocations: dict[str, IPAllocation] = {}
        self.services: dict[str, Held] = {}
        self.now: datetime = NOW
        self.idle_since: dict[str, datetime] = {}
        self.actions = 0
        self.last_used: dict[str, datetime] = {}
        self.others: list[tuple[str, Range]] = []
        self._number = 0
        self._stays: set[str] = set()
        for name, wanted, by_hand in (("web-lb", initial, False), ("web-pinned", 2 if pinned else 0, True)):
            self._begin_with(name, wanted, by_hand)
        self.pools = self._show()

    def _begin_with(self, name: str, count: int, by_hand: bool) -> None:
        found = self.free[POOLS[0]].best_fit(count) if count else None
        if found is None:
            return
        ends = (address_text(found.first, Family.V4), address_text(found.last, Family.V4))
        first = allocation(name, "loadbalancer", count, pinned=ends if by_hand else None, growth=by_hand)
        self.allocations[name] = self._granted(first, found)
        self._stays.add(name)

    # What others do.

    def others_take(self, name: str, count: int) -> None:
        found = self.free[name].best_fit(count)
        if found is not None:
            self.free[name].take(found)
            self.others.append((name, found))

    def others_give_back(self, index: int) -> None:
        if self.others:
            name, found = self.others.pop(index % len(self.others))
            self.free[name].give(found)

    def pass_(self, time: timedelta) -> None:
        self._note_use()
        self.now += time
        self._note_use()

    def answer(self) -> bool:
        """The pools look at requests, oldest first, and then show what they have left."""
        before = dict(self.allocations)
        for name, request in self.allocations.items():
            if request.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED):
                found = self.free[request.spec.pool_ref.name].best_fit(asked_count(request))
                self.allocations[name] = self._granted(request, found) if found else _failed(request)
        shown, self.pools = self.pools, self._show()
        return before != self.allocations or shown != self.pools

    def _granted(self, request: IPAllocation, found: Range) -> IPAllocation:
        self.free[request.spec.pool_ref.name].take(found)
        status = msgspec.structs.replace(
            request.status,
            phase=IPAllocationPhase.ALLOCATED,
            start_address=address_text(found.first, Family.V4),
            end_address=address_text(found.last, Family.V4),
        )
        return msgspec.structs.replace(request, status=status)

    def _show(self) -> dict[str, NetworkPool]:
        return {name: pool(name, free=space.largest) for name, space in self.free.items()}

    # MetalLB.

    def serve(self) -> bool:
        """Every Service that can have an address gets the first that it can have."""
        changed = False
        for name, held in self.services.items():
            if not held.service.addresses and (address := self._address_for(held)) is not None:
                self.services[name] = held._replace(service=held.service._replace(addresses=(address,)))
                changed = True
        self._note_use()
        return changed

    def _address_for(self, held: Held) -> str | None:
        service = held.service
        if service.class_name or service.asks_pool not in (None, "default-pool") or "IPv4" not in service.families:
            return None
        if len(service.families) > 1 and service.family_policy == "RequireDualStack":
            return None
        ours = [
            address_text(number, Family.V4) for found in self.ranges() for number in range(found.first, found.last + 1)
        ]
        return next((ask for ask in service.asks or ours if ask in ours and self._can_have(held, ask)), None)

    def _can_have(self, held: Held, address: str) -> bool:
        there = [service for service in self.services.values() if address in service.service.addresses]
        key = held.service.sharing_key
        return not there or (
            key is not None and all(item.service.sharing_key == key and item.port != held.port for item in there)
        )

    def _note_use(self) -> None:
        found = self.usage()
        for block in found.blocks:
            if block.claimed or block.allocation.metadata.name not in self.last_used:
                self.last_used[block.allocation.metadata.name] = self.now

    # The controller.

    def usage(self) -> Usage:
        return usage_of(self.allocations.values(), [service.service for service in self.services.values()], self.now)

    def look(self) -> bool:
        """One reconcile; whether it did anything."""
        self._note_use()
        found, before = self.usage(), self.actions
        self.idle_since = still_idle(found, self.idle_since, self.now)
        for block in due(found, self.policy, self.now, GRACE):
            self._release(block.allocation)
        found = self.usage()
        growth = grow(found, self.policy, self.pools)
        for request in growth.drop:
            assert is_growth(request)
            del self.allocations[request.metadata.name]
            self.actions += 1
        names = further_names(cluster(), IPAllocationType.LOAD_BALANCER, self.allocations.__contains__)
        for ask, name in [(ask, next(names)) for ask in growth.ask]:
            self._number += 1
            self.allocations[name] = allocation(
                name, "loadbalancer", ask.count, of=ask.pool, growth=True, age=-self._number
            )
            self.actions += 1
        if growth.ask:
            self._check_asked(self.usage())
        for mark in idle_marks(found, self.idle_since, self.now, GRACE):
            status = msgspec.structs.replace(mark.block.allocation.status, idle_since=mark.since)
            changed = msgspec.structs.replace(mark.block.allocation, status=status)
            self.allocations[changed.metadata.name] = changed
        return self.actions != before

    def _check_asked(self, after: Usage) -> None:
        covered = after.free + after.under_way
        assert covered <= after.demand + self.policy.increment - 1, "demand is covered once, and by a step at most"
        if self.policy.most is not None:
            assert after.held + after.under_way <= self.policy.most, "within the quota"

    def _release(self, going: IPAllocation) -> None:
        name, found = going.metadata.name, granted_range(going)
        assert found is not None
        assert name not in self._stays, "what a cluster began with, or picked, stays"
        assert self.now - self.last_used[name] >= GRACE, "it was used within the grace time"
        assert self.usage().held - found.size >= self.policy.least
        del self.allocations[name], self.last_used[name]
        self.free[going.spec.pool_ref.name].give(found)
        self.actions += 1

    # The end.

    def come_to_rest(self) -> None:
        """Without interference, everything is done within bounds, and stays done."""
        self._go_on(timedelta(0))
        self._go_on(GRACE * 3)
        before = self.actions
        self._go_on(GRACE * 10)
        assert self.actions == before, "it grows and shrinks for ever"

    def _go_on(self, time: timedelta) -> None:
        until = self.now + time
        for _ in range(MOST_ROUNDS):
            if any([self.look(), self.answer(), self.serve()]):
                continue
            if self.now >= until:
                return
            moment = when_idle_changes(self.usage(), self.idle_since, self.now, GRACE)
            self.pass_(
                min(
                    until - self.now,
                    timedelta(minutes=10) if moment is None else moment - self.now + timedelta(seconds=1),
                )
            )
        raise AssertionError("it does not come to rest")

    def ranges(self) -> list[Range]:
        return sorted(found for text in self.allocations.values() if (found := granted_range(text)) is not None)


def _failed(request: IPAllocation) -> IPAllocation:
    status = msgspec.structs.replace(request.status, phase=IPAllocationPhase.FAILED)
    return msgspec.structs.replace(request, status=status)
