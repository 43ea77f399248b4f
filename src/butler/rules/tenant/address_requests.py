"""The IPAllocations that Butler creates for a cluster: their names, labels and annotations. Pure."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocation, IPAllocationSpec, IPAllocationType
from butler.api.labels import AllocationRole, Annotation, Finalizer, Label
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from butler.api.ipallocation import PinnedIPRange
    from butler.api.tenantcluster import TenantCluster

LABEL_LENGTH = 63
NAMES = {IPAllocationType.NODES: "nodes", IPAllocationType.LOAD_BALANCER: "lb"}


def new_request(
    cluster: TenantCluster,
    type_: IPAllocationType,
    pool: str,
    count: int,
    name: str,
    home: str,
    *,
    grown: bool,
    pinned: PinnedIPRange | None = None,
    reason: str = "",
    together: Sequence[IPAllocationType] = (),
) -> IPAllocation:
    """An IPAllocation that asks for addresses; `grown` are those that a cluster gets later, `together` all the blocks
    that it gets at once or not at all."""
    labels = {
        Label.NETWORK_POOL: pool,
        Label.TENANT: cluster.metadata.name,
        Label.TENANT_UID: cluster.metadata.uid,
        Label.ALLOCATION_TYPE: str(type_),
        Label.ALLOCATION_ROLE: str(AllocationRole.GROWTH if grown else AllocationRole.INITIAL),
    }
    if cluster.spec.team_ref is not None:
        labels[Label.TEAM] = cluster.spec.team_ref.name
    return IPAllocation(
        metadata=ObjectMeta(
            name=name,
            namespace=home,
            labels={str(key): value for key, value in labels.items() if len(value) <= LABEL_LENGTH},
            annotations=({Annotation.REASON.value: reason} if reason else {}) | _as_a_unit(cluster, together),
            finalizers=(Finalizer.IP_ALLOCATION.value,),
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name=pool),
            tenant_cluster_ref=NamespacedObjectReference(
                name=cluster.metadata.name, namespace=cluster.metadata.namespace
            ),
            type=type_,
            count=None if pinned else count,
            pinned_range=pinned,
        ),
    )


def _as_a_unit(cluster: TenantCluster, together: Sequence[IPAllocationType]) -> dict[str, str]:
    """How a pool knows what belongs together, and whose turn it is."""
    created = cluster.metadata.creation_timestamp
    if not together or created is None:
        return {}
    return {
        Annotation.GRANTED_TOGETHER.value: ",".join(together),
        Annotation.TENANT_CREATED.value: created.isoformat(),
    }


def free_name(cluster: TenantCluster, type_: IPAllocationType, present: int, is_taken: Callable[[str], bool]) -> str:
    """`<cluster>-lb` for the first, with a piece of the UID where the name is another's; later ones have numbers."""
    if present:
        return next(further_names(cluster, type_, is_taken))
    plain = f"{cluster.metadata.name}-{NAMES[type_]}"
    if not is_taken(plain):
        return plain
    suffixed, number = f"{plain}-{cluster.metadata.uid[:8]}", 2
    while is_taken(suffixed):  # a retained record of this very cluster
        suffixed, number = f"{plain}-{cluster.metadata.uid[:8]}-{number}", number + 1
    return suffixed


def further_names(cluster: TenantCluster, type_: IPAllocationType, is_taken: Callable[[str], bool]) -> Iterator[str]:
    """`<cluster>-lb-2` and up, as far as no allocation has the name: records of what was given back keep theirs.

    Who asks at the same time comes to the same names, and so nothing is asked for twice.
    """
    stem = f"{cluster.metadata.name}-{NAMES[type_]}"
    return (name for number in itertools.count(2) if not is_taken(name := f"{stem}-{number}"))
