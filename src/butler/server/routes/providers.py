"""Providers: where tenants go. Reads only."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response, Router, get

from butler.api.objects import Key
from butler.server.list_page import USUAL, Sorts, sorted_page
from butler.server.models.providers import ProviderDetail, ProviderItem, ProviderList
from butler.server.parameters import Cursor, Limit, Name, Namespace, Sort, Text
from butler.server.presenters.providers import provider_detail
from butler.server.problems import forbidden, not_found
from butler.server.responses import respond
from butler.server.services import ThePerson, TheServices
from butler.server.visible_objects import provider_namespaces, seen_providers, tenant_namespaces, tenants_on

SORTS: Sorts[ProviderItem] = {
    "name": lambda provider: provider.name,
    "provider": lambda provider: provider.provider,
    "mode": lambda provider: provider.mode,
    "ready": lambda provider: int(provider.ready),
    "tenants": lambda provider: provider.tenants,
    "available": lambda provider: provider.available,
    "estimatedTenants": lambda provider: provider.estimated_tenants,
}


@get("/providers", operation_id="listProviders")
async def list_providers(
    request: Request[Any, Any, Any],
    services: TheServices,
    person: ThePerson,
    limit: Limit = USUAL,
    cursor: Cursor = None,
    sort: Sort = "name",
    q: Text = "",
) -> Response[ProviderList]:
    """The providers that the person may see."""
    if not await provider_namespaces(services, person):
        raise forbidden(f"read ProviderConfigs in namespace {services.home}")
    items, _ = await seen_providers(services, person)
    sought = q.strip().lower()
    wanted = [
        provider_item
        for provider_item in items
        if sought in f"{provider_item.namespace}/{provider_item.name} {provider_item.provider}".lower()
    ]
    page = sorted_page(wanted, sorts=SORTS, sort=sort, limit=limit, cursor=cursor)
    return respond(request, ProviderList(items=page.items, total=page.total, next=page.next))


@get("/providers/{namespace:str}/{name:str}", operation_id="getProvider")
async def get_provider(
    request: Request[Any, Any, Any], services: TheServices, person: ThePerson, namespace: Namespace, name: Name
) -> Response[ProviderDetail]:
    """One provider, with its pools in the order in which they are tried, and the tenants on it."""
    config = services.state.providers.get(Key(namespace, name))
    if namespace not in await provider_namespaces(services, person, namespace):
        raise forbidden(f"read ProviderConfigs in namespace {namespace}")
    if config is None:
        raise not_found("ProviderConfig", namespace, name)
    tenants = tenants_on(services, config, await tenant_namespaces(services, person))
    pools = {pool.metadata.name: pool for pool in services.state.pools.values()}
    return respond(
        request, provider_detail(config, pools if await services.permissions.pools(person) else None, tenants)
    )


router = Router("/", route_handlers=[list_providers, get_provider], tags=["providers"])
