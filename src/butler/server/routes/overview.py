"""The first page: how much there is, and what needs attention."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from litestar import Request, Response, Router, get

from butler.api.tenantcluster import TenantClusterPhase
from butler.kube.kinds import PROVIDERS
from butler.reports.pool.overlaps import OverlapFinding
from butler.server.access.person import Person
from butler.server.cache import pool_summaries
from butler.server.cache.estate_overlaps import estate_overlaps
from butler.server.cache.list_items import in_phase
from butler.server.models.activity import Hidden, Overview, PhaseCount, Totals
from butler.server.models.allocations import AllocationItem
from butler.server.models.pools import PoolItem
from butler.server.models.providers import ProviderItem
from butler.server.models.tenants import TenantItem
from butler.server.presenters.attention import VisibleEstate, attention
from butler.server.responses import respond
from butler.server.services import Services, ThePerson, TheServices
from butler.server.visible_objects import provider_namespaces, seen_providers, seen_tenants

UNMET = ("Failed", "Pending")


@get("/overview", operation_id="getOverview")
async def get_overview(request: Request[Any, Any, Any], services: TheServices, person: ThePerson) -> Response[Overview]:
    """How much there is, and what an administrator should look at, the worst first."""
    seen, hidden = await _seen(services, person)
    allocations = "IPAllocation" not in hidden
    phases = Counter(tenant.phase for tenant in seen.tenants)
    totals = Totals(
        pools=len(seen.pools),
        addresses=sum(pool.total or 0 for pool in seen.pools),
        allocated=sum(pool.allocated or 0 for pool in seen.pools),
        allocations=len(services.list_items.allocations) if allocations else 0,
        waiting=len(seen.unmet),
        tenants=len(seen.tenants),
        tenants_ready=phases[TenantClusterPhase.READY.value],
        services_waiting=sum(tenant.services_waiting or 0 for tenant in seen.tenants),
        providers=len(seen.providers),
    )
    made = Overview(
        totals=totals,
        attention=attention(seen),
        phases=[PhaseCount(phase=phase, count=count) for phase, count in sorted(phases.items())],
        hidden=Hidden(kinds=hidden),
    )
    return respond(request, made)


async def _seen(services: Services, person: Person) -> tuple[VisibleEstate, list[str]]:
    """What the person may see, and the kinds of which that is not all."""
    hidden: list[str] = []
    may_pools, may_allocations = (
        await services.permissions.pools(person),
        await services.permissions.allocations(person),
    )
    pools: list[PoolItem] = []
    doubts: list[tuple[PoolItem, tuple[str, ...]]] = []
    found: Sequence[OverlapFinding] = ()
    unmet: list[AllocationItem] = []
    if may_pools and may_allocations:
        among = await provider_namespaces(services, person)
        for pool in services.state.pools.values():
            item = await pool_summaries.item(services.state, pool, providers=among)
            pools.append(item)
            wrong = (await pool_summaries.summary(services.state, pool)).doubts
            if wrong and services.list_items.is_settled(item.name):
                doubts.append((item, wrong))
        found = await estate_overlaps(services.state)
    if may_allocations:
        unmet = [allocation for phase in UNMET for allocation in services.list_items.allocations.items(in_phase(phase))]
    tenants: list[TenantItem]
    tenants, all_tenants = await seen_tenants(services, person)
    providers: list[ProviderItem]
    providers, all_providers = await seen_providers(services, person)
    for kind, is_whole in (
        ("NetworkPool", may_pools and may_allocations),
        ("IPAllocation", may_allocations),
        ("TenantCluster", all_tenants),
        (PROVIDERS.kind, all_providers),
    ):
        if not is_whole:
            hidden.append(kind)
    in_order = sorted(pools, key=lambda pool: (-(pool.percent or 0.0), pool.name))
    seen = VisibleEstate(in_order, doubts, unmet, tenants, providers, found, now=services.clock())
    return seen, hidden


router = Router("/", route_handlers=[get_overview], tags=["overview"])
