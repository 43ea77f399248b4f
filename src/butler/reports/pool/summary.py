"""How a pool stands, counted anew from who holds what: how full, how scattered, and who holds most. Pure.

The numbers are the engine's own (`FreeSpace`, `Capacity`, the tiers), computed from the allocations and not read from
the pool's status: so a status that is wrong shows (`doubts`), and a pool that was not written yet can be asked too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from butler.ipam.addresses import range_text
from butler.ipam.capacity import THRESHOLDS, Capacity, capacity_of, tiers
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import InvalidPool
from butler.reports.pool.segments import HELD, Kind, segments_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import CapacityTier, NetworkPool
    from butler.ipam.layout import PoolLayout
    from butler.reports.pool.segments import PoolSegments


NOT_FREE = HELD | {Kind.RESERVED}
"""What is reserved among usable addresses is kept back because a Service shows it that may not have it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A pool that can be read: what it hands out, what is free of it, and its counters."""

    layout: PoolLayout
    free: FreeSpace
    capacity: Capacity

    @property
    def tier(self) -> CapacityTier | None:
        """The highest tier that is reached."""
        reached = [tier for tier, is_reached in tiers(self.capacity).items() if is_reached]
        return max(reached, key=lambda tier: THRESHOLDS[tier], default=None)


class CapacityTierMark(NamedTuple):
    """From how many addresses on a tier holds."""

    tier: CapacityTier
    percent: int
    addresses: int
    reached: bool


class Bucket(NamedTuple):
    """Holes of about one size: from a power of two to just below the next."""

    least: int
    most: int
    holes: int
    addresses: int


class Share(NamedTuple):
    """What a tenant holds of a pool."""

    tenant: str
    addresses: int
    allocations: int


@dataclass(frozen=True, slots=True)
class Summary:
    """All there is to say about one pool."""

    segments: PoolSegments
    standing: Standing | None
    """None for a pool that cannot be read: `segments.problems` says why."""
    tiers: tuple[CapacityTierMark, ...]
    holes: tuple[Bucket, ...]
    shares: tuple[Share, ...]
    """Largest first."""
    wrong: tuple[str, ...]
    """What should not be, in a sentence each."""
    doubts: tuple[str, ...]
    """Where the status does not say what the allocations add up to."""


def standing_of(pool: NetworkPool, allocations: Iterable[IPAllocation]) -> Standing:
    """How a pool stands. Raises `InvalidPool` for one that cannot be read."""
    shown = segments_of(pool, allocations)
    standing = _standing(shown)
    if standing is None:
        raise InvalidPool(shown.problems)
    return standing


def _standing(shown: PoolSegments) -> Standing | None:
    layout = shown.layout
    if layout is None:
        return None
    taken = [segment.range for segment in shown.segments if segment.kind in NOT_FREE]
    free = FreeSpace.without(layout.usable, taken)
    return Standing(layout, free, capacity_of(free, layout.total))


def summary_of(pool: NetworkPool, allocations: Iterable[IPAllocation]) -> Summary:
    """Everything about one pool, with the allocations of the whole estate."""
    shown = segments_of(pool, allocations)
    standing = _standing(shown)
    return Summary(
        segments=shown,
        standing=standing,
        tiers=tier_marks(standing.capacity) if standing else (),
        holes=buckets(standing.free) if standing else (),
        shares=shares(shown),
        wrong=tuple(_wrong(shown)),
        doubts=tuple(_doubts(pool, standing)) if standing else (),
    )


def tier_marks(capacity: Capacity) -> tuple[CapacityTierMark, ...]:
    reached = tiers(capacity)
    return tuple(
        CapacityTierMark(tier, percent, -(-percent * capacity.total // 100), reached[tier])
        for tier, percent in THRESHOLDS.items()
    )


def buckets(free: FreeSpace) -> tuple[Bucket, ...]:
    """The holes by size; sizes between the least and the largest that have no hole are there too, empty."""
    counted: dict[int, tuple[int, int]] = {}
    for length, holes in free.lengths().items():
        power = length.bit_length() - 1
        before = counted.get(power, (0, 0))
        counted[power] = (before[0] + holes, before[1] + holes * length)
    if not counted:
        return ()
    return tuple(
        Bucket(1 << power, (2 << power) - 1, *counted.get(power, (0, 0)))
        for power in range(min(counted), max(counted) + 1)
    )


def shares(shown: PoolSegments) -> tuple[Share, ...]:
    """Who holds how much, largest first."""
    addresses: dict[str, int] = {}
    names: dict[str, set[str]] = {}
    for segment in shown.segments:
        for holder in segment.holders:
            addresses[holder.tenant] = addresses.get(holder.tenant, 0) + segment.size
            names.setdefault(holder.tenant, set()).add(holder.allocation)
    found = [Share(tenant, count, len(names[tenant])) for tenant, count in addresses.items()]
    return tuple(sorted(found, key=lambda share: (-share.addresses, share.tenant)))


def _wrong(shown: PoolSegments) -> Iterable[str]:
    for problem in shown.problems:
        yield f"hands out nothing: {problem.field}: {problem.message}"
    for segment in shown.segments:
        if segment.held_by > 1:
            names = _names([one.allocation for one in segment.holders], segment.held_by)
            yield f"{range_text(segment.range, shown.family)} is held by {names}"
        if segment.stranded:
            place, keeper = range_text(segment.range, shown.family), segment.holders[0].allocation
            yield f"{place} is not handed out, but held by {keeper}"
        for holder in segment.holders:
            if holder.pool != shown.pool:
                addresses = range_text(segment.range, shown.family)
                yield f"{addresses} is held by {holder.allocation} of pool {holder.pool}"
    for lost in shown.elsewhere:
        yield f"{lost.allocation} of this pool holds {lost.start}-{lost.end}, which does not lie in {shown.cidr}"


def _doubts(pool: NetworkPool, standing: Standing) -> Iterable[str]:
    status, counted = pool.status, standing.capacity
    for what, said, found in (
        ("totalIPs", status.total_ips, counted.total),
        ("allocatedIPs", status.allocated_ips, counted.allocated),
        ("availableIPs", status.available_ips, counted.available),
        ("largestFreeBlock", status.largest_free_block, counted.largest_free_block),
        ("fragmentationPercent", status.fragmentation_percent, counted.fragmentation_percent),
    ):
        if said is not None and said != found:
            yield f"status.{what} is {said}, a recount gives {found}"


def _names(names: Sequence[str], count: int) -> str:
    more = f" and {count - 3} more" if count > 3 else ""
    return " and ".join(names[:3]) + more if count <= 2 else ", ".join(names[:3]) + more
