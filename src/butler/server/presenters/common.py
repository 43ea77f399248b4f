"""What all objects have in common: ranges and conditions. Pure."""

from __future__ import annotations

from butler.api.meta import Condition as ApiCondition
from butler.api.meta import ConditionStatus
from butler.api.networkpool import CapacityTier
from butler.ipam.addresses import Family, Range, address_text
from butler.server.models.common import AddressRange, Condition, Health

_BAD_NEWS = frozenset(str(tier) for tier in CapacityTier) | {"Paused", "Deleting"}


def range_of(addresses: Range, family: Family) -> AddressRange:
    first, last = (address_text(value, family) for value in addresses)
    return AddressRange(start=first, end=last, count=addresses.size)


def condition(found: ApiCondition) -> Condition:
    return Condition(
        type=found.type,
        status=found.status.value,
        reason=found.reason,
        message=found.message,
        since=found.last_transition_time,
        health=_health(found),
    )


def _health(found: ApiCondition) -> Health:
    """True is bad news for some conditions and good news for the others."""
    if found.status is ConditionStatus.UNKNOWN:
        return "unknown"
    is_true = found.status is ConditionStatus.TRUE
    if found.type in _BAD_NEWS:
        if not is_true:
            return "ok"
        return "warning" if found.type in (CapacityTier.WARNING, "Paused", "Deleting") else "critical"
    return "ok" if is_true else "warning"
