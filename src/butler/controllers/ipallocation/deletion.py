"""Reading what the deletion of an allocation may wait for: its owner, and machines that may use its addresses.

Everything is read afresh, because addresses are given back on the word that something is not there.
`rules/allocation/deletion.py` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.objects import Key
from butler.capi.naming import MACHINE
from butler.controllers.ipallocation.marks import is_begun, leave_mark
from butler.kube.absence import read
from butler.kube.errors import NotFound
from butler.kube.kinds import CLUSTERS
from butler.kube.resource import NAMESPACES, untyped
from butler.rules.allocation.deletion import Home, Observed
from butler.rules.allocation.owner import earlier_homes, owner_lives, tenant_key
from butler.rules.machines import read_machine
from butler.rules.tenant_namespace import namespace_of_tenant

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client

MACHINES: Final = untyped(MACHINE.group, MACHINE.version, MACHINE.plural, MACHINE.kind)


async def observe(client: Client, allocation: IPAllocation, known: TenantCluster | None) -> Observed:
    """Read what is there of the owner. `known` is the TenantCluster of its name, as far as our view has it."""
    named_tenant = tenant_key(allocation)
    found = known
    if not owner_lives(allocation, known):
        found = await read(client, CLUSTERS, named_tenant)
    owner = found if owner_lives(allocation, found) else None
    homes = [await _home(client, namespace) for namespace in sorted(earlier_homes(allocation, owner))]
    left_behind = tuple(home for home in homes if home is not None)
    if owner is None:
        return Observed(None, left_behind=left_behind)
    if owner.status.tenant_namespace is None and not await is_begun(client, owner):
        # From the mark on nothing is built with it, and up to the mark nothing was.
        marked = await leave_mark(client, owner, allocation)
        if marked is None:
            return Observed(owner, left_behind=left_behind, another_first=True)
        if not await is_begun(client, owner):
            return Observed(marked, left_behind=left_behind)
    home = await _home(client, namespace_of_tenant(named_tenant.name, owner.metadata.uid))
    if home is None:
        return Observed(owner, left_behind=left_behind)
    return Observed(owner, home.namespace, home.machines, left_behind)


async def _home(client: Client, namespace: str) -> Home | None:
    """The machines in a namespace; None where there is no such namespace."""
    if await read(client, NAMESPACES, Key("", namespace)) is None:
        return None
    try:
        listed = await client.list(MACHINES, namespace)
    except NotFound:
        return Home(namespace, None)
    return Home(namespace, tuple(map(read_machine, listed.items)))
