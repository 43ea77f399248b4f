"""Allocations against each other, their pools, themselves and their clusters. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import Label
from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, parse_range, range_cidr, range_text
from butler.ipam.layout import InvalidPool
from butler.ipam.range_difference import without
from butler.reports.fsck.finding import Code, DropRequest, FsckFinding, FsckSeverity, Relabel
from butler.reports.fsck.holdings import allocation_thing, counted, pools_of, tenants_of
from butler.rules.allocation.orphans import by_missing_tenant, claim_of
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.pool.next_status import intent_range, is_promise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from butler.api.ipallocation import IPAllocation, IPAllocationSpec
    from butler.api.objects import Key
    from butler.ipam.layout import PoolLayout
    from butler.reports.fsck.holdings import Books
    from butler.rules.pool.holdings import Holding

WAITING = (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)
LABELLED: Mapping[Label, Callable[[IPAllocationSpec], str]] = {
    Label.NETWORK_POOL: lambda spec: spec.pool_ref.name,
    Label.TENANT: lambda spec: spec.tenant_cluster_ref.name,
    Label.ALLOCATION_TYPE: lambda spec: str(spec.type),
}
"""The labels that repeat what the spec says; users select by them, and no code decides by them."""


def check_allocations(books: Books) -> Iterator[FsckFinding]:
    """All findings about allocations as the management cluster has them."""
    yield from _duplicates(books)
    alive = {cluster.metadata.uid for cluster in books.estate.clusters}
    orphans = by_missing_tenant(books.estate.allocations, alive)
    for allocations in orphans.values():
        for allocation in allocations:
            yield _orphan(allocation, books)
    clusters = {key_of(cluster): cluster.metadata.uid for cluster in books.estate.clusters}
    for allocation in books.estate.allocations:
        if allocation.status.phase is not IPAllocationPhase.RELEASED:
            yield from _nonsense(allocation, books)
            yield from _owner(allocation, clusters)
            yield from _labels(allocation)
        holding = books.live.get(allocation.metadata.uid)
        if holding is not None:
            yield from _place(allocation, holding, books)


def _finding(
    severity: FsckSeverity, code: Code, allocation: IPAllocation, what: str, todo: str, repair: Relabel | None = None
) -> FsckFinding:
    return FsckFinding(
        severity,
        code,
        (allocation_thing(allocation),),
        what,
        todo,
        pools=pools_of(allocation),
        tenants=tenants_of(allocation),
        repair=repair,
    )


# Against each other.


class _Taken(NamedTuple):
    family: Family
    range: Range
    name: str
    allocation: IPAllocation
    how: str


def _duplicates(books: Books) -> Iterator[FsckFinding]:
    """Each range against the one below it that reaches furthest: that names everyone, if not every pair."""
    before: _Taken | None = None
    for item in sorted(_taken(books), key=lambda taken: taken[:3]):
        same_family = before is not None and before.family is item.family
        if before is not None and same_family and item.range.first <= before.range.last and not _same(before, item):
            yield _duplicate(before, item)
        if before is None or not same_family or item.range.last > before.range.last:
            before = item


def _same(one: _Taken, other: _Taken) -> bool:
    return one.allocation.metadata.uid == other.allocation.metadata.uid


def _taken(books: Books) -> Iterator[_Taken]:
    for uid, holding in books.live.items():
        yield _Taken(holding.family, holding.range, holding.name, books.by_uid[uid], "holds")
    for pool in books.estate.pools:
        for intent in pool.status.intents:
            allocation = books.by_uid.get(intent.uid)
            if allocation is not None and allocation.status.phase in WAITING and is_promise(intent):
                yield _Taken(*intent_range(intent), intent.name, allocation, "is being granted")


def _duplicate(one: _Taken, other: _Taken) -> FsckFinding:
    shared = Range(max(one.range.first, other.range.first), min(one.range.last, other.range.last))
    said = "; ".join(
        f"{taken.name} ({tenant_key(taken.allocation)}) {taken.how} {range_text(taken.range, taken.family)}"
        f" of pool {taken.allocation.spec.pool_ref.name}"
        for taken in (one, other)
    )
    return FsckFinding(
        FsckSeverity.ERROR,
        Code.DUPLICATE,
        (allocation_thing(one.allocation), allocation_thing(other.allocation)),
        f"{counted(shared.size)} held twice ({range_text(shared, one.family)}): {said}",
        "find out which of the two uses them, and release the other (`butleradm allocation release`)",
        pools=pools_of(one.allocation, other.allocation),
        tenants=tenants_of(one.allocation, other.allocation),
    )


# Against the pool.


def _place(allocation: IPAllocation, holding: Holding, books: Books) -> Iterator[FsckFinding]:
    pool = books.pool_of(allocation)
    held = f"{range_text(holding.range, holding.family)} ({counted(holding.range.size)})"
    if pool is None:
        yield _finding(
            FsckSeverity.ERROR,
            Code.POOL_MISSING,
            allocation,
            f"it holds {held} of pool {allocation.spec.pool_ref.name}, which does not exist",
            "create the pool again with the network that it had: until then no pool watches over these addresses",
        )
        return
    layout = books.layouts[pool.metadata.name]
    if isinstance(layout, InvalidPool):
        return
    outside = [holding.range] if holding.family is not layout.family else list(without(holding.range, layout.usable))
    if outside:
        size = sum(piece.size for piece in outside)
        parts = ", ".join(f"{range_text(piece, holding.family)} ({_where(piece, layout)})" for piece in outside)
        yield _finding(
            FsckSeverity.ERROR,
            Code.OUTSIDE_POOL,
            allocation,
            f"{size} of its {counted(holding.range.size)} not handed out by pool {pool.metadata.name}: {parts}",
            f"`butleradm pool edit {pool.metadata.name}` so that they are; the tenant keeps them either way",
        )


def _where(piece: Range, layout: PoolLayout) -> str:
    for block in layout.blocks:
        if block.addresses.overlaps(piece):
            cidr = range_cidr(block.addresses, layout.family)
            return f"reserved: {cidr}{f', {block.description}' if block.description else ''}"
    return "outside its windows" if layout.network.contains(piece) else "outside its network"


# Against itself.


def _nonsense(allocation: IPAllocation, books: Books) -> Iterator[FsckFinding]:
    problems = list(_contradictions(allocation, books))
    if problems:
        yield _finding(
            FsckSeverity.ERROR,
            Code.STATUS,
            allocation,
            "; ".join(problems),
            "the status was edited by hand: find out what the tenant uses, and put the status right with"
            " `kubectl edit --subresource=status`",
        )


def _contradictions(allocation: IPAllocation, books: Books) -> Iterator[str]:
    status, uid = allocation.status, allocation.metadata.uid
    if status.phase in WAITING:
        if status.start_address or status.end_address:
            yield f"it is {status.phase} and yet names {status.start_address}-{status.end_address}"
        return
    if uid in books.senseless:
        yield f"it is Allocated, but {books.senseless[uid]}"
        return
    holding = books.live.get(uid)
    if holding is None:
        yield "it is Allocated and names no addresses"
        return
    size = holding.range.size
    if status.allocated_count is not None and status.allocated_count != size:
        yield f"allocatedCount says {status.allocated_count}, its range has {size}"
    ends = (status.start_address, status.end_address)
    if status.addresses and (len(status.addresses) != size or (status.addresses[0], status.addresses[-1]) != ends):
        yield f"addresses lists {len(status.addresses)} from {status.addresses[0]}, its range is {ends[0]}-{ends[1]}"
    if status.cidr is not None and status.cidr != range_cidr(holding.range, holding.family):
        yield f"cidr says {status.cidr}, its range is {ends[0]}-{ends[1]}"
    pinned = allocation.spec.pinned_range
    if pinned is not None and _range(pinned.start_address, pinned.end_address) != holding.range:
        yield f"it asked for {pinned.start_address}-{pinned.end_address} and holds {ends[0]}-{ends[1]}"
    elif pinned is None and allocation.spec.count is not None and allocation.spec.count != size:
        yield f"it asked for {counted(allocation.spec.count)} and holds {size}"


def _range(start: str, end: str) -> Range | None:
    try:
        return parse_range(start, end)[1]
    except BadAddress:
        return None


def _labels(allocation: IPAllocation) -> Iterator[FsckFinding]:
    labels = allocation.metadata.labels
    wrong = [
        (str(label), labels[label], wanted)
        for label, read in LABELLED.items()
        if label in labels and labels[label] != (wanted := read(allocation.spec))
    ]
    if wrong:
        meta = allocation.metadata
        right = tuple((label, wanted) for label, _, wanted in wrong)
        yield _finding(
            FsckSeverity.WARNING,
            Code.LABELS,
            allocation,
            "; ".join(
                f"label {label.rpartition('/')[2]} says {said}, the spec {wanted}" for label, said, wanted in wrong
            ),
            "selections by label go wrong until it is put right: --repair does it",
            Relabel(key_of(allocation), meta.uid, meta.resource_version, right),
        )


# Against its cluster.


def _orphan(allocation: IPAllocation, books: Books) -> FsckFinding:
    claim = claim_of(allocation)
    assert claim is not None, "only allocations with a claim can be orphans"
    tenant, meta = tenant_key(allocation), allocation.metadata
    namesake = next((cluster for cluster in books.estate.clusters if key_of(cluster) == tenant), None)
    gone = (
        f"TenantCluster {tenant} is another one now (uid {namesake.metadata.uid})"
        if namesake is not None
        else f"TenantCluster {tenant} (uid {claim.owner_uid}) does not exist"
    )
    holding = books.live.get(meta.uid)
    waits = allocation.status.phase in WAITING
    promised = any(intent.uid == meta.uid for pool in books.estate.pools for intent in pool.status.intents)
    if holding is not None:
        what = f"it holds {range_text(holding.range, holding.family)} ({counted(holding.range.size)}), but {gone}"
        todo = (
            "Butler gives them back a few minutes after the cluster, once its namespace is gone; if that does not"
            f" happen, see that nothing uses them and run `butleradm allocation release {meta.name}`"
        )
    else:
        what = f"it is {allocation.status.phase}, but {gone}"
        todo = "Butler collects it within minutes; --repair deletes it now, as it holds nothing"
    owners = tuple(dict.fromkeys((claim.owner_uid, claim.formerly)))
    return FsckFinding(
        FsckSeverity.WARNING,
        Code.ORPHAN,
        (allocation_thing(allocation),),
        what,
        todo,
        pools=pools_of(allocation),
        tenants=tenants_of(allocation),
        repair=DropRequest(key_of(allocation), meta.uid, meta.resource_version, tenant, owners)
        if waits and not promised
        else None,
    )


def _owner(allocation: IPAllocation, clusters: dict[Key, str]) -> Iterator[FsckFinding]:
    label = allocation.metadata.labels.get(Label.TENANT_UID)
    recorded, tenant = allocation.status.tenant_cluster_uid, tenant_key(allocation)
    if label and recorded and label != recorded:
        yield _finding(
            FsckSeverity.WARNING,
            Code.OWNER,
            allocation,
            f"label tenant-uid says {label}, the status {recorded}; TenantCluster {tenant} has"
            f" {clusters.get(tenant, 'none, as it does not exist')}",
            "set the label to the UID of the cluster that uses the addresses: Butler goes by the label",
        )
    if recorded_owner(allocation) or allocation.status.phase is not IPAllocationPhase.ALLOCATED:
        return
    if tenant in clusters:
        yield _finding(
            FsckSeverity.WARNING,
            Code.OWNER,
            allocation,
            f"TenantCluster {tenant} exists, but the status does not record that the addresses are its",
            "start the controllers (`butleradm doctor` tells what keeps them)",
        )
    else:
        yield _finding(
            FsckSeverity.NOTE,
            Code.TENANT_NEVER_SEEN,
            allocation,
            f"its addresses are kept for TenantCluster {tenant}, which has never been seen",
            "create the cluster, or release the addresses if you know that nothing uses them: Butler cannot tell",
        )
