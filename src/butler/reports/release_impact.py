"""What hangs on an allocation that a user is about to release: whose it is, what uses it, and what Butler does then.

Pure. Which Machines the management cluster knows, and what the tenant itself reports, comes in as it was read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import Annotation, ConditionType
from butler.ipam.addresses import Family
from butler.reports.address_lookup import TenantIs, range_json, tenant_standing
from butler.reports.tenant.address_use import AddressUse, uses_in
from butler.rules.allocation.held import granted_range, readable_range
from butler.rules.allocation.owner import tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Key
    from butler.ipam.addresses import Range
    from butler.reports.estate import Estate
    from butler.tenant.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Impact:
    """What a release would do."""

    name: str
    tenant: Key
    tenant_is: TenantIs
    type: str
    pool: str
    phase: str
    addresses: Range | None
    """What goes back to the pool; None where nothing does."""
    uses: tuple[AddressUse, ...]
    """Machines, Nodes and Services that have some of them."""
    not_asked: str
    """Why the tenant was not asked; empty when it was, or when there is none."""
    follows: tuple[str, ...]
    """What will happen, in sentences."""
    refused: bool
    """Its cluster lives and may use it: only who insists gets it back."""
    unknown: bool
    """Whether anything uses it cannot be seen: it was made for a cluster that Butler does not manage."""


def says_the_same(shown: IPAllocation, now: IPAllocation) -> bool:
    """Whether an allocation is as it was shown, but for the record of its grant, which Butler writes a moment later."""
    return said(shown) == said(now)


def said(allocation: IPAllocation) -> bytes:
    """All that an allocation says to who is about to release it."""
    meta = allocation.metadata
    annotations = {name: text for name, text in meta.annotations.items() if name != Annotation.GRANTED}
    meta = msgspec.structs.replace(meta, resource_version="", annotations=annotations)
    return msgspec.json.encode(msgspec.structs.replace(allocation, metadata=meta), order="deterministic")


def impact(
    allocation: IPAllocation, estate: Estate, machines: Iterable[AddressUse], told: Inventory | str | None
) -> Impact:
    """What the release of an allocation would do. `told`: what the tenant says, or why it says nothing."""
    held = readable_range(allocation)
    uses: list[AddressUse] = []
    if held is not None:
        if told is not None and not isinstance(told, str):
            uses = uses_in(held[1], held[0], {tenant_key(allocation): told})
        # The Machine behind a Node that was seen is no news.
        seen = {use.address for use in uses}
        uses += [machine for machine in machines if machine.address not in seen]
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
        tuple(_follows(allocation, standing, used=bool(uses))),
        refused=standing is TenantIs.EXISTS and _would_free(allocation),
        unknown=standing is TenantIs.UNSEEN and _would_free(allocation),
    )


def _would_free(allocation: IPAllocation) -> bool:
    return allocation.status.phase is IPAllocationPhase.ALLOCATED and allocation.metadata.deletion_timestamp is None


UNKNOWN = "Butler cannot see whether this is in use: it was made for a cluster that Butler does not manage"
FREE_AT_ONCE = "the addresses are free for other tenants at once"


def _follows(allocation: IPAllocation, standing: TenantIs, *, used: bool) -> Iterable[str]:
    phase, name = allocation.status.phase, allocation.metadata.name
    if allocation.metadata.deletion_timestamp is not None:
        waits = find_condition(allocation.status.conditions, ConditionType.DELETING)
        waiting = phase is IPAllocationPhase.ALLOCATED and waits is not None
        yield f"it was deleted, and waits: {waits.message}" if waiting and waits else "it is being released already"
    elif phase is IPAllocationPhase.RELEASED:
        granted = granted_range(allocation)
        yield f"it was released before{'; the record of who had the addresses goes' if granted else ''}"
    elif phase is not IPAllocationPhase.ALLOCATED:
        yield "it holds nothing: the request is taken back"
    elif standing is TenantIs.UNSEEN:
        yield UNKNOWN
        yield FREE_AT_ONCE
    elif standing is not TenantIs.EXISTS:
        yield f"the cluster that it was made for is gone: {FREE_AT_ONCE}"
    else:
        yield "its cluster exists, so Butler refuses: delete the TenantCluster to give its addresses back"
        yield f"`butleradm allocation release {name} --force` insists: {FREE_AT_ONCE}, {_by_force(allocation, used)}"


def _by_force(allocation: IPAllocation, used: bool) -> str:
    if allocation.spec.type is IPAllocationType.NODES:
        keep = "while the machines above keep them" if used else "though machines may have them"
        return f"{keep}, and Butler asks for others for the cluster"
    lose = "the Services above lose them" if used else "no Service is known to use them"
    return f"and {lose}"


def impact_json(found: Impact) -> dict[str, Any]:
    """For programs."""
    return {
        "allocation": found.name,
        "tenant": str(found.tenant),
        "tenantExists": found.tenant_is is TenantIs.EXISTS,
        "tenantIs": found.tenant_is.value,
        "type": found.type,
        "pool": found.pool,
        "phase": found.phase,
        "range": range_json(found.addresses, Family.V4) if found.addresses else None,
        "inUse": [{"kind": use.kind, "name": use.name, "address": use.address} for use in found.uses],
        "notAsked": found.not_asked or None,
        "follows": list(found.follows),
        "refused": found.refused,
        "unknown": UNKNOWN if found.unknown else None,
    }
