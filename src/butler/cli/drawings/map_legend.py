"""What the signs of a pool map mean: how many addresses each stands for, and which. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from butler.api.printable import one_line
from butler.ipam.addresses import Range, range_cidr, range_text
from butler.reports.pool.segments import Kind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from butler.ipam.addresses import Family
    from butler.reports.pool.segments import PoolSegments

LONGEST_NAME = 40
SHORTEST_NAME = len("not handed out")
ALWAYS_NAMED = 10
"""So many of the largest tenants are named even where no cell is wholly theirs."""
WRONG, OTHERS = "!", "&"
FULL, UNHELD, PARTS = "*", ":", "0123456789"
"""Cells that mix several things: nothing of it is free, nothing is held, or how many tenths are."""


class Line(NamedTuple):
    """A line of the legend: the sign, and what stands beside it."""

    sign: str
    text: str


@dataclass(slots=True)
class _Entry:
    """Addresses that go by one sign."""

    sign: str
    name: str
    ranges: list[Range] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tenants: set[str] = field(default_factory=set)

    @property
    def count(self) -> int:
        return sum(span.size for span in self.ranges)

    def add(self, addresses: Range, note: str = "") -> None:
        if self.ranges and self.ranges[-1].last + 1 == addresses.first and self.notes[-1] == note:
            self.ranges[-1] = Range(self.ranges[-1].first, addresses.last)
        else:
            self.ranges.append(addresses)
            self.notes.append(note)


def legend(
    shown: PoolSegments,
    width: int,
    *,
    signs: Mapping[Kind, str],
    letters: Mapping[str, str],
    drawn: Collection[str],
) -> list[Line]:
    """Tenants by size, then what is fixed, then the signs of cells that mix several things."""
    named = {
        tenant: letter
        for rank, (tenant, letter) in enumerate(letters.items())
        if rank < ALWAYS_NAMED or letter in drawn
    }
    rows = list(_entries(shown, signs, named))
    name = min(LONGEST_NAME, max((len(row.name) for row in rows), default=0), max(SHORTEST_NAME, width // 3))
    count = max((len(f"{row.count:,}") for row in rows), default=0)
    lines = []
    for row in rows:
        head = f"{_cut_inside(row.name, name):<{name}}  {row.count:>{count},}  "
        lines.append(Line(row.sign, head + _ranges(row, shown.family, width - 5 - len(head))))
    if any(sign in PARTS for sign in drawn):
        said = "partly held: 3 is 30 to 39%"
        lines.append(Line("0-9", _fitted(f"mixed, and {said}", said, width - 5)))
    if FULL in drawn:
        lines.append(Line(FULL, "mixed, and nothing of it is free"))
    if UNHELD in drawn:
        lines.append(Line(UNHELD, "mixed, and nothing of it is held"))
    return lines


def _entries(shown: PoolSegments, signs: Mapping[Kind, str], letters: Mapping[str, str]) -> Iterator[_Entry]:
    tenants = {tenant: _Entry(letter, tenant or "unknown") for tenant, letter in letters.items()}
    others = _Entry(OTHERS, "")
    fixed = {
        Kind.GRANTING: _Entry(signs[Kind.GRANTING], "being granted"),
        Kind.DRAINING: _Entry(signs[Kind.DRAINING], "being taken back"),
        Kind.FREE: _Entry(signs[Kind.FREE], "free"),
        Kind.RESERVED: _Entry(signs[Kind.RESERVED], "reserved"),
        Kind.OUTSIDE: _Entry(signs[Kind.OUTSIDE], "not handed out"),
    }
    twice = _Entry(WRONG, "held twice")
    stranded = _Entry(WRONG, "held, not handed out")
    for segment in shown.segments:
        holder = segment.holders[0] if segment.holders else None
        if segment.kind is Kind.ALLOCATED and holder is not None:
            entry = tenants.get(holder.tenant, others)
            entry.tenants.add(holder.tenant)
            entry.add(segment.range)
        elif segment.kind is Kind.FREE:
            fixed[Kind.FREE].ranges.append(segment.range)  # holes of touching windows stay apart
            fixed[Kind.FREE].notes.append("")
        else:
            fixed[segment.kind].add(segment.range, one_line(segment.description) or (holder.tenant if holder else ""))
        if segment.held_by > 1:
            names = " and ".join(one.allocation for one in segment.holders[:2])
            twice.add(segment.range, names + (f" and {segment.held_by - 2} more" if segment.held_by > 2 else ""))
        if segment.stranded and holder is not None:
            stranded.add(segment.range, holder.allocation)
    others.name = f"{len(others.tenants)} more tenants"
    for entry in (twice, stranded, *tenants.values(), others, *fixed.values()):
        if entry.ranges:
            yield entry


def _ranges(entry: _Entry, family: Family, room: int) -> str:
    """As many ranges as there is room for, largest first where they are holes, and how many more there are."""
    if entry.name == "free":
        return _holes(entry.ranges, family, room)
    texts = [
        _spelled(addresses, family) + (f" ({note})" if note else "")
        for addresses, note in zip(entry.ranges[:32], entry.notes[:32], strict=True)
    ]
    return _as_many(texts, len(entry.ranges), room)


def _holes(holes: Sequence[Range], family: Family, room: int) -> str:
    largest = max(holes, key=lambda hole: (hole.size, -hole.first))
    if len(holes) == 1:
        return _fitted(f"in one hole, {_spelled(largest, family)}", "in one hole", room)
    count = f"in {len(holes):,} holes"
    return _fitted(f"{count}, the largest {_spelled(largest, family)} ({largest.size:,})", count, room)


def _fitted(text: str, shorter: str, room: int) -> str:
    return text if len(text) <= room else shorter


def _spelled(addresses: Range, family: Family) -> str:
    cidr = range_cidr(addresses, family)
    return cidr if cidr and addresses.size > 1 else range_text(addresses, family)


def _as_many(texts: Sequence[str], count: int, room: int) -> str:
    for shown in range(len(texts), 0, -1):
        more = count - shown
        made = ", ".join(texts[:shown]) + (f" and {more:,} more" if more else "")
        if len(made) <= room:
            return made
    if count == 1:
        return _cut(texts[0], max(room, 8))
    return f"{count:,} ranges"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _cut_inside(text: str, most: int) -> str:
    """A name without its middle: names of many tenants begin alike, and those of one team end differently."""
    if len(text) <= most:
        return text
    end = (most - 3) // 2
    return f"{text[: most - 3 - end]}...{text[-end:]}"
