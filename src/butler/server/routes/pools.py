"""Pools: lists, one pool, and everything that is drawn of it. Reads only; `pool_writes` changes them."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, Router, get

from butler.server.cache import pool_summaries
from butler.server.list_page import USUAL, Sorts, sorted_page
from butler.server.models.pools import PoolDetail, PoolItem, PoolList, Segments
from butler.server.parameters import Cursor, Limit, Name, Namespace, Sort, Text
from butler.server.responses import respond
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import need_pool, provider_namespaces

SORTS: Sorts[PoolItem] = {
    "name": lambda pool: pool.name,
    "cidr": lambda pool: pool.cidr,
    "percent": lambda pool: pool.percent,
    "available": lambda pool: pool.available,
    "total": lambda pool: pool.total,
    "largestFreeBlock": lambda pool: pool.largest_free_block,
    "fragmentationPercent": lambda pool: pool.fragmentation_percent,
    "waiting": lambda pool: pool.waiting,
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
    state, sought = services.state, q.lower()
    pools = [await pool_summaries.item(state, pool, providers=providers) for pool in state.pools.values()]
    wanted = [pool for pool in pools if sought in f"{pool.namespace}/{pool.name} {pool.cidr}".lower()]
    page = sorted_page(wanted, sorts=SORTS, sort=sort, limit=limit, cursor=cursor)
    return respond(request, PoolList(items=page.items, total=page.total, next=page.next))


@get("/pools/{namespace:str}/{name:str}", operation_id="getPool")
async def get_pool(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[PoolDetail]:
    """Everything about one pool but its segments."""
    pool = await need_pool(services, person, namespace, name)
    providers = await provider_namespaces(services, person)
    return respond(request, await pool_summaries.detail(services.state, pool, providers=providers))


@get("/pools/{namespace:str}/{name:str}/segments", operation_id="getSegments")
async def get_segments(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[Segments]:
    """Where everything in a pool is: bar, map and export draw from this."""
    pool = await need_pool(services, person, namespace, name)
    return respond(request, await pool_summaries.segments(services.state, pool))


router = Router("/", route_handlers=[list_pools, get_pool, get_segments], tags=["pools"])
