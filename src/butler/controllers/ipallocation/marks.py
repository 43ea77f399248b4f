"""The mark on a cluster that is not built: which of its blocks is given back.

A cluster is built, or gives a block back, never both. Two processes may reconcile it at once, one of them frozen at
any point and with an old view. So both write the TenantCluster first, each valid only for the version that it read:
the one that gives back names the allocation's UID, the one that builds writes the phase into the status. The second
write is refused; its process reads again and finds the other's.

A mark is never taken back, nor replaced as long as the block that it names is held: another process may be about to
release that block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation, Label
from butler.api.objects import Key, key_of, uid_of, version_of
from butler.capi.naming import CLUSTER
from butler.kube.absence import read
from butler.kube.errors import NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, WRITE_TIMEOUT
from butler.kube.resource import NAMESPACES, untyped
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client


async def leave_mark(client: Client, cluster: TenantCluster, block: IPAllocation) -> TenantCluster | None:
    """Name a block on the cluster, which as it was seen is not built; None: another one is named, and is held still.

    Raises Conflict when the cluster is another by now.
    """
    before, uid = cluster.metadata.annotations.get(Annotation.GIVES_BACK), uid_of(block)
    if before == uid:
        return cluster
    if before is not None and await _is_held(client, cluster, before, block.metadata.namespace):
        return None
    meta = {
        "uid": uid_of(cluster),
        "resourceVersion": version_of(cluster),
        "annotations": {Annotation.GIVES_BACK.value: uid},
    }
    key = key_of(cluster)
    return await client.patch(CLUSTERS, key.name, {"metadata": meta}, key.namespace, timeout=WRITE_TIMEOUT)


async def _is_held(client: Client, cluster: TenantCluster, uid: str, namespace: str) -> bool:
    """Whether the server, asked now, has the allocation with this UID as granted; those made by hand have no label."""
    for selector in (f"{Label.TENANT_UID}={uid_of(cluster)}", f"!{Label.TENANT_UID}"):
        listed = await client.list(ALLOCATIONS, namespace, label_selector=selector)
        if any(
            uid_of(allocation) == uid and allocation.status.phase is IPAllocationPhase.ALLOCATED
            for allocation in listed.items
        ):
            return True
    return False


async def is_begun(client: Client, cluster: TenantCluster) -> bool:
    """Whether anything is built, whatever the status says: it may have been written by hand. An empty namespace is
    nothing: its maker may have died."""
    namespace = tenant_namespace(cluster)
    kind = untyped(CLUSTER.group, CLUSTER.version, CLUSTER.plural, CLUSTER.kind)
    try:
        return await read(client, kind, Key(namespace, cluster.metadata.name)) is not None
    except NotFound:  # Cluster API is not served, so whether the Cluster exists is unknown
        return await read(client, NAMESPACES, Key("", namespace)) is not None
