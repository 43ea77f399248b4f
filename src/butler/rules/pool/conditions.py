"""What a pool says about itself: whether it hands out addresses, and how full it is. Pure.

The three capacity conditions are always there, also on an empty or broken pool, so that a query for them never
comes back empty. An event is due at each crossing of a threshold, up or down, but at most one per tier and direction
in ten minutes, so that a recovery is told at once; when the last ones were sent stands in the status, so that a restart
neither repeats nor forgets one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType, PoolReason
from butler.api.networkpool import CapacityNotice, CapacityTier, NetworkPoolStatus
from butler.ipam.capacity import THRESHOLDS, Capacity, tiers

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.api.objects import EventType

NOTICE_INTERVAL: Final = timedelta(minutes=10)
SHOWN_NAMES: Final = 3
RECOVERED: Final = "PoolCapacityRecovered"
_WHAT_TO_DO: Final = {
    CapacityTier.WARNING: "plan an expansion of the pool",
    CapacityTier.CRITICAL: "expand the pool or add another one now: larger requests may fail",
    CapacityTier.EXHAUSTED: "new requests will likely fail; existing tenants are not affected",
}


@dataclass(frozen=True, slots=True)
class NotHandingOut:
    """Why a pool grants nothing at present."""

    reason: PoolReason
    message: str


@dataclass(frozen=True, slots=True)
class CapacityCrossing:
    """A capacity event that is due."""

    reason: str
    message: str
    type: EventType


def with_capacity(
    status: NetworkPoolStatus, capacity: Capacity | None, now: datetime
) -> tuple[NetworkPoolStatus, tuple[CapacityCrossing, ...], float | None]:
    """The status with the tiers set, the events that are due, and in how many seconds one that is held back is."""
    conditions = status.conditions
    above = tiers(capacity) if capacity is not None else dict.fromkeys(CapacityTier, False)
    remembered = list(status.capacity_notices)
    notices: list[CapacityCrossing] = []
    waits: list[float] = []
    for tier in CapacityTier:
        conditions = with_condition(
            conditions,
            type=tier,
            status=above[tier],
            reason=PoolReason.UTILIZATION_ABOVE_THRESHOLD if above[tier] else PoolReason.UTILIZATION_BELOW_THRESHOLD,
            message=_utilization(capacity, tier, above=above[tier]),
            now=now,
        )
        if capacity is None or above[tier] == _last_told(remembered, tier):
            continue
        last = next(
            (
                capacity_notice
                for capacity_notice in remembered
                if (capacity_notice.tier, capacity_notice.above) == (tier, above[tier])
            ),
            None,
        )
        wait = (last.time + NOTICE_INTERVAL - now).total_seconds() if last is not None else 0.0
        # A clock that was set back must not silence a pool: nothing waits for longer than the interval.
        if 0 < wait <= NOTICE_INTERVAL.total_seconds():
            waits.append(wait)
        else:
            remembered = [capacity_notice for capacity_notice in remembered if capacity_notice is not last]
            remembered.insert(0, CapacityNotice(tier=tier, above=above[tier], time=now))
            notices.append(_notice(tier, capacity, above=above[tier]))
    status = msgspec.structs.replace(status, conditions=conditions, capacity_notices=tuple(remembered))
    return status, tuple(notices), min(waits, default=None)


def _last_told(remembered: Sequence[CapacityNotice], tier: CapacityTier) -> bool:
    """Whether the newest event on a tier said that the pool is above it; none said so of a pool never told of."""
    return next((notice.above for notice in remembered if notice.tier is tier), False)


def with_readiness(
    status: NetworkPoolStatus,
    capacity: Capacity | None,
    obstacle: NotHandingOut | None,
    stranded: Sequence[str],
    held_excluded: Sequence[str],
    now: datetime,
) -> NetworkPoolStatus:
    """The status with Ready set. `stranded`: allocations with addresses that an edit took out of the pool;
    `held_excluded`: sentences about gateways and DNS servers that allocations hold."""
    if obstacle is not None:
        reason, message = obstacle.reason, obstacle.message
    else:
        assert capacity is not None
        count = status.allocation_count or 0
        reason = PoolReason.READY
        message = (
            f"{capacity.available} of {capacity.total} addresses available,"
            f" {count} {'allocation' if count == 1 else 'allocations'}"
        )
        if stranded:
            message += f"; outside what the pool hands out now, but still held: {names(stranded)}"
        if held_excluded:
            message += f"; {names(held_excluded)}: correct the ProviderConfig, or replace the cluster"
    conditions = with_condition(
        status.conditions, type=ConditionType.READY, status=obstacle is None, reason=reason, message=message, now=now
    )
    return msgspec.structs.replace(status, conditions=conditions)


def names(of: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(of) - SHOWN_NAMES} more" if len(of) > SHOWN_NAMES else ""
    return ", ".join(of[:SHOWN_NAMES]) + more


def unreadable(of: Collection[str]) -> str:
    """Why a pool hands out nothing beside allocations that cannot be read."""
    return (
        f"it is unknown which addresses are free, because IPAllocation {names(sorted(of))} cannot be read:"
        " run the version of Butler that wrote it, or put right what its status says about its addresses"
    )


def seen_too_much(pool: NetworkPool, newest: str) -> str:
    """Why a pool hands out nothing whose status speaks of allocations that never were."""
    return (
        f"its status speaks of IPAllocations up to version {pool.status.allocations_seen}, and the newest is {newest}:"
        " it was restored from a backup or from another cluster; everything is counted anew"
    )


def _utilization(capacity: Capacity | None, tier: CapacityTier, *, above: bool) -> str:
    if capacity is None:
        return "the pool cannot be read, so nothing of it is allocated anew"
    return (
        f"{capacity.percent}% of {capacity.total} addresses are allocated,"
        f" {'at or above' if above else 'below'} {THRESHOLDS[tier]}%"
    )


def _notice(tier: CapacityTier, capacity: Capacity, *, above: bool) -> CapacityCrossing:
    figures = f"{capacity.percent}% allocated ({capacity.allocated} of {capacity.total} addresses)"
    if above:
        message = f"{figures}, at or above {THRESHOLDS[tier]}%: {_WHAT_TO_DO[tier]}"
        return CapacityCrossing(f"Pool{tier}", message, "Warning")
    return CapacityCrossing(RECOVERED, f"{figures}, back below {THRESHOLDS[tier]}% ({tier})", "Normal")
