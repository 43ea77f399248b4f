"""Pools: lists, one pool, and everything that is drawn of it. Reads only; `pool_writes` changes them."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, Router, get

from butler.api.networkpool import AllocationDefaults
from butler.server.cache import pool_summaries
from butler.server.cache.pool_summaries import PoolSnapshot
from butler.server.models.pools import (
    Defaults,
    HoleBucket,
    PoolDetail,
    PoolItem,
    PoolList,
    Segments,
    TenantShare,
    TierMark,
)
from butler.server.parameters import Cursor, Limit, Name, Namespace, Sort, Text
from butler.server.presenters.common import condition, range_of
from butler.server.presenters.pools import layout_of, reserved_of, windows_of
from butler.server.presenters.segments import columns_of
from butler.server.responses import USUAL, Encoded, answer, encoded, packed, page
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool, provider_namespaces

MOST_SHARES = 20
SORTS = {
    "name": lambda item: item.name,
    "cidr": lambda item: item.cidr,
    "percent": lambda item: item.percent,
    "available": lambda item: item.available,
    "total": lambda item: item.total,
    "largestFreeBlock": lambda item: item.largest_free_block,
    "fragmentationPercent": lambda item: item.fragmentation_percent,
    "waiting": lambda item: item.waiting,
}


@get("/pools", operation_id="listPools")
async def list_pools(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    limit: Limit = USUAL,
    cursor: Cursor = None,
    sort: Sort = "name",
    q: Text = "",
) -> Response[PoolList]:
    """All pools, each with its counters."""
    await services.permissions.need_pools(person)
    providers = await provider_namespaces(services, person)
    items = [
        await pool_summaries.item(services.state, pool, providers=providers) for pool in services.state.pools.values()
    ]
    wanted = [
        pool_item
        for pool_item in items
        if q.lower() in f"{pool_item.namespace}/{pool_item.name} {pool_item.cidr}".lower()
    ]
    found = page(
        wanted, sorts=SORTS, sort=sort, limit=limit, cursor=cursor, key=lambda item: (item.namespace, item.name)
    )
    return answer(request, PoolList(items=found.items, total=found.total, next=found.next))


@get("/pools/{namespace:str}/{name:str}", operation_id="getPool")
async def get_pool(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[PoolDetail]:
    """Everything about one pool but its segments."""
    pool = await need_pool(services, person, namespace, name)
    providers = await provider_namespaces(services, person)
    return answer(request, await pool_summaries.page(services.state, pool, "detail", _detail, providers=providers))


def _detail(at: PoolSnapshot, shown: PoolItem) -> Encoded:
    pool, found = at.pool, at.summary
    layout, network, family = layout_of(pool), found.segments.network, found.segments.family
    defaults = pool.spec.tenant_allocation.defaults if pool.spec.tenant_allocation else AllocationDefaults()
    whole = range_of(network, family) if network else None
    made = PoolDetail(
        pool=shown,
        start=whole.start if whole else None,
        end=whole.end if whole else None,
        count=whole.count if whole else 0,
        windows=windows_of(layout) if layout else [],
        reserved=reserved_of(layout) if layout else [],
        defaults=Defaults(nodes_per_tenant=defaults.nodes_per_tenant, lb_pool_per_tenant=defaults.lb_pool_per_tenant),
        tiers=[
            TierMark(tier=tier.tier.value, percent=tier.percent, addresses=tier.addresses, reached=tier.reached)
            for tier in found.tiers
        ],
        holes=[
            HoleBucket(least=hole.least, most=hole.most, holes=hole.holes, addresses=hole.addresses)
            for hole in found.holes
        ],
        shares=[
            TenantShare(tenant=share.tenant, addresses=share.addresses, allocations=share.allocations)
            for share in found.shares[:MOST_SHARES]
        ],
        wrong=list(found.wrong),
        doubts=list(found.doubts),
        conditions=[condition(item) for item in pool.status.conditions],
    )
    return encoded(made)


@get("/pools/{namespace:str}/{name:str}/segments", operation_id="getSegments")
async def get_segments(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Segments]:
    """Where everything in a pool is: bar, map and export draw from this."""
    pool = await need_pool(services, person, namespace, name)
    made = await pool_summaries.made(services.state, pool, "segments", lambda found: packed(columns_of(found.segments)))
    return answer(request, made)


router = Router("/", route_handlers=[list_pools, get_pool, get_segments], tags=["pools"])
