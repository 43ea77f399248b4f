"""Pools as the API shows them. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import ConditionType
from butler.api.meta import ConditionStatus
from butler.api.networkpool import AllocationDefaults, NetworkPool
from butler.ipam.addresses import Family, address_text, range_cidr
from butler.ipam.layout import PoolLayout
from butler.reports.pool.free_blocks import Block, free_blocks
from butler.reports.pool.segments import HELD, PoolSegments
from butler.reports.pool.summary import Summary
from butler.rules.allocation.held import readable_range
from butler.server.models.common import AddressRange
from butler.server.models.pools import (
    Defaults,
    FreeBlock,
    FreeBlocks,
    HoleBucket,
    PoolDetail,
    PoolItem,
    Reserved,
    TenantShare,
    TierMark,
)
from butler.server.presenters.common import condition, range_of

STRIP = 64
MOST_SHARES = 20
MOST_BLOCKS = 1_000


def pool_item(pool: NetworkPool, summary: Summary, concerned: Sequence[IPAllocation], providers: list[str]) -> PoolItem:
    """`summary` and `concerned` are of this pool."""
    capacity = summary.standing.capacity if summary.standing else None
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    problems = [f"{problem.field}: {problem.message}" for problem in summary.segments.problems]
    refused = ready.message if ready is not None and ready.status is ConditionStatus.FALSE else ""
    own = [allocation for allocation in concerned if allocation.spec.pool_ref.name == pool.metadata.name]
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
        allocation_count=sum(readable_range(allocation) is not None for allocation in own),
        waiting=sum(
            allocation.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED) for allocation in own
        ),
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
    edges = [shown.network.first + shown.network.size * number // parts for number in range(parts + 1)]
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


def pool_detail(pool: NetworkPool, summary: Summary, item: PoolItem) -> PoolDetail:
    """`summary` and `item` are of this pool."""
    layout = summary.standing.layout if summary.standing else None
    network, family = summary.segments.network, summary.segments.family
    defaults = pool.spec.tenant_allocation.defaults if pool.spec.tenant_allocation else AllocationDefaults()
    whole = range_of(network, family) if network else None
    return PoolDetail(
        pool=item,
        start=whole.start if whole else None,
        end=whole.end if whole else None,
        count=whole.count if whole else 0,
        windows=windows_of(layout) if layout else [],
        reserved=reserved_of(layout) if layout else [],
        defaults=Defaults(nodes_per_tenant=defaults.nodes_per_tenant, lb_pool_per_tenant=defaults.lb_pool_per_tenant),
        tiers=[
            TierMark(tier=tier.tier.value, percent=tier.percent, addresses=tier.addresses, reached=tier.reached)
            for tier in summary.tiers
        ],
        holes=[
            HoleBucket(least=hole.least, most=hole.most, holes=hole.holes, addresses=hole.addresses)
            for hole in summary.holes
        ],
        shares=[
            TenantShare(tenant=share.tenant, addresses=share.addresses, allocations=share.allocations)
            for share in summary.shares[:MOST_SHARES]
        ],
        wrong=list(summary.wrong),
        doubts=list(summary.doubts),
        conditions=[condition(found) for found in pool.status.conditions],
    )


def windows_of(layout: PoolLayout) -> list[AddressRange]:
    return [range_of(window, layout.family) for window in layout.windows]


def reserved_of(layout: PoolLayout) -> list[Reserved]:
    found = []
    for block in layout.blocks:
        where, cidr = range_of(block.addresses, layout.family), range_cidr(block.addresses, layout.family) or ""
        found.append(
            Reserved(cidr=cidr, description=block.description, start=where.start, end=where.end, count=where.count)
        )
    return found


def pool_free_blocks(pool: str, summary: Summary, size: int | None, *, align: bool) -> FreeBlocks:
    """Where so many addresses would fit."""
    family = summary.segments.family
    if summary.standing is None:
        return FreeBlocks(pool=pool, size=size, align=align, free=0, holes=0, largest=0, best_fit=None, blocks=[])
    found = free_blocks(summary.standing.free, size=size, align=align)
    return FreeBlocks(
        pool=pool,
        size=size,
        align=align,
        free=found.free,
        holes=found.holes,
        largest=found.largest,
        best_fit=range_of(found.best_fit, family) if found.best_fit else None,
        blocks=[_free_block(block, family) for block in found.blocks[:MOST_BLOCKS]],
    )


def _free_block(block: Block, family: Family) -> FreeBlock:
    return FreeBlock(
        start=address_text(block.hole.first, family),
        end=address_text(block.hole.last, family),
        count=block.hole.size,
        cidr=range_cidr(block.hole, family),
        fit_start=address_text(block.fit.first, family),
        fit_end=address_text(block.fit.last, family),
        best_fit=block.chosen,
    )
