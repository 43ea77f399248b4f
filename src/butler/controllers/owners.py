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
from butler.api.labels import Annotation, ConditionType, TenantReason
from butler.capi.naming import namespace_of_tenant
from butler.tenant.owner import deletion_waits, named_owners, owner_lives, recorded_owner, tenant_key

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


def earlier_homes(allocation: IPAllocation, owner: TenantCluster | None) -> set[str]:
    """Namespaces in which machines may use the addresses of an allocation, beside that of the owner that it has now.

    They are those of all clusters that it names, and where its owner was built before it came back from a backup.
    """
    own = owner.metadata.uid if owner is not None else None
    name = allocation.spec.tenant_cluster_ref.name
    found = {namespace_of_tenant(name, uid) for uid in named_owners(allocation) if uid != own}
    if owner is not None:
        namespace, _, uid = owner.metadata.annotations.get(Annotation.BUILT_AS, "").partition(" ")
        if namespace and uid != own:
            found.add(namespace)
    return found


__all__ = ["Owner", "deletion_waits", "earlier_homes", "owner_lives", "owner_of", "recorded_owner", "tenant_key"]
