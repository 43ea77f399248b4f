"""Live questions to tenants: which addresses they use, and what their MetalLB may announce.

A tenant is asked through its kubeconfig, which is read in the name of the person who wants to know: who may not read
that Secret learns nothing from here either. Nothing that was said is kept beyond a few seconds, and that only for who
asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

from butler.api.ipallocation import IPAllocation
from butler.api.objects import Key, key_of
from butler.api.tenantcluster import TenantCluster
from butler.capi.naming import MACHINE
from butler.kube.errors import Forbidden, NotFound
from butler.kube.resource import untyped
from butler.reports.estate import Estate
from butler.reports.release_impact import Impact, impact
from butler.reports.tenant.address_use import AddressUse, machine_uses, within
from butler.reports.tenant.addresses import TenantAddressReport, tenant_addresses
from butler.reports.tenant.summary import blocks
from butler.rules.allocation.held import readable_range
from butler.rules.allocation.owner import tenant_key
from butler.rules.loadbalancer.policy import terms_of
from butler.rules.tenant_namespace import tenant_namespace
from butler.server.access.person import Person
from butler.server.services import Services
from butler.server.visible_objects import provider_namespaces
from butler.tenant import usage_query
from butler.tenant.inventory import Inventory

MACHINES: Final = untyped(MACHINE.group, MACHINE.version, MACHINE.plural, MACHINE.kind)


async def inventories(
    services: Services, person: Person, clusters: Iterable[TenantCluster]
) -> dict[Key, Inventory | str]:
    """What each of these tenants uses, or why it is not known."""
    whom = [_whom(cluster) for cluster in clusters]
    return await usage_query.inventories(services.impersonator.client(person), whom)


def _whom(cluster: TenantCluster) -> usage_query.Whom:
    endpoint = cluster.status.control_plane_endpoint
    return usage_query.Whom(key_of(cluster), cluster.metadata.uid, tenant_namespace(cluster), endpoint)


async def addresses(services: Services, person: Person, clusters: Sequence[TenantCluster]) -> list[TenantAddressReport]:
    """Every address of these tenants and who has it, in the order of the tenants."""
    may_allocations, providers = (
        await services.permissions.allocations(person),
        await provider_namespaces(services, person),
    )
    told = await inventories(services, person, clusters)
    hidden = () if may_allocations else (_hidden(services.home),)
    found = []
    for cluster in clusters:
        provider = services.list_items.provider_of(cluster, providers)
        own = blocks(cluster, services.list_items.allocations_of(str(key_of(cluster)))) if may_allocations else None
        found.append(
            tenant_addresses(
                cluster.metadata.namespace,
                cluster.metadata.name,
                own,
                told[key_of(cluster)],
                served_class=terms_of(cluster, provider).served_class if provider else "",
                unseen=hidden,
            )
        )
    return found


async def recent_addresses(
    services: Services, person: Person, clusters: Sequence[TenantCluster]
) -> list[TenantAddressReport]:
    """The same, as the tenants said it a few seconds ago to a client of the same user."""
    who = (person.user, person.groups)
    return await services.list_items.drift.of(who, lambda: addresses(services, person, clusters))


def _hidden(home: str) -> str:
    return f"You may not read IPAllocations in {home}: what depends on that is left out."


async def release_impact(services: Services, person: Person, allocation: IPAllocation) -> Impact:
    """What hangs on an allocation, as far as the person may know."""
    estate = Estate(services.home, clusters=tuple(services.state.clusters.values()))
    held = readable_range(allocation)
    cluster = services.state.clusters.get(tenant_key(allocation))
    if held is None or cluster is None:
        return impact(allocation, estate, (), None)
    told, machines = await asyncio.gather(
        inventories(services, person, [cluster]), _machines(services, person, cluster)
    )
    return impact(allocation, estate, within(machines, *held), told[key_of(cluster)])


async def _machines(services: Services, person: Person, cluster: TenantCluster) -> list[AddressUse]:
    """The Machines of a cluster, as far as the person may read them."""
    try:
        listed = await services.impersonator.client(person).list(MACHINES, tenant_namespace(cluster))
    except (NotFound, Forbidden):
        return []
    return machine_uses(key_of(cluster), listed.items)
