"""Tenant clusters: lists, and one of them with all that is told of it. Reads only."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Request, Response, Router, get
from litestar.params import QueryParameter

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of
from butler.api.tenantcluster import TenantCluster, TenantClusterPhase
from butler.kube.kinds import CLUSTERS
from butler.reports.tenant import summary as view
from butler.reports.tenant.health import phase_of
from butler.server import tenant_queries
from butler.server.list_page import USUAL, Sorts, sorted_page
from butler.server.models.tenants import DriftList, TenantAddresses, TenantDetail, TenantItem, TenantList
from butler.server.parameters import Cursor, Limit, Name, Namespace, Sort, Text
from butler.server.presenters.common import condition
from butler.server.presenters.manifest import as_yaml, written
from butler.server.presenters.tenants import (
    shown_addresses,
    shown_blocks,
    shown_drift,
    shown_tenant,
    shown_use,
    tenant_changes,
)
from butler.server.problems import forbidden
from butler.server.responses import respond
from butler.server.services import Services, ThePerson, TheServices
from butler.server.visible_objects import need_tenant, provider_namespaces, seen_tenants, tenant_namespaces

UP = (TenantClusterPhase.READY, TenantClusterPhase.UPDATING)

Phase = Annotated[TenantClusterPhase | None, QueryParameter(description="In this phase.")]
Provider = Annotated[str | None, QueryParameter(description="On this provider, as the list names it.", max_length=320)]
Team = Annotated[str | None, QueryParameter(description="Of this team.", max_length=253)]
InNamespace = Annotated[str | None, QueryParameter(description="In it.", max_length=63)]

SORTS: Sorts[TenantItem] = {
    "name": lambda tenant: tenant.name,
    "namespace": lambda tenant: f"{tenant.namespace}/{tenant.name}",
    "phase": lambda tenant: tenant.phase,
    "since": lambda tenant: tenant.since.timestamp() if tenant.since else None,
    "version": lambda tenant: tenant.version,
    "workers": lambda tenant: tenant.workers_wanted,
    "provider": lambda tenant: tenant.provider,
    "team": lambda tenant: tenant.team,
    "nodeAddresses": lambda tenant: tenant.node_addresses,
    "loadBalancerAddresses": lambda tenant: tenant.load_balancer_addresses,
    "loadBalancersInUse": lambda tenant: tenant.load_balancers_in_use,
    "servicesWaiting": lambda tenant: tenant.services_waiting,
    "createdAt": lambda tenant: tenant.created_at.timestamp() if tenant.created_at else None,
}


@get("/tenants", operation_id="listTenants")
async def list_tenants(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    phase: Phase = None,
    provider: Provider = None,
    team: Team = None,
    namespace: InNamespace = None,
    limit: Limit = USUAL,
    cursor: Cursor = None,
    sort: Sort = "name",
    q: Text = "",
) -> Response[TenantList]:
    """The tenants of all namespaces in which the person may see them; of one, it says so when they may not."""
    if namespace is not None and not await services.permissions.tenants(person, {namespace}):
        raise forbidden(f"read TenantClusters in namespace {namespace}")
    items, _ = await seen_tenants(services, person)
    sought = q.strip().lower()
    wanted = [
        tenant
        for tenant in items
        if (phase is None or tenant.phase == phase.value)
        and (provider is None or tenant.provider == provider)
        and (team is None or tenant.team == team)
        and (namespace is None or tenant.namespace == namespace)
        and sought in f"{tenant.namespace}/{tenant.name} {tenant.provider} {tenant.team} {tenant.version}".lower()
    ]
    page = sorted_page(wanted, sorts=SORTS, sort=sort, limit=limit, cursor=cursor)
    namespaces = sorted({tenant_item.namespace for tenant_item in items})
    return respond(request, TenantList(items=page.items, total=page.total, next=page.next, namespaces=namespaces))


@get("/tenants/{namespace:str}/{name:str}", operation_id="getTenant")
async def get_tenant(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[TenantDetail]:
    """One tenant: where it stands, and what Butler gave it."""
    cluster = await need_tenant(services, person, namespace, name)
    allocations = await services.permissions.allocations(person)
    providers = await provider_namespaces(services, person)
    return respond(request, _detail(services, cluster, allocations=allocations, providers=providers))


def _detail(
    services: Services, cluster: TenantCluster, *, allocations: bool, providers: frozenset[str]
) -> TenantDetail:
    own = services.list_items.allocations_of(str(key_of(cluster))) if allocations else None
    found = view.tenant(cluster, own, services.list_items.provider_of(cluster, providers), services.home)
    return TenantDetail(
        tenant=shown_tenant(cluster, found),
        steps=[condition(step) for step in found.steps],
        blocks=shown_blocks(found),
        load_balancers=shown_use(found),
        changes=tenant_changes(cluster, own or ()),
        yaml=as_yaml(written(cluster, CLUSTERS)),
    )


@get("/tenants/{namespace:str}/{name:str}/addresses", operation_id="getTenantAddresses")
async def get_addresses(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[TenantAddresses]:
    """Every address of a tenant and who has it, as the tenant itself says when it is asked now."""
    cluster = await need_tenant(services, person, namespace, name)
    found = await tenant_queries.addresses(services, person, [cluster])
    return respond(request, shown_addresses(found[0]))


@get("/drift", operation_id="getDrift")
async def get_drift(request: Request[Any, Any, Any], services: TheServices, person: ThePerson) -> Response[DriftList]:
    """What MetalLB of each tenant may announce, beside what the tenant holds; all are asked, at most each ten seconds.

    What is out of step comes first, then what could not be asked."""
    await services.permissions.need_allocations(person)
    allowed = await tenant_namespaces(services, person)
    clusters = [cluster for cluster in services.state.clusters.values() if cluster.metadata.namespace in allowed]
    asked = [cluster for cluster in sorted(clusters, key=key_of) if _is_asked(services, cluster)]
    told = await tenant_queries.recent_addresses(services, person, asked)
    # What was told is kept for a while, and what the user may see may have changed since.
    found = [shown_drift(addresses) for addresses in told if addresses.namespace in allowed]
    order = {False: 0, None: 1, True: 2}
    items = sorted(found, key=lambda drift: (order[drift.in_step], drift.namespace, drift.name))
    return respond(request, DriftList(items=items, not_asked=max(0, len(clusters) - len(found))))


def _is_asked(services: Services, cluster: TenantCluster) -> bool:
    """Whether it is up, and has load-balancer addresses from pools."""
    own = services.list_items.allocations_of(str(key_of(cluster)))
    return phase_of(cluster) in UP and any(allocation.spec.type is IPAllocationType.LOAD_BALANCER for allocation in own)


router = Router("/", route_handlers=[list_tenants, get_tenant, get_addresses, get_drift], tags=["tenants"])
