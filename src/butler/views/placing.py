"""New requests: how they are written down, and what their pool would say to them right now. Pure.

The pool's answer is that of the production engine (`controllers.networkpool.plan`), with everybody else who waits at
the table: it is what would happen if nothing else changed. Nothing is reserved by asking.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationSpec, IPAllocationType, PinnedIPRange
from butler.api.labels import AllocationReason, AllocationRole, ConditionType, Finalizer, Label, PoolReason
from butler.api.meta import ConditionStatus, LocalObjectReference, NamespacedObjectReference, ObjectMeta
from butler.controllers.networkpool.conditions import NotHandingOut
from butler.controllers.networkpool.holdings import Book, holding_of
from butler.controllers.networkpool.plan import View, intent_range, is_waiting, layout_of, plan
from butler.ipam.addresses import BadAddress, Family, Range, address_text
from butler.kube.objects import key_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.networkpool.holdings import Holding
    from butler.ipam.layout import PoolLayout
    from butler.ipam.refusals import Why
    from butler.kube.resource import Key
    from butler.views.estate import Estate

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

    Its UID goes onto the request, so that nobody takes the addresses for those of another cluster of that name.
    """
    labels = {
        Label.NETWORK_POOL: pool,
        Label.TENANT: tenant.name,
        Label.ALLOCATION_TYPE: str(type_),
        Label.ALLOCATION_ROLE: str(AllocationRole.INITIAL),
    }
    if cluster is not None:
        labels[Label.TENANT_UID] = cluster.metadata.uid
        if cluster.spec.team_ref is not None:
            labels[Label.TEAM] = cluster.spec.team_ref.name
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
    """What the pools would say to new requests, by the requests' names; left out are those beyond one batch."""
    asked: dict[str, list[IPAllocation]] = defaultdict(list)
    for each in requests:
        asked[each.spec.pool_ref.name].append(each)
    found: dict[str, Range | Why] = {}
    for name, asking in asked.items():
        pool = estate.pool(name)
        if pool is None:
            message = f"there is no NetworkPool {name} in namespace {estate.home}"
            found |= dict.fromkeys((each.metadata.name for each in asking), (AllocationReason.POOL_NOT_FOUND, message))
        else:
            found |= _answers_of(pool, asking, estate, now)
    return found


def _answers_of(
    pool: NetworkPool, asking: Sequence[IPAllocation], estate: Estate, now: datetime
) -> dict[str, Range | Why]:
    by_uid = {each.metadata.uid: each for each in estate.allocations}
    # Nobody has these UIDs, and who has no age is younger than everybody who has one.
    new = {f"new/{each.metadata.name}": each for each in asking}
    guests = [
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, uid=uid))
        for uid, each in new.items()
    ]
    waiting = [each for each in estate.of_pool(pool.metadata.name) if is_waiting(each)]
    layout, obstacle = hands_out(pool)
    book = None if layout is None else Book(key_of(pool), layout, _holdings(estate))
    view = View(waiting=[*waiting, *guests], leaving=(), live=0, find=by_uid.get)
    made = plan(pool, layout, book, view, obstacle=obstacle, claimed_cidr=pool.status.claimed_cidr, now=now)
    found: dict[str, Range | Why] = {
        new[intent.uid].metadata.name: intent_range(intent)[1] for intent in made.granted if intent.uid in new
    }
    for refusal in made.refusals:
        if refusal.uid in new:
            found[new[refusal.uid].metadata.name] = (refusal.reason, refusal.message)
    return found


def hands_out(pool: NetworkPool) -> tuple[PoolLayout | None, NotHandingOut | None]:
    """What a pool may hand out, and why it hands out nothing, as far as anybody knows."""
    layout, invalid = layout_of(pool)
    if layout is None:
        return None, invalid
    if pool.metadata.deletion_timestamp is not None:
        return layout, NotHandingOut(PoolReason.DELETING, "it is being deleted")
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    if ready is not None and ready.status is not ConditionStatus.TRUE:
        # What was wrong with an earlier spec says nothing about this one.
        is_old = pool.status.observed_generation not in (None, pool.metadata.generation)
        return layout, None if is_old else NotHandingOut(PoolReason.NOT_CLAIMED, ready.message)
    return layout, None


def _holdings(estate: Estate) -> Iterable[tuple[str, Holding]]:
    for each in estate.allocations:
        try:
            holding = holding_of(each)
        except BadAddress:
            continue
        if holding is not None:
            yield each.metadata.uid, holding
