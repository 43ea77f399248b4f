"""What a grant or a refusal looks like in an IPAllocation's status. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import find_condition, with_condition, without_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import ALLOCATED_BY, AllocationReason, ConditionType
from butler.ipam.addresses import addresses_of, range_cidr
from butler.ipam.refusals import WAITS, waiting_since
from butler.rules.allocation.owner import owner_of
from butler.rules.pool.next_status import intent_range

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.meta import Condition
    from butler.api.networkpool import Intent
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.decide import Refusal


def granted(
    allocation: IPAllocation, intent: Intent, tenant: TenantCluster | None, now: datetime
) -> IPAllocationStatus:
    """The status of an allocation that gets what the intent promises."""
    family, held = intent_range(intent)
    owner = owner_of(allocation, tenant, now)
    conditions = with_condition(
        without_condition(owner.conditions, ConditionType.WAITING),
        type=ConditionType.READY,
        status=True,
        reason=AllocationReason.ALLOCATED,
        message=f"{held.size} {'IP' if held.size == 1 else 'IPs'} allocated from {allocation.spec.pool_ref.name}",
        now=now,
    )
    return msgspec.structs.replace(
        allocation.status,
        phase=IPAllocationPhase.ALLOCATED,
        conditions=_ready_first(conditions),
        cidr=range_cidr(held, family),
        start_address=intent.start_address,
        end_address=intent.end_address,
        addresses=addresses_of(held, family),
        allocated_count=held.size,
        observed_generation=allocation.metadata.generation or None,
        allocated_at=now,
        allocated_by=ALLOCATED_BY,
        tenant_cluster_uid=owner.tenant_cluster_uid,
    )


def refused(
    allocation: IPAllocation, refusal: Refusal, tenant: TenantCluster | None, now: datetime, passed: int = 0
) -> IPAllocationStatus:
    """The status of an allocation that cannot be met at present, and was passed so often since its last refusal."""
    owner = owner_of(allocation, tenant, now)
    conditions = with_condition(
        owner.conditions,
        type=ConditionType.READY,
        status=False,
        reason=refusal.reason,
        message=refusal.message,
        now=now,
    )
    passed_by = (allocation.status.passed_by or 0) + passed
    conditions = _waiting(conditions, allocation, refusal, passed_by, now)
    return msgspec.structs.replace(
        allocation.status,
        phase=IPAllocationPhase.FAILED,
        observed_generation=allocation.metadata.generation or None,
        conditions=_ready_first(conditions),
        tenant_cluster_uid=owner.tenant_cluster_uid,
        passed_by=passed_by or None,
    )


def _waiting(
    conditions: tuple[Condition, ...], allocation: IPAllocation, refusal: Refusal, passed_by: int, now: datetime
) -> tuple[Condition, ...]:
    """With what a request that waits for room says about that; others say nothing of the kind."""
    asked = allocation.metadata.creation_timestamp
    if refusal.reason not in WAITS or asked is None:
        return without_condition(conditions, ConditionType.WAITING)
    return with_condition(
        conditions,
        type=ConditionType.WAITING,
        status=True,
        reason=refusal.reason,
        message=waiting_since(asked, passed_by),
        now=now,
    )


def _ready_first(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """What people look for stands on top."""
    return tuple(sorted(conditions, key=lambda condition: condition.type != ConditionType.READY))


def says_something_new(before: IPAllocationStatus, after: IPAllocationStatus) -> bool:
    """Whether a refusal differs in more than its figures, which move with every change of the pool."""
    then, now = (find_condition(status.conditions, ConditionType.READY) for status in (before, after))
    return before.phase is not after.phase or then is None or now is None or then.reason != now.reason


def told(status: IPAllocationStatus) -> Condition | None:
    """What an allocation that was refused says about it."""
    return find_condition(status.conditions, ConditionType.READY) if status.phase is IPAllocationPhase.FAILED else None
