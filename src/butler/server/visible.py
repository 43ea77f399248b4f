"""Objects and list items, as far as a person may see them; `sight` knows what they may."""

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
from butler.server.parts import Parts
from butler.server.problems import Refused, forbidden, not_found
from butler.server.shown.providers import provider_item


async def need_pool(parts: Parts, person: Person, namespace: str, name: str) -> NetworkPool:
    """The pool, for somebody who may see it. Whether it is there is told to nobody else."""
    await parts.sight.need_pools(person)
    found = parts.feed.pool(namespace, name)
    if found is None:
        raise not_found("NetworkPool", namespace, name)
    return found


async def tenant_namespaces(parts: Parts, person: Person) -> frozenset[str]:
    """Namespaces with tenants that the person may see."""
    return await parts.sight.tenants(person, {cluster.metadata.namespace for cluster in parts.feed.clusters.values()})


async def seen_tenants(parts: Parts, person: Person) -> tuple[list[TenantItem], bool]:
    """The tenants that a person may see, and whether they may see those of all namespaces."""
    allowed = await tenant_namespaces(parts, person)
    allocations, providers = await parts.sight.allocations(person), await provider_namespaces(parts, person)
    items = [
        parts.shelves.tenant(cluster, allocations=allocations, providers=providers)
        for cluster in parts.feed.clusters.values()
        if cluster.metadata.namespace in allowed
    ]
    return items, await parts.sight.may(person, "list", CLUSTERS)


async def need_tenant(parts: Parts, person: Person, namespace: str, name: str) -> TenantCluster:
    """The cluster, for somebody who may see it. Whether it is there is told to nobody else."""
    if not await parts.sight.tenants(person, {namespace}):
        raise forbidden(f"read TenantClusters in namespace {namespace}")
    found = parts.feed.clusters.get(Key(namespace, name))
    if found is None:
        raise await _no_tenant(parts, person, namespace, name)
    return found


async def provider_namespaces(parts: Parts, person: Person, *others: str) -> frozenset[str]:
    """Namespaces whose providers the person may see, among those with some, Butler's own, and others."""
    among = {provider.metadata.namespace for provider in parts.feed.providers.values()} | {parts.home, *others}
    return await parts.sight.namespaces(person, PROVIDERS, among)


async def seen_providers(parts: Parts, person: Person) -> tuple[list[ProviderItem], bool]:
    """The providers that a person may see, and whether those are all."""
    allowed = await provider_namespaces(parts, person)
    found = [provider for provider in parts.feed.providers.values() if provider.metadata.namespace in allowed]
    tenants = await tenant_namespaces(parts, person)
    items = [provider_item(provider, len(tenants_on(parts, provider, tenants))) for provider in found]
    return items, parts.home in allowed and len(found) == len(parts.feed.providers)


def tenants_on(parts: Parts, config: ProviderConfig, namespaces: frozenset[str]) -> list[str]:
    """The clusters on a provider that lie in these namespaces."""
    return [text for text in parts.shelves.tenants_of(key_of(config)) if text.partition("/")[0] in namespaces]


async def _no_tenant(parts: Parts, person: Person, namespace: str, name: str) -> Refused:
    """Addresses may be held for a cluster that Butler does not manage: to call it gone could cost them."""
    held = parts.shelves.allocations_of(f"{namespace}/{name}") if await parts.sight.allocations(person) else []
    if not any(allocation.status.phase is IPAllocationPhase.ALLOCATED for allocation in held):
        return not_found("TenantCluster", namespace, name)
    return Refused(
        404,
        f"there is no TenantCluster {name} in namespace {namespace}, but addresses are held for it: they were imported"
        " or pinned for a cluster that Butler does not manage, or the cluster is gone; see its allocations",
    )
