"""Who holds which addresses, kept in step with the allocation cache.

One `Book` per pool answers what the pool's next decision needs: the free space, and who holds a given address. It
changes only when the cache does, that is, when the server has said so: a decision that was made but not written
leaves no trace here. Every live allocation is entered into every book whose addresses it touches, whatever pool it
names: an address that anybody holds is not free for anybody else.

State that people edited by hand can be absurd (two allocations that overlap, an address that is none). A book
survives that: it keeps what it knew, and rebuilds its free space each time, where overlaps do no harm.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from itertools import islice, takewhile
from typing import TYPE_CHECKING, NamedTuple

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.ipam.addresses import BadAddress, Family, Range, parse_range
from butler.ipam.free_space import FreeSpace, NotFree, NotTaken
from butler.kube.resource import Key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from butler.ipam.layout import PoolLayout
    from butler.kube.store import Change


log = logging.getLogger(__name__)


class Holding(NamedTuple):
    """One live allocation: what it holds, whose it is."""

    family: Family
    range: Range
    pool: Key
    name: str


def holding_of(allocation: IPAllocation) -> Holding | None:
    """What an allocation holds; None when it holds nothing. Raises BadAddress for a status that makes no sense."""
    status = allocation.status
    if status.phase is not IPAllocationPhase.ALLOCATED or status.start_address is None or status.end_address is None:
        return None
    family, held = parse_range(status.start_address, status.end_address)
    return Holding(family, held, pool_key(allocation), allocation.metadata.name)


def pool_key(allocation: IPAllocation) -> Key:
    """The pool that an allocation asks: by name, in its own namespace."""
    return Key(allocation.metadata.namespace, allocation.spec.pool_ref.name)


class Book:
    """The holdings inside one pool's usable addresses, and those of its own allocations that are elsewhere."""

    def __init__(self, pool: Key, layout: PoolLayout, holdings: Iterable[tuple[str, Holding]]) -> None:
        self.layout = layout
        self.stranded: dict[str, str] = {}
        """Names by UID of this pool's allocations with addresses that it no longer hands out."""
        self._pool = pool
        self._starts = [piece.first for piece in layout.usable]
        self._held = {uid: holding for uid, holding in holdings if self._concerns(uid, holding)}
        self._in_order: list[tuple[int, str]] | None = None
        self._exact = False
        self._free = FreeSpace(())

    @property
    def free(self) -> FreeSpace:
        """What nobody holds. Borrow it for a decision and leave it as it was."""
        if not self._exact:
            self._rebuild()
        return self._free

    @property
    def overlaps(self) -> bool:
        """Whether two allocations hold the same address, which Butler never does by itself."""
        if not self._exact:
            self._rebuild()
        return not self._exact

    def inside(self, wanted: Range) -> Iterator[Range]:
        """The parts of a range that lie inside the usable addresses."""
        index = max(0, bisect_right(self._starts, wanted.first) - 1)
        for piece in self.layout.usable[index:]:
            if piece.first > wanted.last:
                return
            first, last = max(piece.first, wanted.first), min(piece.last, wanted.last)
            if first <= last:
                yield Range(first, last)

    def holders(self, wanted: Range) -> list[str]:
        """Names of the allocations that hold any of these addresses, lowest address first."""
        if not self._exact:  # where holdings overlap, no order helps to find them
            found = sorted((held.range, held.name) for held in self._held.values() if held.range.overlaps(wanted))
            return [name for _, name in found]
        if self._in_order is None:
            self._in_order = sorted((holding.range.last, uid) for uid, holding in self._held.items())
        first = bisect_right(self._in_order, (wanted.first - 1, "~"))
        held = (self._held[uid] for _, uid in islice(self._in_order, first, None))
        return [each.name for each in takewhile(lambda each: each.range.first <= wanted.last, held)]

    def enter(self, uid: str, holding: Holding) -> None:
        self.strike(uid)
        if not self._concerns(uid, holding):
            return
        self._held[uid] = holding
        self._in_order = None
        if self._exact:
            try:
                for part in self.inside(holding.range):
                    self._free.take(part)
            except NotFree:
                self._exact = False

    def strike(self, uid: str) -> None:
        self.stranded.pop(uid, None)
        holding = self._held.pop(uid, None)
        if holding is None:
            return
        self._in_order = None
        if self._exact:
            try:
                for part in self.inside(holding.range):
                    self._free.give(part)
            except NotTaken:  # cannot be; but a handler that raises would leave the books behind for good
                self._exact = False

    def _concerns(self, uid: str, holding: Holding) -> bool:
        """Whether a holding takes any of the usable addresses; notes one of the pool's own that has others too."""
        inside = 0
        if holding.family is self.layout.family:
            inside = sum(part.size for part in self.inside(holding.range))
        if holding.pool == self._pool and inside < holding.range.size:
            self.stranded[uid] = holding.name
        return inside > 0

    def _rebuild(self) -> None:
        ranges = [holding.range for holding in self._held.values()]
        self._free = FreeSpace.without(self.layout.usable, ranges)
        # With overlaps, giving back one holding would free what another still has: then rebuild every time.
        taken = sum(part.size for held in ranges for part in self.inside(held))
        self._exact = taken == self.layout.total - self._free.free


class Holdings:
    """All live allocations, and a book for each pool that was asked about."""

    def __init__(self, on_unreadable: Callable[[Key], None]) -> None:
        self._live: dict[str, Holding] = {}
        self._books: dict[Key, Book] = {}
        self._counts: dict[Key, int] = {}
        self._on_unreadable = on_unreadable

    def book(self, pool: Key, layout: PoolLayout) -> Book:
        """The book of a pool, made anew when the pool's addresses changed."""
        known = self._books.get(pool)
        if known is None or known.layout != layout:
            known = self._books[pool] = Book(pool, layout, self._live.items())
        return known

    def close(self, pool: Key) -> None:
        """The pool is gone."""
        self._books.pop(pool, None)

    def count(self, pool: Key) -> int:
        """How many live allocations name the pool."""
        return self._counts.get(pool, 0)

    def of(self, pool: Key) -> Iterator[Holding]:
        return (holding for holding in self._live.values() if holding.pool == pool)

    def changed(self, change: Change[IPAllocation]) -> None:
        """Take in what the cache reports."""
        if change.old is not None and (change.new is None or change.new.metadata.uid != change.old.metadata.uid):
            self._set(change.old.metadata.uid, None)
        if change.new is not None:
            uid = change.new.metadata.uid
            try:
                self._set(uid, holding_of(change.new))
            except BadAddress as error:
                # What it held before is still the best guess at what it holds.
                log.error(
                    "IPAllocation %s has a status that cannot be read, so it is left as it was: %s", change.key, error
                )
                self._on_unreadable(pool_key(change.new))

    def _set(self, uid: str, holding: Holding | None) -> None:
        before = self._live.get(uid)
        if before == holding:
            return
        if before is not None:
            del self._live[uid]
            self._counts[before.pool] -= 1
            for book in self._books.values():
                book.strike(uid)
        if holding is not None:
            self._live[uid] = holding
            self._counts[holding.pool] = self._counts.get(holding.pool, 0) + 1
            for book in self._books.values():
                book.enter(uid, holding)
