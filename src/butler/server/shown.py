"""Objects of the estate as the API's list items. Pure: what is known goes in, what is sent comes out.

Lists, details and the live stream all show an object with these functions, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import ConditionType, Label
from butler.api.meta import Condition as ApiCondition
from butler.api.meta import ConditionStatus
from butler.api.networkpool import CapacityTier, NetworkPool
from butler.ipam.addresses import Family, Range, address_text, range_cidr
from butler.ipam.layout import InvalidPool, PoolLayout, read_layout
from butler.server.models.allocations import AllocationItem
from butler.server.models.common import AddressRange, Condition, Health
from butler.server.models.pools import PoolItem, Reserved
from butler.views.estate import granted_range, held_range
from butler.views.pool_standing import Summary
from butler.views.segments import HELD, PoolSegments

STRIP = 64
_BAD_NEWS = frozenset(str(each) for each in CapacityTier) | {"Paused", "Deleting"}


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


def pool_item(pool: NetworkPool, summary: Summary, concerned: Sequence[IPAllocation], providers: list[str]) -> PoolItem:
    """`summary` and `concerned` are of this pool."""
    capacity = summary.standing.capacity if summary.standing else None
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    problems = [f"{each.field}: {each.message}" for each in summary.segments.problems]
    refused = ready.message if ready is not None and ready.status is ConditionStatus.FALSE else ""
    own = [each for each in concerned if each.spec.pool_ref.name == pool.metadata.name]
    tier = summary.standing.tier if summary.standing else None
    return PoolItem(
        namespace=pool.metadata.namespace,
        name=pool.metadata.name,
        cidr=pool.spec.cidr,
        total=capacity.total if capacity else None,
        allocated=capacity.allocated if capacity else None,
        available=capacity.available if capacity else None,
        percent=100 * capacity.allocated / capacity.total if capacity and capacity.total else None,
        largest_free_block=capacity.largest_free_block if capacity else None,
        fragmentation_percent=capacity.fragmentation_percent if capacity else None,
        allocation_count=sum(held_range(each) is not None for each in own),
        waiting=sum(each.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED) for each in own),
        tier=tier.value if tier else None,
        ready=ready is not None and ready.status is ConditionStatus.TRUE,
        problem="; ".join(problems) or refused,
        providers=providers,
        strip=strip(summary.segments),
        created_at=pool.metadata.creation_timestamp,
        resource_version=pool.metadata.resource_version,
    )


def strip(shown: PoolSegments) -> list[int]:
    """The network in equal parts: percent held of what each hands out; -1 where nothing is handed out or held."""
    if shown.network is None:
        return []
    parts = min(STRIP, shown.network.size)
    edges = [shown.network.first + shown.network.size * each // parts for each in range(parts + 1)]
    held, given = [0] * parts, [0] * parts
    at = 0
    for segment in shown.segments:
        is_held = segment.kind in HELD
        if not is_held and segment.kind != "free":
            continue
        while edges[at + 1] <= segment.first:
            at += 1
        part = at
        while part < parts and edges[part] <= segment.last:
            size = min(segment.last, edges[part + 1] - 1) - max(segment.first, edges[part]) + 1
            given[part] += size
            held[part] += size if is_held else 0
            part += 1
    # Something held must show, however little, and something free too.
    return [-1 if not all_ else _percent(some, all_) for some, all_ in zip(held, given, strict=True)]


def _percent(some: int, every: int) -> int:
    if some in (0, every):
        return 100 if some else 0
    return min(99, max(1, 100 * some // every))


def windows_of(layout: PoolLayout) -> list[AddressRange]:
    return [range_of(each, layout.family) for each in layout.windows]


def reserved_of(layout: PoolLayout) -> list[Reserved]:
    found = []
    for block in layout.blocks:
        where, cidr = range_of(block.addresses, layout.family), range_cidr(block.addresses, layout.family) or ""
        found.append(
            Reserved(cidr=cidr, description=block.description, start=where.start, end=where.end, count=where.count)
        )
    return found


def layout_of(pool: NetworkPool) -> PoolLayout | None:
    try:
        return read_layout(pool.spec)
    except InvalidPool:
        return None


def allocation_item(allocation: IPAllocation) -> AllocationItem:
    spec, status, meta = allocation.spec, allocation.status, allocation.metadata
    granted = granted_range(allocation)
    held = held_range(allocation)
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
