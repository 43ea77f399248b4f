"""Clusters and allocations that come back from a backup, with new UIDs and without status.

The addresses are safe: an allocation from another life gets what it had, or waits, and is no orphan. The machines
are what is unknown. They may run in the namespace of the cluster's earlier life, which Cluster API may or may
not look after here, or they may be gone. To build a second set of machines on the same addresses would put two machines
on one address. So a cluster that comes back is not built before a person says that it should be (by removing the
annotation), nor while the namespace of its earlier life is there. Then its allocations become its own.

A cluster that is applied from Git has no such annotation, though its allocations come from a backup; nor has one of a
backup that is older than the annotation. Its allocations, or the status that came with it, tell where it was built:
Butler notes it, and from then on it is a cluster that came back.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Annotation, ConditionType, Label, TenantClusterReason
from butler.api.objects import Key
from butler.controllers.ipallocation.record import record_patch
from butler.controllers.tenantcluster.foreign_objects import NAMESPACE, resource_of_kind
from butler.ipam.granted import due_record, is_from_another_life
from butler.kube.absence import read
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, WRITE_TIMEOUT
from butler.rules.allocation.owner import earlier_homes, named_owners
from butler.rules.blocked import Blocked
from butler.rules.tenant.requested_addresses import AddressesRefused
from butler.rules.tenant_namespace import namespace_of_tenant, tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client


UNKNOWN: Final = "unknown"
"""In place of the UID that a cluster had."""


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


def missing_note(cluster: TenantCluster, own: Sequence[IPAllocation]) -> str | None:
    """What a cluster lacks that was built in another life, by its allocations or by a status that came along. Pure.

    None where it was built in this life, and where a person took the note away: then the status has told of it.
    """
    said = find_condition(cluster.status.conditions, ConditionType.INFRASTRUCTURE_READY)
    home = cluster.status.tenant_namespace
    if Annotation.BUILT_AS in cluster.metadata.annotations or home == tenant_namespace(cluster):
        return None
    if said is not None and said.reason == TenantClusterReason.RESTORED:
        return None
    owners = {uid for allocation in own if is_from_another_life(allocation) for uid in named_owners(allocation)}
    earlier = min(owners - {cluster.metadata.uid}, default=None)
    if home is None and earlier is not None:
        home = namespace_of_tenant(cluster.metadata.name, earlier)
    return f"{home} {earlier or UNKNOWN}" if home is not None else None


async def note(client: Client, cluster: TenantCluster, own: Sequence[IPAllocation]) -> bool:
    """Write what is missing on the cluster as it was seen; whether there was anything to write."""
    missing, meta = missing_note(cluster, own), cluster.metadata
    if missing is None:
        return False
    patch = {
        "metadata": {
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
            "annotations": {Annotation.BUILT_AS.value: missing},
        }
    }
    with contextlib.suppress(Conflict, NotFound):  # it changed meanwhile, and is looked at again
        await client.patch(CLUSTERS, meta.name, patch, meta.namespace, timeout=WRITE_TIMEOUT)
    return True


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
