"""Which allocations may be orphans: those whose recorded owner is not among the living. Pure.

An allocation whose owner was never seen is no orphan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.rules.allocation.owner import recorded_owner, tenant_key

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from butler.api.objects import Key


class OwnerClaim(NamedTuple):
    """That an allocation belongs to a tenant: what a sighting is about."""

    allocation_uid: str
    owner_uid: str
    formerly: str
    """The UID that the status has, where a label says otherwise: a slip of a hand that must not cost addresses."""

    def is_met_by(self, uids: Collection[str]) -> bool:
        """Whether the owner is among these."""
        return self.owner_uid in uids or self.formerly in uids


def claim_of(allocation: IPAllocation) -> OwnerClaim | None:
    """What a sweep would have to check; None for an allocation that is over, or that has no known owner."""
    if allocation.status.phase is IPAllocationPhase.RELEASED or allocation.metadata.deletion_timestamp is not None:
        return None
    owner = recorded_owner(allocation)
    return OwnerClaim(allocation.metadata.uid, owner, allocation.status.tenant_cluster_uid or owner) if owner else None


def claims_of(allocations: Iterable[IPAllocation]) -> set[OwnerClaim]:
    """What a sweep would have to check of all of these."""
    return {claim for allocation in allocations if (claim := claim_of(allocation)) is not None}


def by_missing_tenant(allocations: Iterable[IPAllocation], alive: Collection[str]) -> dict[Key, list[IPAllocation]]:
    """The allocations whose owner is not among the living, by the name that the owner had."""
    missing: dict[Key, list[IPAllocation]] = {}
    for allocation in allocations:
        claim = claim_of(allocation)
        if claim is not None and not claim.is_met_by(alive):
            missing.setdefault(tenant_key(allocation), []).append(allocation)
    return missing
