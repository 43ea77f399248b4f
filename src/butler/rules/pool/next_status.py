"""What to do about one pool: from the pool and a view of the allocations to the pool's next status. Pure.

The caller promises one thing: the view is at least as new as the pool's `allocationsSeen`. From that follows what
makes the protocol safe: an allocation that an intent names and the view does not show is truly gone, and a grant
whose intent was dropped is in the view as Allocated.

An intent is a promise. It stays, with its range, until its allocation is seen Allocated, Released or gone; it is
never changed and never taken back, also when the pool was edited meanwhile. A controller that was frozen may still
be about to write that very grant, and only the allocation itself can tell whether it did.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import AllocationReason, Finalizer, PoolReason
from butler.api.networkpool import MOST_INTENTS, ExcludedAddress, Intent, NetworkPool, NetworkPoolStatus
from butler.api.objects import is_newer
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_range
from butler.ipam.capacity import Capacity, capacity_of
from butler.ipam.decide import AddressGrant, PoolDecision, Refusal, decide
from butler.ipam.granted import had_range
from butler.ipam.layout import InvalidPool, read_layout
from butler.rules.pool.conditions import CapacityCrossing, NotHandingOut, with_capacity, with_readiness
from butler.rules.pool.excluded_addresses import held_excluded
from butler.rules.pool.foreign_addresses import as_told, withheld
from butler.rules.pool.quota import beyond_quota
from butler.rules.pool.tenant_blocks import WAITING, is_waiting, read_requests, without_other_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime

    from butler.ipam.free_space import FreeSpace
    from butler.ipam.layout import PoolLayout
    from butler.ipam.requests import AddressRequest
    from butler.rules.pool.foreign_addresses import Shown
    from butler.rules.pool.holdings import Book
    from butler.rules.pool.quota import QuotaOf
    from butler.rules.pool.tenant_blocks import ReadRequests


@dataclass(frozen=True, slots=True)
class PoolView:
    """What the allocation cache says about one pool, at one moment."""

    waiting: Sequence[IPAllocation]
    """Those that may be granted something, see `is_waiting`."""
    leaving: Sequence[IPAllocation]
    """Released and being deleted: they go once the pool has taken note."""
    live: int
    """How many allocations of this pool hold addresses."""
    find: Callable[[str], IPAllocation | None]
    """The allocation with a UID, in whatever phase."""
    blocks_of: Callable[[str], Sequence[IPAllocation]] = lambda _: ()
    """What an unbuilt tenant, by its UID, asks for and holds, of whatever pool, see `is_block_of_a_tenant`."""
    quota_of: QuotaOf = lambda _: None
    """What bounds a request, by the ProviderConfig of its tenant; None where nothing does."""
    coming_back: Sequence[IPAllocation] = ()
    """Those that wait for addresses of this network that they had before, of whatever pool: the pool that they name may
    be gone, or have another network by now. With or without the finalizer."""
    unreadable: Collection[str] = ()
    """Names of allocations beside the pool that make no sense to us: they may hold or await anything."""
    foreign: Sequence[Shown] = ()
    """Addresses that Services of tenants show, and that the tenants do not hold."""


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The pool's next status, who is refused and why, and what else should follow."""

    status: NetworkPoolStatus
    granted: tuple[Intent, ...]
    refusals: tuple[Refusal, ...]
    notices: tuple[CapacityCrossing, ...]
    left_over: bool
    """More requests wait than one batch may carry."""
    next_notice: float | None
    """Seconds until a capacity event that is held back now may be sent."""
    awaited: bool
    """An allocation that was released waits for this status to record it."""
    next_refusal: float | None = None
    """Seconds until a request is refused whose tenant has not asked for its other block."""


def is_leaving(allocation: IPAllocation) -> bool:
    """Whether only the pool's acknowledgement keeps a released allocation from going."""
    return (
        allocation.status.phase is IPAllocationPhase.RELEASED
        and allocation.metadata.deletion_timestamp is not None
        and Finalizer.IP_ALLOCATION in allocation.metadata.finalizers
    )


def layout_of(
    pool: NetworkPool, excluded: Sequence[ExcludedAddress] | None = None
) -> tuple[PoolLayout | None, NotHandingOut | None]:
    """What a pool hands out, or why its spec makes no sense. `excluded`: None for what its status says."""
    try:
        return read_layout(pool.spec, pool.status.excluded_addresses if excluded is None else excluded), None
    except InvalidPool as invalid:
        problems = "; ".join(f"{problem.field}: {problem.message}" for problem in invalid.problems)
        return None, NotHandingOut(PoolReason.VALIDATION_FAILED, problems)


def open_intents(pool: NetworkPool, view: PoolView) -> tuple[Intent, ...]:
    """The intents that must not be dropped yet."""
    return tuple(
        intent
        for intent in pool.status.intents
        if is_promise(intent) and (intent.name in view.unreadable or not _is_settled(view.find(intent.uid)))
    )


def uncommitted(pool: NetworkPool, find: Callable[[str], IPAllocation | None]) -> list[tuple[IPAllocation, Intent]]:
    """The grants that stand in the pool and not in their allocations: those to carry out."""
    found = ((find(intent.uid), intent) for intent in pool.status.intents if is_promise(intent))
    return [(allocation, intent) for allocation, intent in found if allocation is not None and is_waiting(allocation)]


def plan(
    pool: NetworkPool,
    layout: PoolLayout | None,
    book: Book | None,
    view: PoolView,
    *,
    obstacle: NotHandingOut | None,
    claimed_cidr: str | None,
    now: datetime,
) -> PoolPlan:
    """Decide for a pool. `obstacle`: why it may hand out nothing; without a layout there has to be one."""
    kept = open_intents(pool, view)
    promised = {intent.uid for intent in kept}
    asking = [allocation for allocation in view.waiting if allocation.metadata.uid not in promised]
    status = msgspec.structs.replace(
        pool.status,
        claimed_cidr=claimed_cidr,
        observed_generation=pool.metadata.generation or None,
        allocation_count=view.live + len(kept),
    )
    granted: tuple[Intent, ...] = ()
    capacity: Capacity | None = None
    left_over = False
    next_refusal: float | None = None
    if layout is None or book is None:
        assert obstacle is not None
        refusals = _refuse_all(asking, obstacle)
    else:
        with _Borrowed(book) as borrowed:
            for intent in kept:
                borrowed.take(_range_of(intent))
            if obstacle is not None:
                foreign = withheld(view.foreign, (), borrowed.free)
                refusals = _refuse_all(asking, obstacle)
                with borrowed.without(shown.range for shown in foreign):
                    capacity = capacity_of(borrowed.free, layout.total)
            else:
                read = read_requests(asking, layout, view.blocks_of, view.quota_of, now)
                aged, next_aged = with_aged(read.requests, pool.spec.keep_for_oldest_after_minutes, layout, now)
                read = replace(read, requests=aged)
                decision, over_quota, foreign = _decide_around_foreign(asking, read, borrowed, layout, book, kept, view)
                granted = tuple(_intent(grant, layout.family) for grant in decision.grants)
                refusals = (*read.refusals, *over_quota, *decision.refusals)
                next_refusal = min((wait for wait in (read.next_refusal, next_aged) if wait is not None), default=None)
                left_over = bool(decision.left_over)
                capacity = decision.capacity
        status = msgspec.structs.replace(
            status,
            total_ips=capacity.total,
            allocated_ips=capacity.allocated,
            available_ips=capacity.available,
            allocation_count=view.live + len(kept) + len(granted),
            largest_free_block=capacity.largest_free_block,
            fragmentation_percent=capacity.fragmentation_percent,
            excluded_addresses=_as_told(layout),
            foreign_addresses=as_told(foreign),
        )
    stranded = sorted(book.stranded.values()) if book else ()
    status = with_readiness(status, capacity, obstacle, stranded, held_excluded(book) if book else (), now)
    status, notices, next_notice = with_capacity(status, capacity, now)
    status = msgspec.structs.replace(
        status,
        intents=(*kept, *granted),
        allocations_seen=_seen(pool.status, view, {intent.uid for intent in granted}),
    )
    awaited = any(_is_news(allocation, pool.status.allocations_seen) for allocation in view.leaving)
    return PoolPlan(status, granted, refusals, notices, left_over, next_notice, awaited, next_refusal)


def _decide(
    requests: Sequence[AddressRequest],
    borrowed: _Borrowed,
    layout: PoolLayout,
    holders: Callable[[Range], Sequence[str]],
    most: int,
    coming_back: Sequence[IPAllocation],
) -> PoolDecision:
    """Decide, but first on those that come back from a backup: what they had is kept from all others meanwhile."""
    if not coming_back:
        return decide(requests, borrowed.free, layout, holders, most)
    first = decide([request for request in requests if request.had], borrowed.free, layout, holders, most)
    granted = {grant.uid for grant in first.grants}
    kept: list[tuple[str, Range]] = [(grant.name, grant.range) for grant in first.grants]
    kept += [
        (allocation.metadata.name, had[1])
        for allocation in coming_back
        if allocation.metadata.uid not in granted
        and (had := had_range(allocation)) is not None
        and had[0] is layout.family
    ]
    others = [request for request in requests if not request.had]

    def all_holders(wanted: Range) -> Sequence[str]:
        return [*holders(wanted), *(name for name, addresses in kept if addresses.overlaps(wanted))]

    with borrowed.without(addresses for _, addresses in kept):
        then = decide(others, borrowed.free, layout, all_holders, 0 if first.left_over else most - len(granted))
    return PoolDecision(
        grants=(*first.grants, *then.grants),
        refusals=(*first.refusals, *then.refusals),
        left_over=(*first.left_over, *then.left_over),
        capacity=then.capacity,
    )


def only_forgets_intents(before: NetworkPoolStatus, made: PoolPlan) -> bool:
    """Whether the one thing to write is that grants were carried out, which may wait for the next occasion."""
    after = made.status
    return (
        not made.awaited
        and before == msgspec.structs.replace(after, intents=before.intents, allocations_seen=before.allocations_seen)
        and set(after.intents) < set(before.intents)
    )


def _is_settled(allocation: IPAllocation | None) -> bool:
    return allocation is None or allocation.status.phase not in WAITING


def _seen(status: NetworkPoolStatus, view: PoolView, granted: set[str]) -> str | None:
    """The version that every later view must have reached: that of each allocation this status speaks of."""
    newest = status.allocations_seen
    accounted = [view.find(intent.uid) for intent in status.intents]
    accounted += [allocation for allocation in view.waiting if allocation.metadata.uid in granted]
    accounted += view.leaving
    for allocation in accounted:
        if allocation is not None and _is_news(allocation, newest):
            newest = allocation.metadata.resource_version
    return newest


def _is_news(allocation: IPAllocation, seen: str | None) -> bool:
    return seen is None or is_newer(allocation.metadata.resource_version, seen)


def _intent(grant: AddressGrant, family: Family) -> Intent:
    return Intent(
        uid=grant.uid,
        name=grant.name,
        start_address=address_text(grant.range.first, family),
        end_address=address_text(grant.range.last, family),
    )


def _holders(book: Book, intents: Sequence[Intent], foreign: Sequence[Shown]) -> Callable[[Range], Sequence[str]]:
    """Who holds addresses, is about to, or shows them without holding them."""
    promised = [(intent.name, _range_of(intent)) for intent in intents]
    promised += [(shown.holder, shown.range) for shown in foreign]
    return lambda wanted: [*book.holders(wanted), *(name for name, promise in promised if promise.overlaps(wanted))]


def with_aged(
    requests: Sequence[AddressRequest], minutes: int | None, layout: PoolLayout, now: datetime
) -> tuple[list[AddressRequest], float | None]:
    """The requests, with those marked that space is kept for, and seconds until the next one is.

    A request that the pool could not hold when empty would keep everyone waiting for nothing.
    """
    if minutes is None:
        return list(requests), None
    longest = max(piece.size for piece in layout.usable)
    marked: list[AddressRequest] = []
    waits: list[float] = []
    for request in requests:
        left = minutes * 60 - (now - request.created).total_seconds()
        could_be_met = request.pinned is None and request.count <= longest
        if could_be_met and left > 0:
            waits.append(left)
        marked.append(replace(request, aged=could_be_met and left <= 0))
    return marked, min(waits, default=None)


def _decide_around_foreign(
    asking: Sequence[IPAllocation],
    read: ReadRequests,
    borrowed: _Borrowed,
    layout: PoolLayout,
    book: Book,
    kept: Sequence[Intent],
    view: PoolView,
) -> tuple[PoolDecision, list[Refusal], list[Shown]]:
    """The decision, refusals because of quotas, and the addresses that Services show and that are handed out to no one.

    What a tenant shows and asks for is free for it alone. Whether it gets it is known only when all is decided: where
    it does not, because of its quota or another block of it, the decision is made again with that address kept back.
    """
    takers = asking
    while True:
        foreign = withheld(view.foreign, takers, borrowed.free)
        with borrowed.without(shown.range for shown in foreign):
            decision, over_quota = _decide_within_quotas(
                read,
                borrowed,
                layout,
                _holders(book, kept, foreign),
                MOST_INTENTS - len(kept),
                view.coming_back,
            )
        granted = {grant.uid for grant in decision.grants}
        takers = [request for request in takers if request.metadata.uid in granted]
        if withheld(view.foreign, takers, borrowed.free) == foreign:
            return decision, over_quota, foreign


def _decide_within_quotas(
    read: ReadRequests,
    borrowed: _Borrowed,
    layout: PoolLayout,
    holders: Callable[[Range], Sequence[str]],
    most: int,
    coming_back: Sequence[IPAllocation],
) -> tuple[PoolDecision, list[Refusal]]:
    """The decision, and the refusals of requests that each fit into a quota, but not together."""
    requests = {request.uid: request for request in read.requests}
    refusals: list[Refusal] = []
    while True:
        decision = _decide(list(requests.values()), borrowed, layout, holders, most, coming_back)
        beyond = beyond_quota(decision.grants, requests, read.quotas)
        if not beyond:
            return decision, refusals
        for uid, why in beyond.items():
            refused = requests.pop(uid)
            refusals.append(Refusal(uid, refused.name, *why))
            if refused.tenant is not None:
                requests = without_other_blocks(requests, refused.tenant.uid, f"{refused.name} {why[1]}")


def _as_told(layout: PoolLayout) -> tuple[ExcludedAddress, ...]:
    return tuple(
        ExcludedAddress(address=address_text(address.addresses.first, layout.family), reason=address.description)
        for address in layout.excluded
    )


def _refuse_all(asking: Sequence[IPAllocation], obstacle: NotHandingOut) -> tuple[Refusal, ...]:
    return tuple(
        Refusal(
            uid=allocation.metadata.uid,
            name=allocation.metadata.name,
            reason=AllocationReason.POOL_NOT_READY,
            message=f"NetworkPool {allocation.spec.pool_ref.name} hands out nothing: {obstacle.message}",
        )
        for allocation in asking
    )


def no_such_pool(allocation: IPAllocation) -> Refusal:
    """The refusal of a request whose pool does not exist."""
    name, namespace = allocation.spec.pool_ref.name, allocation.metadata.namespace
    return Refusal(
        uid=allocation.metadata.uid,
        name=allocation.metadata.name,
        reason=AllocationReason.POOL_NOT_FOUND,
        message=f"there is no NetworkPool {name} in namespace {namespace}:"
        " create it, or delete this request and name another pool",
    )


def intent_range(intent: Intent) -> tuple[Family, Range]:
    """What an intent grants. Raises BadAddress for one that was edited into nonsense."""
    return parse_range(intent.start_address, intent.end_address)


def is_promise(intent: Intent) -> bool:
    """Whether an intent promises anything; no process can carry out one that cannot be read."""
    try:
        intent_range(intent)
    except BadAddress:
        return False
    return True


def _range_of(intent: Intent) -> Range:
    return intent_range(intent)[1]


class _Borrowed:
    """A book's free space with promised ranges taken out of it, for as long as a decision lasts."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._taken: list[Range] = []

    def __enter__(self) -> _Borrowed:
        # Once: a book that cannot trust its sums makes a new one each time it is asked.
        self.free = self._book.free
        return self

    def take(self, promised: Range) -> None:
        for part in self._parts(promised):
            self.free.take(part)
            self._taken.append(part)

    @contextmanager
    def without(self, ranges: Iterable[Range]) -> Iterator[None]:
        """Take these out, too, for as long as a part of the decision lasts."""
        before = len(self._taken)
        for addresses in ranges:
            self.take(addresses)
        yield
        while len(self._taken) > before:
            self.free.give(self._taken.pop())

    def _parts(self, promised: Range) -> Iterator[Range]:
        """What of a promise is still free: all of it, unless a user edited a status by hand."""
        for part in self._book.inside(promised):
            if self.free.is_free(part):
                yield part
            else:
                yield from _free_pieces(self.free, part)

    def __exit__(self, *_: object) -> None:
        for part in self._taken:
            self.free.give(part)


def _free_pieces(free: FreeSpace, part: Range) -> Iterator[Range]:
    address = part.first
    while address <= part.last:
        taken = free.first_taken(Range(address, part.last))
        if taken is None:
            yield Range(address, part.last)
            return
        if taken > address:
            yield Range(address, taken - 1)
        address = taken + 1
