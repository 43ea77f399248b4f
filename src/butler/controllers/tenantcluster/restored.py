"""Clusters and allocations that come back from a backup, with new UIDs and without status.

The addresses are safe: an allocation from another life gets what it had, or waits, and is no orphan. The machines
are what is unknown. They may run in the namespace of the cluster's earlier life, which Cluster API may or may
not look after here, or they may be gone. To build a second set of machines on the same addresses would put two machines
on one address. So a cluster that comes back is not built before a person says that it should be (by removing the
annotation), nor while the namespace of its earlier life is there. Then its allocations become its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation, ConditionType, Label, TenantClusterReason
from butler.api.objects import Key
from butler.controllers.ipallocation.record import record_patch
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE, resource_of_kind
from butler.ipam.granted import due_record, is_from_another_life
from butler.kube.absence import read
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import ALLOCATIONS, WRITE_TIMEOUT
from butler.rules.allocation.owner import earlier_homes
from butler.rules.tenant.blocked import Blocked
from butler.rules.tenant.namespaces import tenant_namespace
from butler.rules.tenant.requested_addresses import AddressesRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client


def built_as(cluster: TenantCluster) -> str:
    """What a cluster that is built notes about itself."""
    return f"{tenant_namespace(cluster)} {cluster.metadata.uid}"


def came_back(cluster: TenantCluster) -> Blocked | None:
    """Why a cluster that was built in another life is not built now. Pure."""
    noted = cluster.metadata.annotations.get(Annotation.BUILT_AS)
    if not noted or noted == built_as(cluster):
        return None
    namespace, _, uid = noted.partition(" ")
    if uid == cluster.metadata.uid:
        return None
    meta = cluster.metadata
    return _restored(
        f"it comes from a backup: it was built in namespace {namespace}, and its machines may still run and use its"
        " addresses. Its IPAllocations are kept for it. If the machines are gone and it should be built anew on the"
        f" same addresses: kubectl annotate tenantcluster {meta.name} -n {meta.namespace} {Annotation.BUILT_AS}-"
    )


def earlier_lives(cluster: TenantCluster, allocations: Sequence[IPAllocation]) -> list[str]:
    """Namespaces in which machines may be that use the addresses of these allocations. Pure."""
    return sorted({namespace for allocation in allocations for namespace in earlier_homes(allocation, cluster)})


async def take_over(client: Client, cluster: TenantCluster, own: Sequence[IPAllocation]) -> bool:
    """Make what came back the cluster's own, all of it or nothing; True when something was written.

    Raises `AddressesRefused` while machines may use it in the namespace of an earlier life.
    """
    from_another_life = [allocation for allocation in own if is_from_another_life(allocation)]
    for namespace in earlier_lives(cluster, from_another_life):
        if await read(client, resource_of_kind(NAMESPACE), Key("", namespace)) is not None:
            raise AddressesRefused(
                _restored(
                    f"its addresses come from a backup, and namespace {namespace}, in which they were used, exists:"
                    " machines in it may use them. Delete that namespace if the machines are gone"
                )
            )
    if any(allocation.status.phase is not IPAllocationPhase.ALLOCATED for allocation in from_another_life):
        return False  # it waits for them like for any other
    for allocation in from_another_life:
        meta = allocation.metadata
        patch = record_patch(allocation, due_record(allocation), {Label.TENANT_UID.value: cluster.metadata.uid})
        try:
            await client.patch(ALLOCATIONS, meta.name, patch, meta.namespace, timeout=WRITE_TIMEOUT)
        except (Conflict, NotFound):
            continue  # it changed meanwhile, and is looked at again
    return bool(from_another_life)


def _restored(message: str) -> Blocked:
    return Blocked(ConditionType.INFRASTRUCTURE_READY, TenantClusterReason.RESTORED, message)
