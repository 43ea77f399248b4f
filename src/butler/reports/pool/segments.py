"""A pool's network as segments: every address in exactly one of them, in true positions, in order, without gaps.

Maps, bars, exports and the console all draw from this one list, so they cannot disagree. It costs by the number of
allocations and blocks, never by addresses: a /8 is as cheap as a /28.

A segment lies in one piece of the pool (a window cut by what is reserved, a reserved block, or what is left out), so
free segments are exactly the holes of the engine's `FreeSpace`: touching windows stay apart.

Who holds an address shows before what the spec says about it. Where a pool was edited by hand, addresses may be held
that it does not hand out (`stranded`), or held twice (`held_by` above one): both are shown as they are. A pool whose
spec makes no sense hands out nothing: what is neither held nor reserved of it is outside.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from butler.api.labels import Label
from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_network, range_cidr
from butler.ipam.layout import FieldProblem, InvalidPool, pool_layout
from butler.ipam.range_difference import without
from butler.reports.estate import tenant_of
from butler.rules.allocation.held import held_addresses, pool_key, unreadable
from butler.rules.pool.foreign_addresses import shown_in
from butler.rules.pool.intents import promised
from butler.rules.pool.next_status import intent_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool, NetworkPoolSpec
    from butler.ipam.layout import PoolLayout
    from butler.rules.pool.foreign_addresses import Shown

MOST_HOLDERS = 8
"""How many holders of one address are named; the rest is counted. One is usual, two are a fault."""


class Kind(StrEnum):
    """What becomes of the addresses of a segment."""

    RESERVED = "reserved"
    """Kept back by spec.reserved."""
    OUTSIDE = "outside"
    """In no window, and so never handed out."""
    ALLOCATED = "allocated"
    GRANTING = "granting"
    """Promised in status.intents; the allocation does not say so yet."""
    DRAINING = "draining"
    """Allocated, and being taken back from the tenant."""
    FREE = "free"


HELD = frozenset({Kind.ALLOCATED, Kind.GRANTING, Kind.DRAINING})


class Holder(NamedTuple):
    """Who holds addresses."""

    allocation: str
    tenant: str
    """`namespace/name`; empty for a promise whose allocation is not known."""
    type: str
    role: str
    """`initial` or `growth`; empty where the label is missing."""
    pool: str
    """The pool that the allocation asks. Another one than the pool shown, where pools overlap."""
    kind: Kind


class Segment(NamedTuple):
    """Addresses of one kind, from first to last."""

    first: int
    last: int
    kind: Kind
    description: str = ""
    """Of the reserved block."""
    holders: tuple[Holder, ...] = ()
    held_by: int = 0
    """How many hold it, also where `holders` does not name all."""
    stranded: bool = False
    """Held, although the pool does not hand it out."""

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def range(self) -> Range:
        return Range(self.first, self.last)


class HeldElsewhere(NamedTuple):
    """An allocation of this pool that cannot be drawn: it lies outside the network, or its status makes no sense."""

    allocation: str
    tenant: str
    start: str
    end: str


@dataclass(frozen=True, slots=True)
class PoolSegments:
    """A pool, address by address."""

    pool: str
    cidr: str
    family: Family
    network: Range | None
    """None where not even the network can be told: then there are no segments."""
    segments: tuple[Segment, ...]
    elsewhere: tuple[HeldElsewhere, ...]
    problems: tuple[FieldProblem, ...]
    """Why the pool hands out nothing; empty for a valid one."""
    layout: PoolLayout | None
    """What the pool hands out; None where `problems` says why it cannot be read."""

    def addresses(self, *kinds: Kind) -> int:
        """How many addresses there are of these kinds."""
        return sum(segment.last - segment.first + 1 for segment in self.segments if segment.kind in kinds)

    def within(self, part: Range) -> PoolSegments:
        """The part of the network from one address to another, with segments cut at its edges."""
        cut = tuple(
            segment
            if part.first <= segment.first and segment.last <= part.last
            else segment._replace(first=max(segment.first, part.first), last=min(segment.last, part.last))
            for segment in self.segments
            if segment.first <= part.last and part.first <= segment.last
        )
        return replace(self, network=part, segments=cut)


class _Piece(NamedTuple):
    """What the spec says of some addresses."""

    first: int
    last: int
    kind: Kind
    description: str = ""


class _Span(NamedTuple):
    """Addresses with the same holders all along."""

    first: int
    last: int
    holders: tuple[Holder, ...]
    held_by: int


def segments_of(pool: NetworkPool, allocations: Iterable[IPAllocation]) -> PoolSegments:
    """A pool with all allocations that hold addresses of it.

    `allocations` may be those of the whole estate, and must have been read after the pool: then an intent whose
    allocation is not there is settled, as the engine has it.
    """
    layout: PoolLayout | None = None
    problems: tuple[FieldProblem, ...] = ()
    try:
        layout = pool_layout(pool)
        found: tuple[Family, Range] | None = (layout.family, layout.network)
    except InvalidPool as error:
        problems = error.problems
        found = _network_of(pool)
    family, network = found or (Family.V4, None)
    every = list(allocations)
    name, cidr = pool.metadata.name, pool.spec.cidr
    held, elsewhere = _held_in(pool, every, family, network)
    if network is None:
        return PoolSegments(name, cidr, family, None, (), tuple(elsewhere), problems, layout)
    pieces = _pieces(layout, shown_in(pool)) if layout else _pieces_of_invalid(pool.spec, family, network)
    held = sorted([*held, *_unreadable(pool, every, pieces, held)])
    made = tuple(_laid_over(pieces, _spans(held), is_valid=layout is not None))
    return PoolSegments(name, cidr, family, network, made, tuple(elsewhere), problems, layout)


def _network_of(pool: NetworkPool) -> tuple[Family, Range] | None:
    """The network of a pool that makes no sense otherwise: as written, else the one that it claimed before."""
    for text in (pool.spec.cidr, pool.status.claimed_cidr):
        try:
            return parse_network(text or "")
        except BadAddress:
            continue
    return None


# What the spec says.


def _pieces(layout: PoolLayout, foreign: Sequence[Shown]) -> list[_Piece]:
    withheld = {shown.address: f"shown by {shown.holder}" for shown in foreign}
    usable = [piece for part in layout.usable for piece in _with_kept_back(part, withheld)]
    kept_back = (*layout.blocks, *layout.excluded)
    reserved = [_Piece(*block.addresses, Kind.RESERVED, block.description) for block in kept_back]
    return list(_without_gaps(sorted([*usable, *reserved]), layout.network))


def _with_kept_back(part: Range, withheld: Mapping[int, str]) -> Iterator[_Piece]:
    """A usable part, in which single addresses are kept back for the reasons given."""
    inside = [Range(address, address) for address in withheld if part.first <= address <= part.last]
    yield from (_Piece(*kept, Kind.RESERVED, withheld[kept.first]) for kept in inside)
    yield from (_Piece(*rest, Kind.FREE) for rest in without(part, inside))


def _pieces_of_invalid(spec: NetworkPoolSpec, family: Family, network: Range) -> list[_Piece]:
    """Nothing is handed out; of what is reserved, whatever can be read."""
    blocks: list[_Piece] = []
    for entry in spec.reserved:
        try:
            other, addresses = parse_network(entry.cidr)
        except BadAddress:
            continue
        if other is family and addresses.overlaps(network):
            first, last = max(addresses.first, network.first), min(addresses.last, network.last)
            blocks.append(_Piece(first, last, Kind.RESERVED, entry.description or ""))
    return list(_without_gaps(sorted(blocks), network))


def _without_gaps(pieces: Iterable[_Piece], network: Range) -> Iterator[_Piece]:
    """The pieces with what lies between them; of two that overlap, the second loses what they share."""
    at = network.first
    for piece in pieces:
        if piece.first > at:
            yield _Piece(at, piece.first - 1, Kind.OUTSIDE)
        if piece.last >= at:
            yield piece._replace(first=max(piece.first, at))
            at = piece.last + 1
    if at <= network.last:
        yield _Piece(at, network.last, Kind.OUTSIDE)


# Who holds what.


def _held_in(
    pool: NetworkPool, allocations: Sequence[IPAllocation], family: Family, network: Range | None
) -> tuple[list[tuple[Range, Holder]], list[HeldElsewhere]]:
    """All allocations with addresses inside the network, and the pool's own with addresses elsewhere."""
    held: list[tuple[Range, Holder]] = []
    elsewhere: list[HeldElsewhere] = []
    own = key_of(pool)
    for allocation in allocations:
        status, found = allocation.status, held_addresses(allocation)
        if found is None:
            continue
        is_readable = network is not None and found.family is family and not found.problem
        if network is not None and is_readable and found.range.overlaps(network):
            held.append((found.range, _holder(allocation)))
        whole = network is not None and is_readable and network.contains(found.range)
        if not whole and pool_key(allocation) == own:
            start, end = status.start_address or "?", status.end_address or "?"
            elsewhere.append(HeldElsewhere(allocation.metadata.name, tenant_of(allocation), start, end))
    if pool.status.intents and network is not None:
        for addresses, holder in _granting(pool, allocations, family):
            if addresses.overlaps(network):
                held.append((addresses, holder))
    held.sort()
    return held, sorted(elsewhere)


def _unreadable(
    pool: NetworkPool,
    allocations: Iterable[IPAllocation],
    pieces: Iterable[_Piece],
    held: Sequence[tuple[Range, Holder]],
) -> Iterator[tuple[Range, Holder]]:
    """A status that makes no sense may mean any address that no other allocation holds: none of these is handed out."""
    names = unreadable(key_of(pool), allocations)
    if not names:
        return
    holders = [_holder(allocation) for allocation in allocations if allocation.metadata.name in names]
    for piece in pieces:
        if piece.kind is Kind.FREE:
            for rest in without(Range(piece.first, piece.last), [addresses for addresses, _ in held]):
                yield from ((rest, holder) for holder in holders)


def _holder(allocation: IPAllocation) -> Holder:
    return Holder(
        allocation.metadata.name,
        tenant_of(allocation),
        allocation.spec.type.value,
        allocation.metadata.labels.get(Label.ALLOCATION_ROLE, ""),
        allocation.spec.pool_ref.name,
        Kind.DRAINING if allocation.status.draining_since is not None else Kind.ALLOCATED,
    )


def _granting(pool: NetworkPool, allocations: Sequence[IPAllocation], family: Family) -> Iterator[tuple[Range, Holder]]:
    by_uid = {allocation.metadata.uid: allocation for allocation in allocations}
    for intent in promised(pool, allocations):
        other, addresses = intent_range(intent)
        asking = by_uid.get(intent.uid)
        if other is family and asking is not None:
            yield addresses, _holder(asking)._replace(kind=Kind.GRANTING)


def _spans(held: Sequence[tuple[Range, Holder]]) -> Iterator[_Span]:
    """Holdings in order of address, as stretches that do not overlap. Nearly always these are the holdings."""
    at = 0
    while at < len(held):
        (first, last), holder = held[at]
        upto = at + 1
        while upto < len(held) and held[upto][0].first <= last:
            last = max(last, held[upto][0].last)
            upto += 1
        if upto == at + 1:
            yield _Span(first, last, (holder,), 1)
        else:
            yield from _parted(held[at:upto])
        at = upto


def _parted(held: Sequence[tuple[Range, Holder]]) -> Iterator[_Span]:
    """Holdings that overlap, cut wherever one of them begins or ends."""
    edges: dict[int, tuple[list[int], list[int]]] = {}
    for index, (addresses, _) in enumerate(held):
        edges.setdefault(addresses.first, ([], []))[0].append(index)
        edges.setdefault(addresses.last + 1, ([], []))[1].append(index)
    active: dict[int, Holder] = {}
    since = 0
    for edge in sorted(edges):
        if active:
            yield _Span(since, edge - 1, tuple(islice(active.values(), MOST_HOLDERS)), len(active))
        begun, ended = edges[edge]
        for index in ended:
            del active[index]
        for index in begun:
            active[index] = held[index][1]
        since = edge


def _laid_over(pieces: Iterable[_Piece], spans: Iterator[_Span], *, is_valid: bool) -> Iterator[Segment]:
    """What is held over what the spec says; both come in order, and spans may reach over several pieces."""
    span = next(spans, None)
    for first, last, kind, description in pieces:
        at = first
        while span is not None and span.first <= last:
            if span.last >= at:  # what lies below the network is not drawn
                if span.first > at:
                    yield Segment(at, span.first - 1, kind, description)
                upto = min(span.last, last)
                stranded = is_valid and kind is not Kind.FREE
                begin = max(span.first, at)
                yield Segment(begin, upto, span.holders[0].kind, description, span.holders, span.held_by, stranded)
                at = upto + 1
            if span.last > last:
                break
            span = next(spans, None)
        if at <= last:
            yield Segment(at, last, kind, description)


# As JSON.


def segment_json(segment: Segment, family: Family) -> dict[str, Any]:
    """One segment for programs."""
    made: dict[str, Any] = {
        "start": address_text(segment.first, family),
        "end": address_text(segment.last, family),
        "count": segment.size,
        "cidr": range_cidr(segment.range, family),
        "kind": segment.kind.value,
    }
    if segment.description:
        made["description"] = segment.description
    if segment.holders:
        holder, *others = segment.holders
        made |= {"allocation": holder.allocation, "tenant": holder.tenant, "type": holder.type, "role": holder.role}
        made |= {"pool": holder.pool, "heldBy": segment.held_by, "stranded": segment.stranded}
        if others:
            made["others"] = [{"allocation": other.allocation, "tenant": other.tenant} for other in others]
    return made


def segments_json(shown: PoolSegments) -> dict[str, Any]:
    """A pool's segments for programs."""
    network = shown.network
    return {
        "pool": shown.pool,
        "cidr": shown.cidr,
        "start": address_text(network.first, shown.family) if network else None,
        "end": address_text(network.last, shown.family) if network else None,
        "count": network.size if network else 0,
        "segments": [segment_json(segment, shown.family) for segment in shown.segments],
        "elsewhere": [elsewhere._asdict() for elsewhere in shown.elsewhere],
        "problems": [problem._asdict() for problem in shown.problems],
    }
