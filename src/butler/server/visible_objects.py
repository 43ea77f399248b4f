"""Objects and list items, as far as a person may see them; `permissions` knows what they may."""

from __future__ import annotations

from butler.api.ipallocation import IPAllocationPhase
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key, key_of
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.kube.kinds import CLUSTERS, PROVIDERS
from butler.server.access.person import Person
from butler.server.models.providers import ProviderItem
from butler.server.models.tenants import TenantItem
from butler.server.presenters.providers import provider_item
from butler.server.problems import RequestRefused, forbidden, not_found
from butler.server.services import Services


async def need_pool(services: Services, person: Person, namespace: str, name: str) -> NetworkPool:
    """The pool, for a user who may see it. Other users are not told whether it exists."""
    await services.permissions.need_pools(person)
    found = services.state.pool(namespace, name)
    if found is None:
        raise not_found("NetworkPool", namespace, name)
    return found


async def tenant_namespaces(services: Services, person: Person) -> frozenset[str]:
    """Namespaces with tenants that the person may see."""
    return await services.permissions.tenants(
        person, {cluster.metadata.namespace for cluster in services.state.clusters.values()}
    )


async def seen_tenants(services: Services, person: Person) -> tuple[list[TenantItem], bool]:
    """The tenants that a person may see, and whether they may see those of all namespaces."""
    allowed = await tenant_namespaces(services, person)
    allocations, providers = await services.permissions.allocations(person), await provider_namespaces(services, person)
    items = [
        services.list_items.tenant(cluster, allocations=allocations, providers=providers)
        for cluster in services.state.clusters.values()
        if cluster.metadata.namespace in allowed
    ]
    return items, await services.permissions.may(person, "list", CLUSTERS)


async def need_tenant(services: Services, person: Person, namespace: str, name: str) -> TenantCluster:
    """The cluster, for a user who may see it. Other users are not told whether it exists."""
    if not await services.permissions.tenants(person, {namespace}):
        raise forbidden(f"read TenantClusters in namespace {namespace}")
    found = services.state.clusters.get(Key(namespace, name))
    if found is None:
        raise await _no_tenant(services, person, namespace, name)
    return found


async def provider_namespaces(services: Services, person: Person, *others: str) -> frozenset[str]:
    """Namespaces whose providers the person may see, among those with some, Butler's own, and others."""
    among = {provider.metadata.namespace for provider in services.state.providers.values()} | {services.home, *others}
    return await services.permissions.namespaces(person, PROVIDERS, among)


async def seen_providers(services: Services, person: Person) -> tuple[list[ProviderItem], bool]:
    """The providers that a person may see, and whether those are all."""
    allowed = await provider_namespaces(services, person)
    found = [provider for provider in services.state.providers.values() if provider.metadata.namespace in allowed]
    tenants = await tenant_namespaces(services, person)
    items = [provider_item(provider, len(tenants_on(services, provider, tenants))) for provider in found]
    return items, services.home in allowed and len(found) == len(services.state.providers)


def tenants_on(services: Services, config: ProviderConfig, namespaces: frozenset[str]) -> list[str]:
    """The clusters on a provider that lie in these namespaces."""
    return [
        tenant for tenant in services.list_items.tenants_of(key_of(config)) if tenant.partition("/")[0] in namespaces
    ]


async def _no_tenant(services: Services, person: Person, namespace: str, name: str) -> RequestRefused:
    """Addresses may be held for a cluster that Butler does not manage: to call it gone could cost them."""
    held = (
        services.list_items.allocations_of(f"{namespace}/{name}")
        if await services.permissions.allocations(person)
        else []
    )
    if not any(allocation.status.phase is IPAllocationPhase.ALLOCATED for allocation in held):
        return not_found("TenantCluster", namespace, name)
    return RequestRefused(
        404,
        f"there is no TenantCluster {name} in namespace {namespace}, but addresses are held for it: they were imported"
        " or pinned for a cluster that Butler does not manage, or the cluster is gone; see its allocations",
    )
