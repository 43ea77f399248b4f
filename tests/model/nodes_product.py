"""Butler's own answers about node ranges that are deleted: real allocations and machines in, its decisions out."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from butler.api.codec import from_json
from butler.api.ipallocation import (
    IPAllocation,
    IPAllocationPhase,
    IPAllocationSpec,
    IPAllocationStatus,
    IPAllocationType,
)
from butler.api.labels import Annotation, Finalizer, Label
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
from butler.rules.machines import MachineAddresses
from model import butler_code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from model.nodes_state import Block, Cluster, Facts, Machine

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE: Final = "tenant-namespace"


class GivenUp(NamedTuple):
    """Masks of the blocks that a cluster does without."""

    at_once: int
    once_withdrawn: int


@lru_cache(1 << 16)
def given_up(view: Facts) -> GivenUp:
    """What a cluster's controller gives up that sees this."""
    granted = [_allocation(slot, block) for slot, block in enumerate(view.blocks) if block.held]
    desired = view.objects.replicas if view.objects is not None else 0
    fleet = butler_code.Fleet(_machines(view.machines), built=view.objects is not None, desired=desired)
    found = butler_code.give_up(granted, fleet, view.cluster.wanted)
    return GivenUp(_mask(found.at_once), _mask(found.once_withdrawn))


@lru_cache(1 << 16)
def are_used(blocks: tuple[Block, ...], slot: int, machines: tuple[Machine, ...]) -> bool:
    """Whether a machine has, or may have, an address of a block."""
    return bool(butler_code.machines_that_use(_allocation(slot, blocks[slot]), _machines(machines)))


@lru_cache(1 << 16)
def releases(block: Block, slot: int, cluster: Cluster, machines: tuple[Machine, ...] | None) -> bool:
    """Whether the controller of allocations releases one that it sees, having read the rest afresh.

    `machines`: None where there is no namespace, or nothing in it was begun.
    """
    allocation, owner = _allocation(slot, block), None if cluster.gone else _cluster(cluster)
    seen = butler_code.Observed(owner)
    if owner is not None and machines is not None:
        seen = butler_code.Observed(owner, NAMESPACE, _machines(machines))
    obstacle = butler_code.judge(allocation, seen)
    step = butler_code.decide_allocation(
        allocation, owner, None, retention=timedelta(days=1), now=NOW, obstacle=obstacle
    )
    return isinstance(step, butler_code.Release)


def _mask(allocations: Iterable[IPAllocation]) -> int:
    return sum(1 << int(allocation.metadata.uid) for allocation in allocations)


def _machines(machines: tuple[Machine, ...]) -> tuple[Any, ...]:
    return tuple(
        MachineAddresses(f"machine-{number}", (_address(machine.block),) if machine.shows else ())
        for number, machine in enumerate(machines)
    )


def _address(slot: int) -> str:
    return f"10.0.0.{slot + 1}"


def _cluster(cluster: Cluster) -> TenantCluster:
    metadata: dict[str, Any] = {"name": "tenant", "namespace": "team", "uid": "tenant"}
    if cluster.deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": cluster.wanted}}
    found = from_json(TenantCluster, {"metadata": metadata, "spec": spec})
    status = TenantClusterStatus(tenant_namespace=NAMESPACE if cluster.started else None)
    return msgspec.structs.replace(found, status=status)


def _allocation(slot: int, block: Block) -> IPAllocation:
    name = f"nodes-{slot}"
    return IPAllocation(
        metadata=ObjectMeta(
            name=name,
            namespace="butler-system",
            uid=str(slot),
            resource_version="1",
            deletion_timestamp=NOW if block.deleting else None,
            finalizers=(Finalizer.IP_ALLOCATION,),
            labels={Label.TENANT_UID.value: "tenant"},
            annotations={Annotation.FORCE_DELETE.value: name} if block.insisted else {},
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name="pool"),
            tenant_cluster_ref=NamespacedObjectReference(name="tenant", namespace="team"),
            type=IPAllocationType.NODES,
            count=1,
        ),
        status=IPAllocationStatus(
            phase=IPAllocationPhase.ALLOCATED if block.held else IPAllocationPhase.RELEASED,
            start_address=_address(slot),
            end_address=_address(slot),
            allocated_count=1,
            draining_since=NOW if block.marked else None,
        ),
    )
