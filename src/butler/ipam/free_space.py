"""The free addresses of a pool, as holes: what fits where, and what becomes of it.

A hole is a run of free addresses that is as long as can be. Four indexes describe the holes:

- by first and by last address (two dicts): a released range finds the holes beside it and melts with them;
- by last address in order: finds the hole around any address. It is kept by *last* address because a grant is cut
  from a hole's start, which leaves its end where it was, so most grants do not touch this index at all;
- by size: the distinct sizes, sorted, and for each a heap of the holes' first addresses. A heap forgets lazily: an
  entry whose hole is gone is skipped when it comes up, and a heap that is mostly such entries is cleaned.

So nothing costs more in a large pool than in a small one, and everything is at most logarithmic in the holes.

A space is made of pieces (the windows of a pool, cut by what is reserved). Holes never reach from one piece into
the next, even where the two touch: a grant lies inside one window. Only what belongs to a piece can be given back.

Every verb either does all that it was asked, or raises and leaves the space as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from butler.ipam.addresses import Range
from butler.ipam.ordered import Ordered
from butler.ipam.range_difference import gaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SLACK = 16
"""Entries of vanished holes that a heap may always keep; cleaning very short heaps would cost more than it frees."""


class NotFree(Exception):
    """A range cannot be taken: this address of it, the first such, is not free."""

    def __init__(self, address: int) -> None:
        super().__init__(f"address {address} is not free")
        self.address = address


class NotTaken(Exception):
    """A range cannot be given back: this address of it is free already, or belongs to no piece of this space."""

    def __init__(self, address: int) -> None:
        super().__init__(f"address {address} is not taken")
        self.address = address


class FreeSpace:
    """Which addresses are free, in holes."""

    __slots__ = (
        "_by_size",
        "_ends",
        "_firsts",
        "_lasts",
        "_live",
        "_piece_firsts",
        "_piece_lasts",
        "_sizes",
        "free",
        "longest_piece",
    )

    def __init__(self, extents: Iterable[Range]) -> None:
        """A space with all of these extents free; they must not overlap."""
        pieces = _in_order(extents)
        self._lay_out(pieces, pieces)

    @classmethod
    def without(cls, usable: Iterable[Range], taken: Iterable[Range]) -> FreeSpace:
        """A space with these extents, less what is taken of them.

        What is taken may overlap itself and reach outside: a pool may have been edited since it was granted.
        """
        pieces = _in_order(usable)
        space = cls(())
        space._lay_out(pieces, gaps(pieces, sorted(taken)))
        return space

    def _lay_out(self, pieces: Sequence[tuple[int, int]], holes: Sequence[tuple[int, int]]) -> None:
        self._piece_firsts = [first for first, _ in pieces]
        self._piece_lasts = [last for _, last in pieces]
        self.longest_piece = max((last - first + 1 for first, last in pieces), default=0)
        """Length of the longest hole that there can ever be."""
        self._lasts = dict(holes)
        self._firsts = {last: first for first, last in holes}
        self._by_size: dict[int, list[int]] = {}
        for first, last in holes:
            # In order of address, and so a heap.
            self._by_size.setdefault(last - first + 1, []).append(first)
        self._live = {size: len(starts) for size, starts in self._by_size.items()}
        self._sizes = sorted(self._by_size)
        self.free = sum(size * live for size, live in self._live.items())
        self._ends = Ordered(self._firsts)

    @property
    def holes(self) -> int:
        """How many runs the free addresses form."""
        return len(self._lasts)

    @property
    def largest(self) -> int:
        """Length of the longest hole; 0 when nothing is free."""
        return self._sizes[-1] if self._sizes else 0

    def lengths(self) -> dict[int, int]:
        """How many holes there are of each length: all that matters where it does not matter which addresses."""
        return dict(self._live)

    def extents(self) -> Iterator[Range]:
        """The holes, in order of address."""
        return (Range(first, last) for first, last in sorted(self._lasts.items()))

    def largest_holes(self, most: int) -> list[Range]:
        """The longest holes, longest first, lowest address first among equals."""
        found: list[Range] = []
        for size in reversed(self._sizes):
            starts = self._by_size[size]
            shown: list[int] = []
            while len(found) < most and len(shown) < self._live[size]:
                first = self._lowest(size)
                shown.append(first)
                found.append(Range(first, first + size - 1))
                while starts and starts[0] == first:
                    heappop(starts)
            for first in shown:
                heappush(starts, first)
            if len(found) >= most:
                break
        return found

    def best_fit(self, count: int) -> Range | None:
        """Where to put so many addresses: at the start of the smallest hole that holds them, of equals the lowest."""
        if count < 1:
            raise ValueError(f"cannot look for {count} addresses")
        place = bisect_left(self._sizes, count)
        if place == len(self._sizes):
            return None
        first = self._lowest(self._sizes[place])
        return Range(first, first + count - 1)

    def first_taken(self, addresses: Range) -> int | None:
        """The first address of the range that is not free, or None when all are."""
        first, last = _forward(addresses)
        while True:
            hole = self._hole_around(first)
            if hole is None:
                return first
            if last <= hole[1]:
                return None
            first = hole[1] + 1  # two windows that touch: free on both sides, and yet two holes

    def is_free(self, addresses: Range) -> bool:
        """Whether every address of the range is free."""
        return self.first_taken(addresses) is None

    def take(self, addresses: Range) -> None:
        """Make these addresses taken. Raises `NotFree` unless all of them are free."""
        first, last = addresses
        hole_first, hole_last = first, self._lasts.get(first)
        if hole_last is None or not first <= last <= hole_last:
            # Not from the start of a hole, then: somewhere inside one, over two that touch, or not at all.
            conflict = self.first_taken(addresses)
            if conflict is not None:
                raise NotFree(conflict)
            around = self._hole_around(first)
            assert around is not None, "an address that is free lies in a hole"
            hole_first, hole_last = around
            if hole_last < last:
                self.take(Range(hole_last + 1, last))
                last = hole_last
        self._forget(hole_first, hole_last)
        if hole_first < first:
            self._remember(hole_first, first - 1)
            self._ends.add(first - 1)
        if last < hole_last:
            self._remember(last + 1, hole_last)
        else:
            self._ends.remove(last)
        self.free -= last - first + 1

    def give(self, addresses: Range) -> None:
        """Make these addresses free. Raises `NotTaken` unless all of them are taken and belong to this space."""
        first, last = addresses
        piece = bisect_right(self._piece_firsts, first) - 1
        if piece < 0 or not first <= last <= self._piece_lasts[piece]:
            self._give_in_parts(addresses)
            return
        hole_first, hole_last = first, last
        next_last = self._ends.at_or_after(first)
        if next_last is not None:
            next_first = self._firsts[next_last]
            if next_first <= last:
                raise NotTaken(max(first, next_first))
            if next_first == last + 1 and last < self._piece_lasts[piece]:
                self._forget(next_first, next_last)
                hole_last = next_last
        if first > self._piece_firsts[piece] and first - 1 in self._firsts:
            hole_first = self._firsts[first - 1]
            self._forget(hole_first, first - 1)
            self._ends.remove(first - 1)
        if hole_last == last:
            self._ends.add(last)
        self._remember(hole_first, hole_last)
        self.free += last - first + 1

    def _give_in_parts(self, addresses: Range) -> None:
        """Give back a range that lies in no single piece: it may cover several that touch."""
        parts: list[Range] = []
        first, last = _forward(addresses)
        while first <= last:
            piece = bisect_right(self._piece_firsts, first) - 1
            if piece < 0 or first > self._piece_lasts[piece]:
                raise NotTaken(first)
            part = Range(first, min(last, self._piece_lasts[piece]))
            next_last = self._ends.at_or_after(first)
            if next_last is not None and self._firsts[next_last] <= part.last:
                raise NotTaken(max(first, self._firsts[next_last]))
            parts.append(part)
            first = part.last + 1
        for part in parts:
            self.give(part)

    def _hole_around(self, address: int) -> tuple[int, int] | None:
        last = self._ends.at_or_after(address)
        if last is None or self._firsts[last] > address:
            return None
        return self._firsts[last], last

    def _lowest(self, size: int) -> int:
        """First address of the lowest hole of this size, of which there must be one."""
        starts = self._by_size[size]
        while self._lasts.get(starts[0]) != starts[0] + size - 1:
            heappop(starts)
        return starts[0]

    def _remember(self, first: int, last: int) -> None:
        self._lasts[first] = last
        self._firsts[last] = first
        size = last - first + 1
        starts = self._by_size.get(size)
        if starts is None:
            self._by_size[size] = [first]
            self._live[size] = 1
            insort(self._sizes, size)
        else:
            heappush(starts, first)
            self._live[size] += 1

    def _forget(self, first: int, last: int) -> None:
        del self._lasts[first]
        del self._firsts[last]
        size = last - first + 1
        live = self._live[size] - 1
        if not live:
            del self._live[size], self._by_size[size], self._sizes[bisect_left(self._sizes, size)]
            return
        self._live[size] = live
        starts = self._by_size[size]
        if len(starts) > 2 * live + _SLACK:
            lasts = self._lasts
            starts[:] = {start for start in starts if lasts.get(start) == start + size - 1}
            heapify(starts)


def _forward(addresses: Range) -> Range:
    if addresses.last < addresses.first:
        raise ValueError(f"a range cannot end ({addresses.last}) before it begins ({addresses.first})")
    return addresses


def _in_order(extents: Iterable[Range]) -> list[Range]:
    ordered = sorted(_forward(extent) for extent in extents)
    for before, after in pairwise(ordered):
        if after.first <= before.last:
            raise ValueError(f"the extents {before} and {after} overlap")
    return ordered
