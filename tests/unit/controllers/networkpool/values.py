"""Pools and allocations as plain values, and the view of them that the allocator decides from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api import codec
from butler.api.ipallocation import IPAllocation, IPAllocationStatus
from butler.api.labels import Annotation, Finalizer, Label
from butler.api.networkpool import CapacityNotice, Intent, NetworkPool, NetworkPoolStatus
from butler.api.objects import Change, Key, key_of
from butler.ipam.granted import comes_back
from butler.ipam.layout import InvalidPool, pool_layout
from butler.rules.pool.holdings import Holdings
from butler.rules.pool.next_status import PoolPlan, PoolView, is_leaving, plan
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant, is_waiting

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.rules.pool.conditions import NotHandingOut

NAMESPACE = "butler-system"
NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
POOL = Key(NAMESPACE, "vlan40")


def pool(
    *windows: str,
    cidr: str = "10.0.0.0/24",
    reserved: Iterable[str] = (),
    name: str = POOL.name,
    uid: str = "p1",
    age: int = 0,
    deleting: bool = False,
    **status: Any,
) -> NetworkPool:
    """A pool with windows such as "10.0.0.1-10.0.0.32"; `age` in seconds; `status` in our spelling."""
    spec: dict[str, Any] = {"cidr": cidr, "reserved": [{"cidr": text} for text in reserved]}
    if windows:
        ends = [window.split("-") for window in windows]
        spec["tenantAllocation"] = {"ranges": [{"start": start, "end": end} for start, end in ends]}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": uid,
        "resourceVersion": "50",
        "generation": 1,
        "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat(),
        "finalizers": [str(Finalizer.NETWORK_POOL)],
    }
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    bare = codec.from_json(NetworkPool, {"metadata": metadata, "spec": spec})
    return msgspec.structs.replace(bare, status=NetworkPoolStatus(**status))


def allocation(
    name: str,
    count: int | None = 1,
    *,
    holds: str | None = None,
    pinned: str | None = None,
    phase: str | None = None,
    version: int = 100,
    age: int = 0,
    deleting: bool = False,
    finalizer: bool = True,
    of: str = POOL.name,
    uid: str | None = None,
    had: str | None = None,
    **spec: Any,
) -> IPAllocation:
    """A request for some addresses; with `holds` ("10.0.0.1-10.0.0.4") one that was granted."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat(),
        "finalizers": [str(Finalizer.IP_ALLOCATION)] if finalizer else [],
        "annotations": {str(Annotation.GRANTED): had} if had else {},
    }
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    asked: dict[str, Any] = {
        "poolRef": {"name": of},
        "tenantClusterRef": {"namespace": "team-a", "name": name},
        "type": "nodes",
    } | spec
    if count is not None:
        asked["count"] = count
    if pinned is not None:
        asked["pinnedRange"] = dict(zip(("startAddress", "endAddress"), pinned.split("-"), strict=True))
    status: dict[str, Any] = {"phase": phase or ("Allocated" if holds else "Pending")}
    if holds is not None:
        status |= dict(zip(("startAddress", "endAddress"), holds.split("-"), strict=True))
    bare = codec.from_json(IPAllocation, {"metadata": metadata, "spec": asked})
    return msgspec.structs.replace(bare, status=codec.from_json(IPAllocationStatus, status))


def intent(name: str, promised: str, uid: str | None = None) -> Intent:
    start, end = promised.split("-")
    return Intent(uid=uid or f"uid-{name}", name=name, start_address=start, end_address=end)


def notice(tier: str, *, above: bool, ago: timedelta) -> CapacityNotice:
    return codec.from_json(CapacityNotice, {"tier": tier, "above": above, "time": (NOW - ago).isoformat()})


def holdings_of(*allocations: IPAllocation, unreadable: list[Key] | None = None) -> Holdings:
    """What these hold; the pools of those that make no sense go into `unreadable`."""
    holdings = Holdings((unreadable if unreadable is not None else []).append)
    for item in allocations:
        holdings.changed(Change(key_of(item), None, item))
    return holdings


def view_of(allocations: Iterable[IPAllocation], holdings: Holdings, key: Key = POOL) -> PoolView:
    """As the controller takes it from its cache."""
    known = list(allocations)
    by_uid = {item.metadata.uid: item for item in known}
    return PoolView(
        waiting=[item for item in known if is_waiting(item) and item.spec.pool_ref.name == key.name],
        leaving=[item for item in known if is_leaving(item) and item.spec.pool_ref.name == key.name],
        coming_back=[item for item in known if comes_back(item) and item.spec.pool_ref.name == key.name],
        live=holdings.count(key),
        find=by_uid.get,
        blocks_of=lambda tenant: [
            item for item in known if is_block_of_a_tenant(item) and item.metadata.labels[Label.TENANT_UID] == tenant
        ],
    )


def planned(
    subject: NetworkPool,
    *allocations: IPAllocation,
    obstacle: NotHandingOut | None = None,
    now: datetime = NOW,
) -> PoolPlan:
    """The plan for a pool whose allocations are these; its books are checked to be left as they were."""
    holdings = holdings_of(*allocations)
    try:
        layout = pool_layout(subject)
    except InvalidPool:
        layout = None
    book = holdings.book(key_of(subject), layout) if layout is not None else None
    before = list(book.free.extents()) if book is not None else None
    made = plan(
        subject,
        layout,
        book,
        view_of(allocations, holdings, key_of(subject)),
        obstacle=obstacle,
        claimed_cidr=subject.spec.cidr,
        now=now,
    )
    assert book is None or list(book.free.extents()) == before, "a decision left a trace in the book"
    return made


def grants(made: PoolPlan) -> dict[str, str]:
    """Who gets what."""
    return {item.name: f"{item.start_address}-{item.end_address}" for item in made.granted}


def reasons(made: PoolPlan) -> dict[str, str]:
    return {refusal.name: str(refusal.reason) for refusal in made.refusals}
