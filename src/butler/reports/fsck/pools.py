"""Pools against a recount, against what they promised, and against each other. Pure.

The recount is the allocator's own: the same `plan` that writes the counters, asked what it would write if no request
were waiting. A counter that is being written at this moment is recognized by the pool's version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType, PoolReason
from butler.api.objects import is_newer, key_of
from butler.ipam.addresses import BadAddress, Family, parse_network, range_text
from butler.ipam.layout import InvalidPool
from butler.reports.fsck.finding import Code, FsckFinding, FsckSeverity, LookAgain
from butler.reports.fsck.holdings import allocation_thing, pool_thing, tenants_of
from butler.rules.pool.foreign_addresses import shown_in
from butler.rules.pool.holdings import Book
from butler.rules.pool.next_status import PoolView, intent_range, is_promise, plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from butler.api.networkpool import Intent, NetworkPool, NetworkPoolStatus
    from butler.ipam.layout import PoolLayout
    from butler.reports.fsck.holdings import Books

COUNTERS: Final = {
    "total_ips": "totalIPs",
    "allocated_ips": "allocatedIPs",
    "available_ips": "availableIPs",
    "allocation_count": "allocationCount",
    "largest_free_block": "largestFreeBlock",
    "fragmentation_percent": "fragmentationPercent",
}
START: Final = "start the controllers (`butleradm doctor` tells what keeps them)"


def check_pools(books: Books, now: datetime, *, recount: bool = True) -> Iterator[FsckFinding]:
    """All findings about pools. Without `recount` (some allocation cannot be read) counters are left alone."""
    doubtful = {books.by_uid[uid].spec.pool_ref.name for uid in books.senseless}
    for pool in books.estate.pools:
        layout = books.layouts[pool.metadata.name]
        if isinstance(layout, InvalidPool):
            yield _invalid(pool, layout)
        elif _is_unseen(pool):
            yield _unseen(pool)
        elif recount and pool.metadata.name not in doubtful:
            yield from _counters(pool, layout, books, now)
        if seen_too_much(pool):
            yield _versions(pool)
        for intent in pool.status.intents:
            yield from _intent(pool, intent, books)
    yield from _overlaps(books)


def _invalid(pool: NetworkPool, invalid: InvalidPool) -> FsckFinding:
    problems = "; ".join(f"{problem.field}: {problem.message}" for problem in invalid.problems)
    name = pool.metadata.name
    return FsckFinding(
        FsckSeverity.ERROR,
        Code.POOL_INVALID,
        (pool_thing(pool),),
        problems,
        f"put it right with `butleradm pool edit {name}`; nothing is granted from it until then",
        pools=frozenset([name]),
    )


def _is_unseen(pool: NetworkPool) -> bool:
    seen = pool.status.observed_generation
    return pool.status.total_ips is None or (seen is not None and seen < pool.metadata.generation)


def _unseen(pool: NetworkPool) -> FsckFinding:
    seen = pool.status.observed_generation
    return FsckFinding(
        FsckSeverity.WARNING,
        Code.POOL_UNSEEN,
        (pool_thing(pool),),
        f"its status is of generation {seen or 'none'}, its spec of generation {pool.metadata.generation}",
        START,
        pools=frozenset([pool.metadata.name]),
        versions=(pool.metadata.resource_version,),
    )


def seen_too_much(pool: NetworkPool) -> bool:
    """Whether a pool's status is from another life, and it hands out nothing until that is put right.

    Every allocation that it takes into account was there before the status was written.
    """
    ready, seen = find_condition(pool.status.conditions, ConditionType.READY), pool.status.allocations_seen
    if ready is not None and ready.reason == PoolReason.VERSIONS_WENT_BACK:
        return True
    return seen is not None and (not seen.isdecimal() or is_newer(seen, pool.metadata.resource_version))


def _versions(pool: NetworkPool) -> FsckFinding:
    return FsckFinding(
        FsckSeverity.ERROR,
        Code.POOL_VERSIONS,
        (pool_thing(pool),),
        f"it has seen allocations up to version {pool.status.allocations_seen}, and is itself of version"
        f" {pool.metadata.resource_version}: its status is from a backup or another cluster, and it"
        " hands out nothing",
        f"the controllers set it back on a fresh list: --repair makes them look, else {START}",
        pools=frozenset([pool.metadata.name]),
        repair=LookAgain("NetworkPool", key_of(pool)),
    )


def recounted(pool: NetworkPool, layout: PoolLayout, books: Books, now: datetime) -> NetworkPoolStatus:
    """The status that the allocator would write now, if no request were waiting."""
    key = key_of(pool)
    view = PoolView(
        waiting=(),
        leaving=(),
        live=len(books.live.of(key)),
        find=books.by_uid.get,
        coming_back=[waits for waits in books.coming_back if waits.metadata.namespace == key.namespace],
        foreign=shown_in(pool),
    )
    book = Book(key, layout, books.live)
    return plan(pool, layout, book, view, obstacle=None, claimed_cidr=pool.status.claimed_cidr, now=now).status


def _counters(pool: NetworkPool, layout: PoolLayout, books: Books, now: datetime) -> Iterator[FsckFinding]:
    right = recounted(pool, layout, books, now)
    wrong = [
        f"{title} says {getattr(pool.status, field)}, a recount gives {getattr(right, field)}"
        for field, title in COUNTERS.items()
        if getattr(pool.status, field) != getattr(right, field)
    ]
    if wrong:
        yield FsckFinding(
            FsckSeverity.ERROR,
            Code.COUNTERS,
            (pool_thing(pool),),
            "; ".join(wrong),
            f"the controllers recount a pool whenever it changes: --repair makes them, else {START}",
            pools=frozenset([pool.metadata.name]),
            versions=(pool.metadata.resource_version,),
            repair=LookAgain("NetworkPool", key_of(pool)),
        )


def _intent(pool: NetworkPool, intent: Intent, books: Books) -> Iterator[FsckFinding]:
    name, pools = pool.metadata.name, frozenset([pool.metadata.name])
    promised = f"{intent.start_address}-{intent.end_address}"
    versions = (pool.metadata.resource_version,)
    if not is_promise(intent):
        yield FsckFinding(
            FsckSeverity.WARNING,
            Code.INTENT_WRONG,
            (pool_thing(pool),),
            f"it promises IPAllocation {intent.name} {promised}, which is no range",
            f"the controllers ignore it and drop it with their next write of the pool; {START} if they do not",
            pools,
            versions=versions,
            repair=LookAgain("NetworkPool", key_of(pool)),
        )
        return
    allocation = books.by_uid.get(intent.uid)
    if allocation is None:
        return  # gone: the next write of the pool forgets it
    holding = books.live.get(intent.uid)
    things, tenants = (pool_thing(pool), allocation_thing(allocation)), tenants_of(allocation)
    if holding is not None and (holding.family, holding.range) != intent_range(intent):
        yield FsckFinding(
            FsckSeverity.ERROR,
            Code.INTENT_WRONG,
            things,
            f"pool {name} granted {promised}, but the allocation holds {range_text(holding.range, holding.family)}",
            "a status was edited by hand: find out which of the two the tenant uses before anything else is changed",
            pools,
            tenants,
        )
    phase, leaving = allocation.status.phase, allocation.metadata.deletion_timestamp is not None
    if phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED) and not leaving:
        yield FsckFinding(
            FsckSeverity.WARNING,
            Code.INTENT_STUCK,
            things,
            f"pool {name} granted {promised}, but the allocation is still {phase}",
            f"the controllers finish it with the same range: {START}",
            pools,
            tenants,
            versions=(*versions, allocation.metadata.resource_version),
            repair=LookAgain("NetworkPool", key_of(pool)),
        )


def _overlaps(books: Books) -> Iterator[FsckFinding]:
    """Each pool against the one below it that reaches furthest: that names everyone, if not every pair."""
    networks = []
    for pool in books.estate.pools:
        try:
            family, network = parse_network(pool.spec.cidr)
        except BadAddress:
            continue  # said already
        if family is Family.V4:
            networks.append((network, pool))
    furthest: tuple[int, NetworkPool] | None = None
    for network, pool in sorted(networks, key=lambda pair: pair[0]):
        if furthest is not None and network.first <= furthest[0]:
            yield _overlap(furthest[1], pool)
        if furthest is None or network.last > furthest[0]:
            furthest = (network.last, pool)


def _overlap(one: NetworkPool, other: NetworkPool) -> FsckFinding:
    older, younger = sorted((one, other), key=_age)
    return FsckFinding(
        FsckSeverity.ERROR,
        Code.POOL_OVERLAP,
        (pool_thing(older), pool_thing(younger)),
        f"{older.spec.cidr} of {older.metadata.name} and {younger.spec.cidr} of {younger.metadata.name} overlap",
        "change or delete one of them; the younger one hands out nothing until then",
        pools=frozenset([older.metadata.name, younger.metadata.name]),
    )


def _age(pool: NetworkPool) -> tuple[float, str]:
    created = pool.metadata.creation_timestamp
    return (created.timestamp() if created else 0.0, pool.metadata.uid)
