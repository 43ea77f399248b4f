"""What hangs on an allocation that somebody is about to release: whose it is, who uses it, and what Butler does then.

Pure. What Machines the management cluster knows, and what the tenant itself tells, comes in as it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.controllers.owners import tenant_key
from butler.ipam.addresses import Family
from butler.views.estate import granted_range, held_range
from butler.views.uses import Use, uses_in
from butler.views.who import range_json, tenant_standing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.ipam.addresses import Range
    from butler.kube.resource import Key
    from butler.tenant.inventory import Inventory
    from butler.views.estate import Estate


@dataclass(frozen=True, slots=True)
class Impact:
    """What a release would do."""

    name: str
    tenant: Key
    tenant_is: str
    type: str
    pool: str
    phase: str
    addresses: Range | None
    """What goes back to the pool; None where nothing does."""
    uses: tuple[Use, ...]
    """Machines, Nodes and Services that have some of them."""
    not_asked: str
    """Why the tenant was not asked; empty when it was, or when there is none."""
    follows: tuple[str, ...]
    """What will happen, in sentences."""


def impact(allocation: IPAllocation, estate: Estate, machines: Iterable[Use], told: Inventory | str | None) -> Impact:
    """What the release of an allocation would do. `told`: what the tenant says, or why it says nothing."""
    held = held_range(allocation)
    uses: list[Use] = []
    if held is not None:
        if told is not None and not isinstance(told, str):
            uses = uses_in(held[1], held[0], {tenant_key(allocation): told})
        # The Machine behind a Node that was seen is no news.
        seen = {each.address for each in uses}
        uses += [each for each in machines if each.address not in seen]
    standing = tenant_standing(allocation, estate)
    return Impact(
        allocation.metadata.name,
        tenant_key(allocation),
        standing,
        str(allocation.spec.type),
        allocation.spec.pool_ref.name,
        str(allocation.status.phase),
        held[1] if held else None,
        tuple(uses),
        told if isinstance(told, str) and held is not None else "",
        tuple(_follows(allocation, exists=standing == "exists", used=bool(uses))),
    )


def _follows(allocation: IPAllocation, *, exists: bool, used: bool) -> Iterable[str]:
    phase, type_ = allocation.status.phase, allocation.spec.type
    if allocation.metadata.deletion_timestamp is not None:
        yield "it is being released already"
    elif phase is IPAllocationPhase.RELEASED:
        granted = granted_range(allocation)
        yield f"it was released before{'; the record of who had the addresses goes' if granted else ''}"
    elif phase is not IPAllocationPhase.ALLOCATED:
        yield "it holds nothing: the request is taken back"
    elif not exists:
        yield "no tenant cluster that Butler knows is affected"
    elif type_ is IPAllocationType.NODES:
        yield "its cluster exists: Butler asks for node addresses anew, perhaps gets others, and may replace machines"
    else:
        lose = "the Services above lose their addresses" if used else "no Service is known to use them"
        yield f"its cluster exists: Butler takes the addresses out of its MetalLB, and {lose}"


def impact_json(found: Impact) -> dict[str, Any]:
    """For programs."""
    return {
        "allocation": found.name,
        "tenant": str(found.tenant),
        "tenantExists": found.tenant_is == "exists",
        "type": found.type,
        "pool": found.pool,
        "phase": found.phase,
        "range": range_json(found.addresses, Family.V4) if found.addresses else None,
        "inUse": [{"kind": each.kind, "name": each.name, "address": each.address} for each in found.uses],
        "notAsked": found.not_asked or None,
        "follows": list(found.follows),
    }
