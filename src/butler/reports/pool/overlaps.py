"""What no two may share, and do: pools that overlap, addresses held twice, allocations outside their pool. Pure.

Butler lets none of this happen; people who edit by hand, restore a backup or switch admission off do.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_network, range_text
from butler.reports.pool.segments import segments_of
from butler.rules.allocation.held import held_addresses, pool_key, readable_range
from butler.rules.pool.intents import promised
from butler.rules.pool.next_status import intent_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool


class OverlapTrouble(StrEnum):
    """What is wrong."""

    POOLS = "PoolsOverlap"
    TWICE = "HeldTwice"
    OUTSIDE = "OutsidePool"
    NO_POOL = "NoSuchPool"
    UNREADABLE = "Unreadable"


@dataclass(frozen=True, slots=True)
class OverlapFinding:
    """One thing that should not be."""

    trouble: OverlapTrouble
    start: str
    end: str
    count: int
    """How many addresses; 0 where that cannot be told."""
    subjects: tuple[str, ...]
    """`NetworkPool namespace/name` and `IPAllocation namespace/name`."""
    message: str

    def as_json(self) -> dict[str, Any]:
        return {
            "trouble": self.trouble.value,
            "start": self.start,
            "end": self.end,
            "count": self.count,
            "subjects": list(self.subjects),
            "message": self.message,
        }


class _Claim(NamedTuple):
    """Addresses that an allocation or a pool has."""

    family: Family
    addresses: Range
    who: str
    what: str


def overlaps(pools: Sequence[NetworkPool], allocations: Sequence[IPAllocation]) -> list[OverlapFinding]:
    """Everything that two share, or one has without a right to it."""
    return [*_pools(pools), *_twice(pools, allocations), *_outside(pools, allocations)]


def _pools(pools: Sequence[NetworkPool]) -> Iterator[OverlapFinding]:
    claims: list[_Claim] = []
    for pool in pools:
        name = f"NetworkPool {_key(pool)}"
        claimed = pool.status.claimed_cidr
        for cidr, what in ((pool.spec.cidr, pool.spec.cidr), (claimed, f"{claimed}, which it still hands out from")):
            if cidr and (cidr != pool.spec.cidr or what == cidr):
                try:
                    claims.append(_Claim(*parse_network(cidr), name, what))
                except BadAddress:
                    continue
    for one, other in _sharing(claims):
        yield _finding(
            OverlapTrouble.POOLS, _shared(one, other), one.family, (one.who, other.who),
            f"{one.who} ({one.what}) and {other.who} ({other.what}) overlap: give one of them another network",
        )  # fmt: skip


def _twice(pools: Sequence[NetworkPool], allocations: Sequence[IPAllocation]) -> Iterator[OverlapFinding]:
    claims: list[_Claim] = []
    for allocation in allocations:
        held = readable_range(allocation)
        if held is not None:
            claims.append(_Claim(*held, f"IPAllocation {_key(allocation)}", "holds"))
    for pool in pools:
        for intent in promised(pool, allocations):
            who = f"IPAllocation {pool.metadata.namespace}/{intent.name}"
            claims.append(_Claim(*intent_range(intent), who, "is being granted"))
    for one, other in _sharing(claims):
        shared = _shared(one, other)
        yield _finding(
            OverlapTrouble.TWICE, shared, one.family, (one.who, other.who),
            f"{one.who} {one.what} {range_text(shared, one.family)}, and {other.who} {other.what} it too:"
            " find out who uses it, and release the other",
        )  # fmt: skip


def _outside(pools: Sequence[NetworkPool], allocations: Sequence[IPAllocation]) -> Iterator[OverlapFinding]:
    own: dict[Key, list[IPAllocation]] = {_key(pool): [] for pool in pools}
    for allocation in allocations:
        held, status = held_addresses(allocation), allocation.status
        if held is None:
            continue
        who, asked = f"IPAllocation {_key(allocation)}", pool_key(allocation)
        start, end = status.start_address or "?", status.end_address or "?"
        count = 0 if held.problem else held.range.size
        if held.problem:
            message = f"{who} holds {start}-{end}, which is no range of addresses: put its status right"
            yield OverlapFinding(OverlapTrouble.UNREADABLE, start, end, count, (who,), message)
        elif asked not in own:
            message = f"{who} holds {start}-{end} of NetworkPool {asked}, which is not there: make it again, or release"
            yield OverlapFinding(OverlapTrouble.NO_POOL, start, end, count, (who,), message)
        else:
            own[asked].append(allocation)
    for pool in pools:
        yield from _outside_of(pool, own[_key(pool)])


def _outside_of(pool: NetworkPool, own: Sequence[IPAllocation]) -> Iterator[OverlapFinding]:
    shown, name, todo = segments_of(pool, own), f"NetworkPool {_key(pool)}", "grow the pool, or release it"
    for segment in shown.segments:
        if segment.stranded:
            who = f"IPAllocation {pool.metadata.namespace}/{segment.holders[0].allocation}"
            text = range_text(segment.range, shown.family)
            why = f"reserves it ({segment.description})" if segment.description else "does not hand it out"
            yield _finding(
                OverlapTrouble.OUTSIDE, segment.range, shown.family, (who, name),
                f"{who} holds {text}, but {name} {why}: {todo}",
            )  # fmt: skip
    held = {allocation.metadata.name: readable_range(allocation) for allocation in own} if shown.elsewhere else {}
    for lost in shown.elsewhere:
        who = f"IPAllocation {pool.metadata.namespace}/{lost.allocation}"
        found = held[lost.allocation]
        message = f"{who} holds {lost.start}-{lost.end}, which is not all in {pool.spec.cidr} of {name}: {todo}"
        yield OverlapFinding(
            OverlapTrouble.OUTSIDE, lost.start, lost.end, found[1].size if found else 0, (who, name), message
        )


def _sharing(claims: Iterable[_Claim]) -> Iterator[tuple[_Claim, _Claim]]:
    """Claims that share addresses: each with the one below it that reaches furthest. Names all, if not every pair."""
    furthest: _Claim | None = None
    for claim in sorted(claims):
        if furthest is None or furthest.family is not claim.family:
            furthest = claim
            continue
        if claim.addresses.first <= furthest.addresses.last and claim.who != furthest.who:
            yield furthest, claim
        if claim.addresses.last > furthest.addresses.last:
            furthest = claim


def _shared(one: _Claim, other: _Claim) -> Range:
    return Range(max(one.addresses.first, other.addresses.first), min(one.addresses.last, other.addresses.last))


def _finding(
    trouble: OverlapTrouble, shared: Range, family: Family, subjects: tuple[str, ...], message: str
) -> OverlapFinding:
    start, end = address_text(shared.first, family), address_text(shared.last, family)
    return OverlapFinding(trouble, start, end, shared.size, subjects, message)


def _key(obj: NetworkPool | IPAllocation) -> Key:
    return Key(obj.metadata.namespace, obj.metadata.name)
