"""Whose an allocation is: the one TenantCluster that it was made for, known by its UID. Pure.

Names come back, UIDs do not: a cluster that was deleted and made anew under its name owns nothing of what the old
one had. So the owner's UID is recorded once, when the cluster is first seen, and never changes afterwards. A label
that the creator of the allocation set is more reliable than what is seen later, and wins.

An allocation may be older than its cluster (a migration prepared ahead). Then its owner is not known; it says so
in condition TenantFound, and nothing may be concluded from the cluster's absence.

Controllers and admission call the same functions, so that a deletion that admission would refuse is also the one that
waits where admission is off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation, ConditionType, Label, TenantReason
from butler.api.objects import Key
from butler.ipam.granted import is_from_another_life
from butler.rules.tenant_namespace import namespace_of_tenant

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.meta import Condition
    from butler.api.tenantcluster import TenantCluster


def tenant_key(allocation: IPAllocation) -> Key:
    """The TenantCluster that an allocation names."""
    reference = allocation.spec.tenant_cluster_ref
    return Key(reference.namespace, reference.name)


def recorded_owner(allocation: IPAllocation) -> str | None:
    """The UID of the TenantCluster that the allocation belongs to; None as long as the cluster has not been seen.

    Of one that came back from a backup it is unknown: the UIDs that it names are of another life. It belongs to the
    TenantCluster that has the name now, or waits for one.
    """
    if is_from_another_life(allocation):
        return None
    return allocation.metadata.labels.get(Label.TENANT_UID) or allocation.status.tenant_cluster_uid


def named_owners(allocation: IPAllocation) -> set[str]:
    """The UIDs of TenantClusters that an allocation names, of this life or another."""
    label, recorded = allocation.metadata.labels.get(Label.TENANT_UID), allocation.status.tenant_cluster_uid
    return {uid for uid in (label, recorded) if uid}


def owner_lives(allocation: IPAllocation, tenant: TenantCluster | None) -> bool:
    """Whether the very TenantCluster that an allocation belongs to exists, given the one that has its name at present.

    One that is being deleted exists still: its machines and Services use their addresses until they are gone. An
    allocation whose owner was not recorded yet belongs to the cluster that it names. Where a label and the status
    name different owners, either counts: a slip of a hand must not cost addresses.
    """
    if tenant is None:
        return False
    if is_from_another_life(allocation):
        return True
    recorded = named_owners(allocation)
    return not recorded or tenant.metadata.uid in recorded


def is_taken_over(allocation: IPAllocation, tenant: TenantCluster) -> bool:
    """Whether a TenantCluster may use an allocation of its own.

    What came back from a backup may be in use where it was used before. The label names the cluster once that was
    looked at; a cluster that never ceased to exist is named all along.
    """
    if not is_from_another_life(allocation):
        return True
    return allocation.metadata.labels.get(Label.TENANT_UID) == tenant.metadata.uid


def deletion_waits(allocation: IPAllocation, tenant: TenantCluster | None) -> bool:
    """Whether the deletion of an allocation is a wish only, because machines or Services may use its addresses.

    It stays Allocated until they do not: load-balancer ranges are drained and released by the controller of load
    balancers, node ranges wait for machines. What has no addresses, or no owner, goes at once.
    """
    return allocation.status.phase is IPAllocationPhase.ALLOCATED and owner_lives(allocation, tenant)


def is_insisted(allocation: IPAllocation) -> bool:
    """Whether a person vouches for nothing using it. The value is its name, so that it is not set by habit."""
    return allocation.metadata.annotations.get(Annotation.FORCE_DELETE) == allocation.metadata.name


def how_to_insist(allocation: IPAllocation) -> str:
    """The command that insists."""
    meta = allocation.metadata
    return f"kubectl annotate ipallocation {meta.name} -n {meta.namespace} {Annotation.FORCE_DELETE}={meta.name}"


@dataclass(frozen=True, slots=True)
class AllocationOwner:
    """What an allocation's status should say about its TenantCluster."""

    tenant_cluster_uid: str | None
    found: bool
    conditions: tuple[Condition, ...]
    """The allocation's conditions with TenantFound set; the very same tuple when that changes nothing."""


def owner_of(allocation: IPAllocation, tenant: TenantCluster | None, now: datetime) -> AllocationOwner:
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
    return AllocationOwner(uid, found, conditions)


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
