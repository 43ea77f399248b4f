"""Whose an allocation is: the one TenantCluster that it was made for, known by its UID. Pure.

Names come back, UIDs do not: a cluster that was deleted and made anew under its name owns nothing of what the old
one had. So the owner's UID is recorded once, when the cluster is first seen, and never changes afterwards. A label
put there by whoever created the allocation knows better than anyone who looks later, and wins.

An allocation may be older than its cluster (a migration prepared ahead). Then nobody is known to own it; it says so
in condition TenantFound, and nothing may be concluded from the cluster's absence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType, Label, TenantReason
from butler.kube.resource import Key

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.meta import Condition
    from butler.api.tenantcluster import TenantCluster


@dataclass(frozen=True, slots=True)
class Owner:
    """What an allocation's status should say about its TenantCluster."""

    tenant_cluster_uid: str | None
    found: bool
    conditions: tuple[Condition, ...]
    """The allocation's conditions with TenantFound set; the very same tuple when that changes nothing."""


def tenant_key(allocation: IPAllocation) -> Key:
    """The TenantCluster that an allocation names."""
    reference = allocation.spec.tenant_cluster_ref
    return Key(reference.namespace, reference.name)


def recorded_owner(allocation: IPAllocation) -> str | None:
    """The UID of the TenantCluster that the allocation belongs to; None as long as nobody has seen it."""
    return allocation.metadata.labels.get(Label.TENANT_UID) or allocation.status.tenant_cluster_uid


def owner_lives(allocation: IPAllocation, tenant: TenantCluster | None) -> bool:
    """Whether the very TenantCluster that an allocation belongs to exists, given the one that has its name at present.

    One that is being deleted exists still: its machines and Services use their addresses until they are gone. An
    allocation whose owner was not recorded yet belongs to the cluster that it names.
    """
    return tenant is not None and recorded_owner(allocation) in (None, tenant.metadata.uid)


def deletion_waits(allocation: IPAllocation, tenant: TenantCluster | None) -> bool:
    """Whether the deletion of an allocation is a wish only, because machines or Services may use its addresses.

    It stays Allocated until they do not: load-balancer ranges are drained and released by the controller of load
    balancers, node ranges wait for machines. What has no addresses, or no owner, goes at once.
    """
    return allocation.status.phase is IPAllocationPhase.ALLOCATED and owner_lives(allocation, tenant)


def owner_of(allocation: IPAllocation, tenant: TenantCluster | None, now: datetime) -> Owner:
    """The owner to record, given the TenantCluster that has the name at present (None: none has)."""
    recorded, named = recorded_owner(allocation), f"TenantCluster {tenant_key(allocation)}"
    if tenant is None:
        uid, reason = recorded, TenantReason.NOT_FOUND
        message = (
            f"{named} (uid {recorded}) was not found"
            if recorded
            else f"{named} has not been seen yet; the addresses are kept for it"
        )
    elif recorded in (None, tenant.metadata.uid):
        uid, reason, message = tenant.metadata.uid, TenantReason.FOUND, f"{named} exists"
    else:
        uid, reason = recorded, TenantReason.REPLACED
        message = f"{named} has uid {tenant.metadata.uid}, but the allocation belongs to uid {recorded}"
    found = reason is TenantReason.FOUND
    conditions = with_condition(
        allocation.status.conditions,
        type=ConditionType.TENANT_FOUND,
        status=found,
        reason=reason,
        message=message,
        now=now,
    )
    return Owner(uid, found, conditions)
