"""New requests: how they are written down, and what their pool would say to them right now. Pure.

The pool's answer is that of the production engine, together with all requests that wait (`simulation`): it is
what would happen if nothing else changed. Nothing is reserved by asking.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationSpec, IPAllocationType, PinnedIPRange
from butler.api.labels import AllocationReason, AllocationRole, ConditionType, Finalizer, Label
from butler.api.meta import LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.ipam.addresses import Family, Range, address_text
from butler.reports.plan.simulation import Rehearsal
from butler.rules.allocation.held import readable_range

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.refusals import Why
    from butler.reports.estate import Estate

LABEL_LENGTH = 63


def request_for(
    tenant: Key,
    type_: IPAllocationType,
    *,
    name: str,
    pool: str,
    home: str,
    cluster: TenantCluster | None,
    count: int | None = None,
    pinned: Range | None = None,
) -> IPAllocation:
    """A request as a person makes it. `cluster` is the TenantCluster of that name, where there is one already.

    Its UID goes onto the request, so that the addresses are not taken for those of another cluster of that name.
    """
    labels = {
        Label.NETWORK_POOL: pool,
        Label.TENANT: tenant.name,
        Label.ALLOCATION_TYPE: str(type_),
        Label.ALLOCATION_ROLE: str(AllocationRole.INITIAL),
    }
    if cluster is not None:
        labels[Label.TENANT_UID] = cluster.metadata.uid
        if cluster.status.team:
            labels[Label.TEAM] = cluster.status.team
    return IPAllocation(
        metadata=ObjectMeta(
            name=name,
            namespace=home,
            labels={str(key): value for key, value in labels.items() if len(value) <= LABEL_LENGTH},
            finalizers=(Finalizer.IP_ALLOCATION.value,),
        ),
        spec=IPAllocationSpec(
            pool_ref=LocalObjectReference(name=pool),
            tenant_cluster_ref=NamespacedObjectReference(name=tenant.name, namespace=tenant.namespace),
            type=type_,
            count=count,
            pinned_range=PinnedIPRange(
                start_address=address_text(pinned.first, Family.V4), end_address=address_text(pinned.last, Family.V4)
            )
            if pinned
            else None,
        ),
    )


def answers(estate: Estate, requests: Iterable[IPAllocation], now: datetime) -> dict[str, Range | Why]:
    """What the pools would say to new requests, by the requests' names."""
    stage = Rehearsal(estate, now)
    stage.later()
    asked = {request.metadata.name: stage.ask(request) for request in requests}
    found = {name: stage.find(uid) for name, uid in asked.items()}
    for pool in {text.spec.pool_ref.name for text in found.values() if text is not None}:
        stage.serve(pool)
    return {name: said for name, uid in asked.items() if (said := _answer(stage.find(uid))) is not None}


def _answer(request: IPAllocation | None) -> Range | Why | None:
    """What became of a request; None: the pool has not decided about it."""
    if request is None:
        return None
    if (held := readable_range(request)) is not None:
        return held[1]
    ready = find_condition(request.status.conditions, ConditionType.READY)
    return None if ready is None else (AllocationReason(ready.reason), ready.message)
