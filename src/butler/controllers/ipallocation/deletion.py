"""Reading what the deletion of an allocation may wait for: its owner, and machines that may use its addresses.

Everything is read afresh, because addresses are given back on the word that something is not there.
`rules/allocation/deletion.py` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation
from butler.api.objects import Key
from butler.capi.naming import MACHINE
from butler.kube.absence import read
from butler.kube.errors import NotFound
from butler.kube.kinds import CLUSTERS, WRITE_TIMEOUT
from butler.kube.resource import NAMESPACES, untyped
from butler.rules.allocation.deletion import Home, Observed
from butler.rules.allocation.owner import earlier_homes, owner_lives, tenant_key
from butler.rules.tenant.machines import read_machine
from butler.rules.tenant.namespaces import namespace_of_tenant

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
    namespace = namespace_of_tenant(named_tenant.name, owner.metadata.uid)
    home = await _home(client, namespace)
    if home is None and owner.status.tenant_namespace is None:
        await _mark(client, allocation, owner)
        home = await _home(client, namespace)
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


async def _mark(client: Client, allocation: IPAllocation, owner: TenantCluster) -> None:
    """Say on a cluster that is not built that this block is given back, before looking whether it is built after all.

    Who builds makes the namespace first and looks for the mark then (`tenantcluster.half_tenants`): of the two, the
    second sees the other, and nothing is built on addresses that are another's by then.
    """
    meta = {"uid": owner.metadata.uid, "annotations": {Annotation.GIVES_BACK.value: allocation.metadata.uid}}
    key = tenant_key(allocation)
    await client.patch(CLUSTERS, key.name, {"metadata": meta}, key.namespace, timeout=WRITE_TIMEOUT)
