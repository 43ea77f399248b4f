"""Allocations as the API shows them. Pure."""

from __future__ import annotations

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import ConditionType, Label
from butler.rules.allocation.held import granted_range, readable_range
from butler.server.models.allocations import AllocationItem
from butler.server.presenters.common import range_of


def allocation_item(allocation: IPAllocation) -> AllocationItem:
    spec, status, meta = allocation.spec, allocation.status, allocation.metadata
    granted = granted_range(allocation)
    held = readable_range(allocation)
    ready = find_condition(status.conditions, ConditionType.READY)
    shown = range_of(granted[1], granted[0]) if granted else None
    pinned = spec.pinned_range
    return AllocationItem(
        namespace=meta.namespace,
        name=meta.name,
        pool=spec.pool_ref.name,
        tenant_namespace=spec.tenant_cluster_ref.namespace,
        tenant=spec.tenant_cluster_ref.name,
        type=spec.type.value,
        role=meta.labels.get(Label.ALLOCATION_ROLE, ""),
        phase=status.phase.value,
        state=_state(allocation),
        start=shown.start if shown else pinned.start_address if pinned else None,
        end=shown.end if shown else pinned.end_address if pinned else None,
        count=held[1].size if held else 0,
        requested=spec.count,
        pinned=pinned is not None,
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
        created_at=meta.creation_timestamp,
        allocated_at=status.allocated_at,
        idle_since=status.idle_since,
        draining_since=status.draining_since,
        released_at=status.released_at,
        resource_version=meta.resource_version,
    )


def _state(allocation: IPAllocation) -> str:
    status = allocation.status
    if status.phase is IPAllocationPhase.RELEASED:
        return "released"
    if allocation.metadata.deletion_timestamp is not None or status.draining_since is not None:
        return "going back"
    if status.phase is IPAllocationPhase.ALLOCATED:
        return "idle" if status.idle_since else "held"
    return "refused" if status.phase is IPAllocationPhase.FAILED else "asked for"
