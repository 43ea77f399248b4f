"""Rows held against the estate: what is to be made, what is there already, what conflicts and with whom. Pure.

A row is *there* when its tenant holds all of its addresses for the same purpose, in however many allocations, or has
asked for exactly these. So an import that is repeated changes nothing, and one that was interrupted goes on where it
was. Of a row that is there in part, the rest is made. Whatever else stands in the way is a conflict, told in words
that name who and why; the last word is the production engine's, which is asked about all that is left.

Single addresses without a name of their own that lie side by side in one window become one allocation.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butler.api.ipallocation import IPAllocationPhase
from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_network, parse_range, range_text
from butler.ipam.range_difference import without
from butler.ipam.requests import AddressRequest, objection
from butler.reports.plan.new_requests import answers, request_for
from butler.reports.plan.simulation import Rehearsal
from butler.rules.allocation.held import held_addresses, readable_range
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.pool.next_status import intent_range, is_promise
from butler.rules.tenant.address_requests import NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from butler.api.ipallocation import IPAllocation, IPAllocationType
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.layout import PoolLayout
    from butler.reports.estate import Estate
    from butler.reports.exchange.rows import Contents, ExchangeRow

_EVER = datetime.max.replace(tzinfo=UTC)


class RowVerdict(StrEnum):
    """What is to become of a row, or of some that were joined."""

    MAKE = "make"
    THERE = "there"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Item:
    """Addresses of a tenant, and what is to be done about them."""

    where: tuple[str, ...]
    """The rows that said so."""
    tenant: Key
    type: IPAllocationType
    addresses: Range
    pool: str
    verdict: RowVerdict
    names: tuple[str, ...] = ()
    """The allocation to be made, or those that are there."""
    why: str = ""
    """What conflicts."""
    request: IPAllocation | None = field(default=None, repr=False)
    """What is to be created."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A file held against the estate."""

    items: tuple[Item, ...]
    contents: Contents

    def of(self, verdict: RowVerdict) -> list[Item]:
        return [item for item in self.items if item.verdict is verdict]


@dataclass(frozen=True, slots=True)
class _Held:
    """Addresses that a tenant has, is being given or requests by a pinned range."""

    addresses: Range
    name: str
    allocation: IPAllocation | None


def compare(estate: Estate, contents: Contents, now: datetime) -> Difference:
    """Hold rows against the estate."""
    grounds = _Grounds(estate, now)
    items = [item for row in contents.rows for item in grounds.judge(row)]
    items = _named(_joined(items, grounds), contents.rows, estate)
    return Difference(tuple(_asked(items, estate, now)), contents)


class _Grounds:
    """The estate, made ready for many questions."""

    def __init__(self, estate: Estate, now: datetime) -> None:
        stage = Rehearsal(estate, now)
        self.clusters: dict[Key, TenantCluster] = {key_of(cluster): cluster for cluster in estate.clusters}
        self.layouts = {name: stage.hands_out(name) for name in stage.pools}
        self._networks = [(network, pool) for pool in estate.pools for network in _network(pool)]
        self._home = estate.home
        self._held = sorted(_holdings(estate), key=lambda holding: (holding.addresses, holding.name))
        self._reach = list(itertools.accumulate((held.addresses.last for held in self._held), max))

    def judge(self, row: ExchangeRow) -> list[Item]:
        """What is to become of a row: one item, or several where a part of it is there already."""
        try:
            pool, layout = self._pool_of(row)
            holders = self._holders(row.addresses)
            own = [holder for holder in holders if self._is_own(holder, row)]
            missing = list(without(row.addresses, [held.addresses for held in own]))
            self._check(row, pool, layout, missing, holders, own)
        except _Conflict as conflict:
            return [_item(row, row.pool or conflict.pool, RowVerdict.CONFLICT, why=str(conflict))]
        there = tuple(held.name for held in own)
        if not missing:
            return [_item(row, pool, RowVerdict.THERE, names=there)]
        whole = missing == [row.addresses]
        made = [
            replace(_item(row, pool, RowVerdict.MAKE, names=(row.name,) if whole else ()), addresses=span)
            for span in missing
        ]
        kept = [] if whole else [_item(row, pool, RowVerdict.THERE, names=there)]
        return [*kept, *made]

    def _pool_of(self, row: ExchangeRow) -> tuple[str, PoolLayout]:
        name = row.pool or self._found(row.addresses)
        if name not in self.layouts:
            known = ", ".join(sorted(self.layouts)[:5]) or "none yet"
            raise _Conflict(f"there is no NetworkPool {name} in namespace {self._home} (there is {known}): create it")
        layout, obstacle = self.layouts[name]
        if layout is None or obstacle is not None:
            raise _Conflict(f"NetworkPool {name} hands out nothing: {obstacle.message if obstacle else ''}", name)
        return name, layout

    def _found(self, addresses: Range) -> str:
        """The one pool whose network has these addresses."""
        inside = [pool.metadata.name for network, pool in self._networks if network.contains(addresses)]
        if len(inside) == 1:
            return inside[0]
        text = range_text(addresses, Family.V4)
        if inside:
            raise _Conflict(f"{text} lies in the pools {' and '.join(inside)}: name one of them in column pool")
        touched = [pool.metadata.name for network, pool in self._networks if network.overlaps(addresses)]
        if touched:
            raise _Conflict(f"{text} reaches beyond pool {touched[0]}: split it at the pool's edge")
        near = nearest(addresses, self._networks)
        there = f"; the nearest is {near.metadata.name} ({near.spec.cidr})" if near else ""
        raise _Conflict(f"{text} lies in no pool{there}: create a pool for it with `butleradm pool create`")

    def _holders(self, addresses: Range) -> list[_Held]:
        found = []
        for held in self._held[bisect_left(self._reach, addresses.first) :]:
            if held.addresses.first > addresses.last:
                break
            if held.addresses.overlaps(addresses):
                found.append(held)
        return found

    def _is_own(self, held: _Held, row: ExchangeRow) -> bool:
        """Whether the row's tenant has it for what the row says, or has asked for nothing else."""
        allocation = held.allocation
        if allocation is None or allocation.metadata.deletion_timestamp is not None:
            return False
        cluster = self.clusters.get(row.tenant)
        is_its = cluster is None or recorded_owner(allocation) in (None, cluster.metadata.uid)
        return is_its and tenant_key(allocation) == row.tenant and allocation.spec.type is row.type

    def _check(
        self,
        row: ExchangeRow,
        pool: str,
        layout: PoolLayout,
        missing: Sequence[Range],
        holders: Sequence[_Held],
        own: Sequence[_Held],
    ) -> None:
        for part in missing:
            request = AddressRequest(uid="", name="", pool=pool, created=_EVER, count=part.size, pinned=part)
            why = objection(request, layout)
            if why is not None:
                raise _Conflict(why[1].partition(" is pinned, but ")[2] or why[1], pool)
        others = [holder for holder in holders if holder not in own]
        if others:
            raise _Conflict(_in_the_way(row, others[0], len(others) - 1), pool)


class _Conflict(Exception):
    def __init__(self, message: str, pool: str = "") -> None:
        super().__init__(message)
        self.pool = pool


def nearest(addresses: Range, networks: Iterable[tuple[Range, NetworkPool]]) -> NetworkPool | None:
    """The pool whose network is the fewest addresses away."""
    distances = [
        (max(network.first - addresses.last, addresses.first - network.last), pool.metadata.name, pool)
        for network, pool in networks
    ]
    return min(distances, key=lambda distance: distance[:2])[2] if distances else None


def _network(pool: NetworkPool) -> Iterator[Range]:
    try:
        family, network = parse_network(pool.spec.cidr)
    except BadAddress:
        return
    if family is Family.V4:
        yield network


def _holdings(estate: Estate) -> Iterator[_Held]:
    by_uid = {allocation.metadata.uid: allocation for allocation in estate.allocations}
    networks = {pool.metadata.name: network for pool in estate.pools for network in _network(pool)}
    for allocation in estate.allocations:
        asked = allocation.spec.pool_ref.name
        if (known := held_addresses(allocation)) is not None and known.problem and asked in networks:
            yield _Held(networks[asked], allocation.metadata.name, allocation)
            continue
        held = readable_range(allocation) or _insisted_on(allocation)
        if held is not None and held[0] is Family.V4:
            yield _Held(held[1], allocation.metadata.name, allocation)
    for pool in estate.pools:
        for intent in filter(is_promise, pool.status.intents):
            asking = by_uid.get(intent.uid)
            if asking is not None and readable_range(asking) is None and _insisted_on(asking) is None:
                yield _Held(intent_range(intent)[1], intent.name, asking)


def _insisted_on(allocation: IPAllocation) -> tuple[Family, Range] | None:
    """What a request that waits is for, where it can only be these addresses."""
    pinned = allocation.spec.pinned_range
    waits = allocation.status.phase in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)
    if pinned is None or not waits:
        return None
    try:
        return parse_range(pinned.start_address, pinned.end_address)
    except BadAddress:
        return None


def _in_the_way(row: ExchangeRow, held: _Held, more: int) -> str:
    address = address_text(max(row.addresses.first, held.addresses.first), Family.V4)
    allocation = held.allocation
    assert allocation is not None
    verb = "held" if allocation.status.phase is IPAllocationPhase.ALLOCATED else "wanted"
    if allocation.metadata.deletion_timestamp is not None:
        return f"{address} is just being released by {held.name}: import again in a moment"
    tenant = tenant_key(allocation)
    as_what = f"for {allocation.spec.type} of " + ("an earlier cluster " if tenant == row.tenant else "") + str(tenant)
    if tenant == row.tenant and allocation.spec.type is not row.type:
        as_what = f"for {allocation.spec.type} of the same tenant"
    others = f", and more of the range by {more} others" if more > 1 else ", and more by another" if more else ""
    return f"{address} is {verb} by {held.name} {as_what}{others}: correct the row, or release {held.name}"


def _item(row: ExchangeRow, pool: str, verdict: RowVerdict, *, names: tuple[str, ...] = (), why: str = "") -> Item:
    return Item((row.where,), row.tenant, row.type, row.addresses, pool, verdict, names, why)


# Joining and naming.


def _joined(items: Iterable[Item], grounds: _Grounds) -> list[Item]:
    """Single addresses to be made that are neighbours in one window, as one; in the order of the file."""
    found: list[Item] = []
    loose: list[Item] = []
    for entry in items:
        is_loose = entry.verdict is RowVerdict.MAKE and entry.addresses.size == 1 and not any(entry.names)
        (loose if is_loose else found).append(entry)
    places = {id(each): place for place, each in enumerate(loose)}
    groups: dict[Any, list[Item]] = {}
    for entry in loose:
        groups.setdefault((entry.tenant, entry.type, entry.pool, _window(entry, grounds)), []).append(entry)
    made: list[tuple[int, Item]] = []
    for group in groups.values():
        run: list[Item] = []
        for entry in sorted(group, key=lambda item: item.addresses):
            if run and entry.addresses.first != run[-1].addresses.last + 1:
                made.append((min(places[id(one)] for one in run), _one(run)))
                run = []
            run.append(entry)
        made.append((min(places[id(one)] for one in run), _one(run)))
    return [*found, *(each for _, each in sorted(made, key=lambda pair: pair[0]))]


def _one(run: Sequence[Item]) -> Item:
    where = tuple(dict.fromkeys(place for item in run for place in item.where))
    return replace(run[0], where=where, addresses=Range(run[0].addresses.first, run[-1].addresses.last))


def _window(item: Item, grounds: _Grounds) -> int:
    layout, _ = grounds.layouts[item.pool]
    assert layout is not None
    return next(number for number, window in enumerate(layout.windows) if window.contains(item.addresses))


def _named(items: Iterable[Item], rows: Sequence[ExchangeRow], estate: Estate) -> list[Item]:
    """Give each that is to be made a name: its own if that is free, else `<tenant>-nodes` or `-lb`, then numbers."""
    taken = {allocation.metadata.name for allocation in estate.allocations}
    wished = {row.name for row in rows if row.name}
    clusters = {key_of(cluster): cluster for cluster in estate.clusters}
    found = []
    for item in items:
        if item.verdict is not RowVerdict.MAKE:
            found.append(item)
            continue
        own = next((name for name in item.names if name and name not in taken), "")
        name = own or next(name for name in _names(item) if name not in taken and name not in wished)
        taken.add(name)
        request = request_for(
            item.tenant,
            item.type,
            name=name,
            pool=item.pool,
            home=estate.home,
            cluster=clusters.get(item.tenant),
            pinned=item.addresses,
        )
        found.append(replace(item, names=(name,), request=request))
    return found


def _names(item: Item) -> Iterator[str]:
    stem = f"{item.tenant.name}-{NAMES[item.type]}"
    return itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))


def _asked(items: Sequence[Item], estate: Estate, now: datetime) -> Iterator[Item]:
    """The same, with what the engine would not grant as conflicts."""
    said = answers(estate, [item.request for item in items if item.request is not None], now)
    for item in items:
        answer = said.get(item.names[0]) if item.request is not None else None
        if answer is None or isinstance(answer, Range):
            yield item
        else:
            yield replace(item, verdict=RowVerdict.CONFLICT, why=answer[1], names=(), request=None)
