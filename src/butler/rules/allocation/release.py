"""Why an allocation is released, and what its status says then. Pure.

Released is final: nothing brings an allocation back from it. What was granted stays in the status, as a record of who
had an address.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from butler.api.conditions import with_condition, without_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import AllocationReason, ConditionType, TenantReason
from butler.rules.allocation.owner import tenant_key

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.objects import EventType

IPS_RELEASED: Final = "IPsReleased"
ORPHANED_ALLOCATION_GC: Final = "OrphanedAllocationGC"
Why = Literal["deleted", "orphan", "released"]


@dataclass(frozen=True, slots=True)
class Grounds:
    """Why an allocation is released: in words that follow a colon, as a metric's label, and the event that tells it."""

    because: str
    why: Why
    event: str = IPS_RELEASED
    event_type: EventType = "Normal"


DELETED_BY_REQUEST: Final = Grounds("deleted by request", "deleted")


def owner_gone(allocation: IPAllocation, uid: str) -> Grounds:
    """The grounds of the orphan sweep."""
    gone = f"TenantCluster {tenant_key(allocation)} (uid {uid}) no longer exists"
    return Grounds(gone, "orphan", ORPHANED_ALLOCATION_GC)


def what_it_held(status: IPAllocationStatus) -> str | None:
    """The grant in words, such as "5 IPs (10.40.2.10-10.40.2.14)"; None when there was none."""
    first, last = status.start_address, status.end_address
    if first is None or last is None:
        return None
    count = status.allocated_count
    amount = "IPs" if count is None else f"{count} {'IP' if count == 1 else 'IPs'}"
    return f"{amount} ({first if first == last else f'{first}-{last}'})"


def released(allocation: IPAllocation, grounds: Grounds, now: datetime) -> IPAllocationStatus:
    """The status of an allocation that is released. Pure."""
    status, held = allocation.status, what_it_held(allocation.status)
    pool = allocation.spec.pool_ref.name
    conditions = with_condition(
        without_condition(status.conditions, ConditionType.WAITING),
        type=ConditionType.READY,
        status=False,
        reason=AllocationReason.RELEASED,
        message=f"{f'{held} released to {pool}' if held else 'released before anything was granted'}"
        f": {grounds.because}",
        now=now,
    )
    if grounds.why == "orphan":
        conditions = with_condition(
            conditions,
            type=ConditionType.TENANT_FOUND,
            status=False,
            reason=TenantReason.NOT_FOUND,
            message=grounds.because,
            now=now,
        )
    return msgspec.structs.replace(status, phase=IPAllocationPhase.RELEASED, released_at=now, conditions=conditions)
