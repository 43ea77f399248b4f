"""What is on record about the demand for a pool's addresses, read from its allocations. Pure.

The unit is an arrival: what one tenant was granted within an hour. A new cluster's two blocks come and go together,
and two of them do not tell more than one.

The record has gaps, and its readers must know them. An allocation that Butler released stays on record for a
retention time (24 h by default) and is then gone, grant and all; one that a person deleted is gone at once. So of
long ago only those are seen that are still held. Pinned blocks say nothing about demand: most were taken over from
before, many at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase
from butler.rules.allocation.held import granted_range, readable_range
from butler.rules.allocation.owner import recorded_owner, tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.ipam.addresses import Range

LONGEST = timedelta(days=90)
"""Demand of longer ago says little about tomorrow's."""
RETENTION = timedelta(hours=24)
"""How long a release stays on record, unless older ones show that it is longer."""
TOGETHER = timedelta(hours=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Blocks that one tenant was granted together."""

    age: float
    """Days ago."""
    sizes: tuple[int, ...]
    left: bool = False
    """Whether it was released again, so lately that it is still on record."""


@dataclass(frozen=True, slots=True)
class DemandRecord:
    """All that is known."""

    days: float
    """How far it reaches back."""
    arrivals: tuple[Arrival, ...]
    """Those within these days, pinned ones left out."""
    held: tuple[tuple[Range, ...], ...]
    """What is held now, by arrival, pinned or not and however old: those who may leave."""
    left: int
    """How many left within `release_days`, pinned or not."""
    release_days: float
    """How many days back a release is still on record."""
    pinned: int
    """Blocks that were left out because they are pinned."""


def read_record(pool: NetworkPool, allocations: Iterable[IPAllocation], now: datetime) -> DemandRecord:
    """The record of a pool."""
    mine = [
        allocation
        for allocation in allocations
        if allocation.spec.pool_ref.name == pool.metadata.name and allocation.status.allocated_at
    ]
    release = min(_release_window(mine, now), LONGEST)
    # A pool that was restored is younger than what it granted.
    born = min([pool.metadata.creation_timestamp or now, *(_when(allocation, now) for allocation in mine)])
    reach = min(LONGEST, max(now - born, timedelta()))
    groups = [_arrival(group, now) for group in _grouped(mine, now) if _counts(group, now, release)]
    unpinned = [each for each, pinned in groups if not pinned and each.age <= reach / _DAY]
    held = [
        _ranges(group) for group in _grouped([allocation for allocation in mine if readable_range(allocation)], now)
    ]
    return DemandRecord(
        days=reach / _DAY,
        arrivals=tuple(sorted(unpinned, key=lambda arrival: arrival.age)),
        held=tuple(ranges for ranges in held if ranges),
        left=sum(each.left for each, _ in groups),
        release_days=min(release, reach) / _DAY,
        pinned=sum(allocation.spec.pinned_range is not None for allocation in mine),
    )


def _when(allocation: IPAllocation, now: datetime) -> datetime:
    """When it was granted; clocks differ, and nothing was granted in the future."""
    return min(allocation.status.allocated_at or now, now)


def _is_released(allocation: IPAllocation) -> bool:
    return allocation.status.phase is IPAllocationPhase.RELEASED and allocation.status.released_at is not None


def _release_window(mine: Sequence[IPAllocation], now: datetime) -> timedelta:
    kept = [
        now - allocation.status.released_at
        for allocation in mine
        if _is_released(allocation) and allocation.status.released_at
    ]
    return max([RETENTION, *kept])


def _grouped(mine: Iterable[IPAllocation], now: datetime) -> list[list[IPAllocation]]:
    """Blocks of one tenant that were granted together."""
    groups: list[list[IPAllocation]] = []
    order = sorted(mine, key=lambda allocation: (_tenant(allocation), _when(allocation, now), allocation.metadata.name))
    for allocation in order:
        first = groups[-1][0] if groups else None
        if first and _tenant(first) == _tenant(allocation) and _when(allocation, now) - _when(first, now) <= TOGETHER:
            groups[-1].append(allocation)
        else:
            groups.append([allocation])
    return groups


def _tenant(allocation: IPAllocation) -> tuple[str, str]:
    return str(tenant_key(allocation)), recorded_owner(allocation) or ""


def _counts(group: Sequence[IPAllocation], now: datetime, window: timedelta) -> bool:
    """Held, or released as lately as every release is still on record."""
    return any(readable_range(allocation) for allocation in group) or any(
        _is_released(item) and item.status.released_at and now - item.status.released_at <= window for item in group
    )


def _arrival(group: Sequence[IPAllocation], now: datetime) -> tuple[Arrival, bool]:
    at = _when(group[0], now)
    sizes = tuple(found[1].size for allocation in group if (found := granted_range(allocation)))
    left = not any(readable_range(allocation) for allocation in group)
    return Arrival((now - at) / _DAY, sizes, left), any(
        allocation.spec.pinned_range is not None for allocation in group
    )


def _ranges(group: Iterable[IPAllocation]) -> tuple[Range, ...]:
    return tuple(found[1] for allocation in group if (found := readable_range(allocation)))
