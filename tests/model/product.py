"""The model's decisions, made by Butler's own code: real pools and allocations in, the product's answer out.

What the search moves about are small values; for each decision they are turned into the objects that the controllers
work with, the pure part of the controller is asked (`plan`, and `decide` for an allocation's life), and its answer is
turned back. So a change of the product that breaks the protocol shows up in the search, with a story.

Address 1 of the model is 10.0.0.1 and so on. Versions are numbers from some large one, as negative ones stand for
"before the log" in the model.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import (
    IPAllocation,
    IPAllocationPhase,
    IPAllocationSpec,
    IPAllocationStatus,
    IPAllocationType,
    PinnedIPRange,
)
from butler.api.labels import Finalizer, PoolReason
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.networkpool import (
    AddressRange,
    NetworkPool,
    NetworkPoolSpec,
    NetworkPoolStatus,
    TenantAllocation,
)
from butler.api.networkpool import Intent as RealIntent
from butler.api.objects import key_of
from butler.controllers.ipallocation import controller as ipallocation
from butler.ipam.layout import read_layout
from butler.rules.pool import next_status as planning
from butler.rules.pool.conditions import NotHandingOut
from butler.rules.pool.holdings import Book, LiveAllocations, holding_of
from model.deciding import ALLOCATED, NOTHING_SEEN, PENDING, Allocation, Intent, Pool, View

if TYPE_CHECKING:
    from collections.abc import Iterator

CIDR: Final = "10.0.0.0/29"
FIRST_VERSION: Final = 5000
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


class Product:
    """Butler's answers. Compared by identity, as what it answers depends on the code that is loaded.

    `asks`: what the allocations of each name ask for, either a number of addresses or a mask of exactly these.
    """

    def __init__(self, *asks: int | str) -> None:
        self._asks = asks or (1, 1)

    # The questions of the model.

    def reserves(self, pool: Pool, view: View) -> Iterator[Pool]:
        status = self._plan(pool, view).status
        after = pool._replace(
            intents=tuple(sorted(_intent(intent) for intent in status.intents)),
            seen=NOTHING_SEEN if status.allocations_seen is None else int(status.allocations_seen) - FIRST_VERSION,
        )
        if after != pool:
            yield after

    def commits(self, pool: Pool, view: View) -> Iterator[Intent]:
        real = self._view(view)
        for intent in planning.open_intents(_pool(pool), real):
            allocation = real.find(intent.uid)
            assert allocation is not None
            if allocation.metadata.deletion_timestamp is None:
                yield _intent(intent)

    def refusals(self, pool: Pool, view: View) -> Iterator[int]:
        pending = {allocation.uid for allocation in view if allocation is not None and allocation.phase == PENDING}
        refused = {int(refusal.uid) for refusal in self._plan(pool, view).refusals}
        yield from sorted(pending & refused)

    def releases(self, view: View) -> Iterator[int]:
        for allocation in self._allocations(view):
            # Whether the pool has taken note matters only later.
            if isinstance(_next_step(allocation, None), ipallocation.Release):
                yield int(allocation.metadata.uid)

    def leaves(self, pool: Pool | None, view: View) -> Iterator[int]:
        real = None if pool is None else _pool(pool)
        for allocation in self._allocations(view):
            if isinstance(_next_step(allocation, real), ipallocation.RemoveFinalizer):
                yield int(allocation.metadata.uid)

    def may_go(self, pool: Pool, view: View) -> bool:
        real = self._view(view)
        return real.live == 0 and not planning.open_intents(_pool(pool), real)

    def fits(self, uid: int, free: int) -> bool:
        asked = self._asks[uid % len(self._asks)]
        if isinstance(asked, str):
            mask = int(asked, 2)
            return free & mask == mask
        run = (1 << asked) - 1
        return any(free & run << bit == run << bit for bit in range(free.bit_length()))

    # The product.

    def _plan(self, pool: Pool, view: View) -> planning.PoolPlan:
        real, real_view = _pool(pool), self._view(view)
        layout = read_layout(real.spec)
        held = [
            (allocation.metadata.uid, holding)
            for allocation in self._allocations(view)
            if (holding := holding_of(allocation)) is not None
        ]
        return planning.plan(
            real,
            layout,
            Book(key_of(real), layout, LiveAllocations(held)),
            real_view,
            obstacle=NotHandingOut(PoolReason.DELETING, "it is being deleted") if pool.deleting else None,
            claimed_cidr=CIDR,
            now=NOW,
        )

    def _view(self, view: View) -> planning.PoolView:
        allocations = self._allocations(view)
        by_uid = {allocation.metadata.uid: allocation for allocation in allocations}
        return planning.PoolView(
            waiting=[allocation for allocation in allocations if planning.is_waiting(allocation)],
            leaving=[allocation for allocation in allocations if planning.is_leaving(allocation)],
            live=sum(allocation.status.phase is IPAllocationPhase.ALLOCATED for allocation in allocations),
            find=by_uid.get,
        )

    def _allocations(self, view: View) -> list[IPAllocation]:
        return [self._allocation(slot, each) for slot, each in enumerate(view) if each is not None]

    def _allocation(self, slot: int, allocation: Allocation) -> IPAllocation:
        asked = self._asks[slot]
        pinned = _ends(int(asked, 2)) if isinstance(asked, str) else None
        granted = _ends(allocation.address) if allocation.address else (None, None)
        return IPAllocation(
            metadata=ObjectMeta(
                name=f"request-{slot}",
                namespace="butler-system",
                uid=str(allocation.uid),
                resource_version=str(allocation.version + FIRST_VERSION),
                generation=1,
                creation_timestamp=NOW + timedelta(seconds=allocation.uid),
                deletion_timestamp=NOW if allocation.deleting else None,
                finalizers=(Finalizer.IP_ALLOCATION,),
            ),
            spec=IPAllocationSpec(
                pool_ref=LocalObjectReference(name="pool"),
                tenant_cluster_ref=NamespacedObjectReference(name="tenant", namespace="team"),
                type=IPAllocationType.NODES,
                count=None if isinstance(asked, str) else asked,
                pinned_range=None if pinned is None else PinnedIPRange(start_address=pinned[0], end_address=pinned[1]),
            ),
            status=IPAllocationStatus(
                phase=IPAllocationPhase(allocation.phase),
                start_address=granted[0],
                end_address=granted[1],
                allocated_count=allocation.address.bit_count() if allocation.phase == ALLOCATED else None,
                # Kept for audit for ever: the model's people delete it when they like.
                released_at=NOW if allocation.phase == IPAllocationPhase.RELEASED else None,
            ),
        )


def _next_step(allocation: IPAllocation, pool: NetworkPool | None) -> ipallocation.Step | None:
    return ipallocation.decide(allocation, None, pool, retention=timedelta(days=1), now=NOW)


def _pool(pool: Pool) -> NetworkPool:
    windows = [AddressRange(start=first, end=last) for first, last in _runs(pool.addresses)]
    return NetworkPool(
        metadata=ObjectMeta(
            name="pool",
            namespace="butler-system",
            uid=str(pool.uid),
            resource_version="1",
            generation=1,
            deletion_timestamp=NOW if pool.deleting else None,
            finalizers=(Finalizer.NETWORK_POOL,),
        ),
        spec=NetworkPoolSpec(cidr=CIDR, tenant_allocation=TenantAllocation(ranges=tuple(windows))),
        status=NetworkPoolStatus(
            claimed_cidr=CIDR,
            intents=tuple(
                RealIntent(uid=str(intent.uid), name="request", start_address=first, end_address=last)
                for intent in pool.intents
                for first, last in [_ends(intent.address)]
            ),
            allocations_seen=None if pool.seen == NOTHING_SEEN else str(pool.seen + FIRST_VERSION),
        ),
    )


def _intent(intent: RealIntent) -> Intent:
    first, last = (int(text.rpartition(".")[2]) for text in (intent.start_address, intent.end_address))
    return Intent(int(intent.uid), (1 << last) - (1 << (first - 1)))


def _ends(addresses: int) -> tuple[str, str]:
    """First and last address of a mask without gaps."""
    ((first, last),) = _runs(addresses)
    return first, last


def _runs(addresses: int) -> list[tuple[str, str]]:
    runs: list[tuple[int, int]] = []
    for bit in range(addresses.bit_length()):
        if addresses >> bit & 1:
            if runs and runs[-1][1] == bit:
                runs[-1] = (runs[-1][0], bit + 1)
            else:
                runs.append((bit + 1, bit + 1))
    return [(f"10.0.0.{first}", f"10.0.0.{last}") for first, last in runs]
