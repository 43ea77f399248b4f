"""Who uses the addresses of an allocation, found out while an API server waits for an answer.

Machines are listed on the management cluster. Services are the tenant's own, so the tenant is asked, for a moment: a
tenant may be slow or away, and then the figures stand in that its TenantCluster shows.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of
from butler.capi.naming import MACHINE
from butler.ipam.addresses import BadAddress, Family, parse_address
from butler.kube.errors import KubeError, NotFound
from butler.kube.resource import untyped
from butler.rules.allocation.admission import AddressUsers
from butler.rules.allocation.held import granted_range
from butler.rules.machines import in_range, may_have, read_machine
from butler.rules.tenant_namespace import tenant_namespace
from butler.tenant import usage_query as asking

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.addresses import Range
    from butler.kube.client import Client

MACHINES: Final = untyped(MACHINE.group, MACHINE.version, MACHINE.plural, MACHINE.kind)
TENANT_PATIENCE: Final = 1.5
"""Seconds that the tenant has; the whole answer has four."""


async def users_of(client: Client, allocation: IPAllocation, owner: TenantCluster, patience: float) -> AddressUsers:
    """What uses an allocation of a living cluster."""
    granted = granted_range(allocation)
    if granted is None:
        return AddressUsers(unknown="its status does not say which addresses these are")
    family, held = granted
    if allocation.spec.type is IPAllocationType.LOAD_BALANCER:
        return await _services(client, owner, family, held)
    return await _machines(client, owner, family, held, patience)


async def _machines(client: Client, owner: TenantCluster, family: Family, held: Range, patience: float) -> AddressUsers:
    try:
        listed = await client.list(MACHINES, tenant_namespace(owner), timeout=patience)
    except NotFound:
        return AddressUsers(unknown="Cluster API, which knows its machines, is not served")
    except KubeError as error:
        return AddressUsers(unknown=f"its machines cannot be listed ({error})")
    machines = [read_machine(obj) for obj in listed.items]
    having = in_range(machines, family, held)
    if having:
        return AddressUsers(tuple(f"Machine {name} ({address})" for name, address in having))
    booting = may_have(machines, family, held)
    return AddressUsers(unknown=f"Machine {booting[0]} does not say yet which address it has" if booting else "")


async def _services(client: Client, owner: TenantCluster, family: Family, held: Range) -> AddressUsers:
    if owner.status.tenant_namespace is None:
        return AddressUsers()
    whom = asking.Whom(key_of(owner), owner.metadata.uid, tenant_namespace(owner), owner.status.control_plane_endpoint)
    try:
        async with asyncio.timeout(TENANT_PATIENCE):
            told = (await asking.inventories(client, [whom]))[whom.key]
    except TimeoutError:
        told = "it does not answer"
    if isinstance(told, str):
        return AddressUsers(unknown=f"which Services use them cannot be told{_figures(owner)}: {told}")
    return AddressUsers(
        tuple(
            f"Service {service} ({address})"
            for service in told.balancers
            for address in service.addresses
            if _is_in(address, family, held)
        )
    )


def _figures(owner: TenantCluster) -> str:
    use = owner.status.load_balancers
    if use is None:
        return ""
    return f" (when last seen, {use.services} Services had {use.in_use} of its {use.held} load-balancer addresses)"


def _is_in(text: str, family: Family, held: Range) -> bool:
    try:
        other, value = parse_address(text)
    except BadAddress:
        return False
    return other is family and held.first <= value <= held.last
