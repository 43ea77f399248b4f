"""Who holds which addresses, kept in step with the allocation cache.

One `Book` per pool answers what the pool's next decision needs: the free space, and who holds a given address. It
changes only when the cache does, that is, when the server has said so: a decision that was made but not written
leaves no trace here. Every live allocation is entered into every book whose addresses it touches, whatever pool it
names: an address that one allocation holds is free for no other. Which books those are, and which allocations a new
book begins with, is looked up by address: neither costs more because there are many pools.

State that people edited by hand can be absurd. Two allocations that overlap do no harm: the book rebuilds its free
space each time. A status that names no range (an address that is none, an end without a start) may stand for any
address of its pool, whatever was known of it before: `unreadable` names such allocations, and a pool that has one
hands out nothing, before and after a restart alike.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, Family, Range
from butler.ipam.free_space import FreeSpace, NotFree, NotTaken
from butler.ipam.range_index import RangeIndex
from butler.rules.allocation.held import held_addresses, pool_key

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Change
    from butler.ipam.layout import PoolLayout


log = logging.getLogger(__name__)


class Holding(NamedTuple):
    """One live allocation: what it holds, whose it is."""

    family: Family
    range: Range
    pool: Key
    name: str


def holding_of(allocation: IPAllocation) -> Holding | None:
    """What an allocation holds; None when it holds nothing. Raises BadAddress for a status that makes no sense."""
    held = held_addresses(allocation)
    if held is None:
        return None
    if held.problem:
        raise BadAddress(held.problem)
    return Holding(held.family, held.range, pool_key(allocation), allocation.metadata.name)


class _Reference(msgspec.Struct):
    name: str


class _Wish(msgspec.Struct, rename="camel"):
    pool_ref: _Reference


class _Asking(msgspec.Struct):
    """As much of an allocation as says which pool it is from."""

    spec: _Wish


def pool_named_in(text: bytes) -> str | None:
    """The pool that an allocation names which cannot be read as one; None where not even that can be read."""
    try:
        return msgspec.json.decode(text, type=_Asking).spec.pool_ref.name
    except (msgspec.MsgspecError, RecursionError):
        return None


class LiveAllocations:
    """All live allocations, findable by UID, by pool and by address."""

    def __init__(self, holdings: Iterable[tuple[str, Holding]] = ()) -> None:
        self._by_uid: dict[str, Holding] = {}
        self._by_pool: dict[Key, dict[str, Holding]] = {}
        self._by_address = {family: RangeIndex[str]() for family in Family}
        for uid, holding in holdings:
            self.add(uid, holding)

    def items(self) -> Iterable[tuple[str, Holding]]:
        return self._by_uid.items()

    def get(self, uid: str) -> Holding | None:
        return self._by_uid.get(uid)

    def of(self, pool: Key) -> dict[str, Holding]:
        """What names the pool, by UID."""
        return self._by_pool.get(pool, {})

    def touching(self, family: Family, addresses: Range) -> list[Holding]:
        """Who holds any of these addresses, lowest first."""
        return [self._by_uid[uid] for _, uid in self._by_address[family].touching(addresses)]

    def add(self, uid: str, holding: Holding) -> None:
        self._by_uid[uid] = holding
        self._by_pool.setdefault(holding.pool, {})[uid] = holding
        self._by_address[holding.family].add(holding.range, uid)

    def remove(self, uid: str) -> None:
        holding = self._by_uid.pop(uid)
        of_pool = self._by_pool[holding.pool]
        del of_pool[uid]
        if not of_pool:
            del self._by_pool[holding.pool]
        self._by_address[holding.family].remove(holding.range, uid)


class Book:
    """What is held inside one pool's usable addresses, and which of its own allocations are elsewhere."""

    def __init__(self, pool: Key, layout: PoolLayout, live: LiveAllocations) -> None:
        self.layout = layout
        self.reach = Range(layout.usable[0].first, layout.usable[-1].last)
        """What a holding has to touch to concern this book, unless the pool is its own."""
        self.stranded: dict[str, str] = {}
        """Names by UID of this pool's allocations with addresses that it no longer hands out."""
        self._pool = pool
        self._starts = [piece.first for piece in layout.usable]
        self._live = live
        self._exact = False
        self._free = FreeSpace(())
        for uid, holding in live.of(pool).items():
            self._note_stranded(uid, holding)

    @property
    def free(self) -> FreeSpace:
        """What is not held. Borrow it for a decision and leave it as it was."""
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
        for place in range(index, len(self.layout.usable)):
            piece = self.layout.usable[place]
            if piece.first > wanted.last:
                return
            first, last = max(piece.first, wanted.first), min(piece.last, wanted.last)
            if first <= last:
                yield Range(first, last)

    def holders(self, wanted: Range) -> list[str]:
        """Names of the allocations that hold any of these addresses and any usable ones, lowest address first."""
        touching = self._live.touching(self.layout.family, wanted)
        held = sorted((holding.range, holding.name) for holding in touching if any(self.inside(holding.range)))
        return [name for _, name in held]

    def all_holders(self, wanted: Range) -> list[str]:
        """Names of the allocations that hold any of these addresses, usable or not."""
        return sorted(holding.name for holding in self._live.touching(self.layout.family, wanted))

    def enter(self, uid: str, holding: Holding) -> None:
        """An allocation holds addresses from now on."""
        self._note_stranded(uid, holding)
        if self._exact and holding.family is self.layout.family:
            try:
                for part in self.inside(holding.range):
                    self._free.take(part)
            except NotFree:
                self._exact = False

    def strike(self, uid: str, holding: Holding) -> None:
        """An allocation, which was entered or here from the beginning, holds them no longer."""
        self.stranded.pop(uid, None)
        if self._exact and holding.family is self.layout.family:
            try:
                for part in self.inside(holding.range):
                    self._free.give(part)
            except NotTaken:  # cannot be; but a handler that raises would leave the books behind for good
                self._exact = False

    def _note_stranded(self, uid: str, holding: Holding) -> None:
        if holding.pool != self._pool:
            return
        inside = 0
        if holding.family is self.layout.family:
            inside = sum(part.size for part in self.inside(holding.range))
        if inside < holding.range.size:
            self.stranded[uid] = holding.name

    def _rebuild(self) -> None:
        ranges = [holding.range for holding in self._live.touching(self.layout.family, self.reach)]
        self._free = FreeSpace.without(self.layout.usable, ranges)
        # With overlaps, giving back one holding would free what another still has: then rebuild every time.
        taken = sum(part.size for held in ranges for part in self.inside(held))
        self._exact = taken == self.layout.total - self._free.free


class Holdings:
    """All live allocations, and a book for each pool that was asked about."""

    def __init__(self, on_unreadable: Callable[[Key], None]) -> None:
        self._live = LiveAllocations()
        self._books: dict[Key, Book] = {}
        self._reaches = {family: RangeIndex[Key]() for family in Family}
        self._unreadable: dict[Key, dict[str, str]] = {}
        """Names by UID of allocations whose status makes no sense, by the pool that they name."""
        self._on_unreadable = on_unreadable

    def book(self, pool: Key, layout: PoolLayout) -> Book:
        """The book of a pool, made anew when the pool's addresses changed."""
        known = self._books.get(pool)
        if known is None or known.layout != layout:
            self.close(pool)
            known = self._books[pool] = Book(pool, layout, self._live)
            self._reaches[layout.family].add(known.reach, pool)
        return known

    def close(self, pool: Key) -> None:
        """The pool is gone."""
        known = self._books.pop(pool, None)
        if known is not None:
            self._reaches[known.layout.family].remove(known.reach, pool)

    def pools_around(self, family: Family, addresses: Range) -> list[Key]:
        """The pools that have a book and may hand out any of these addresses."""
        return [pool for _, pool in self._reaches[family].touching(addresses)]

    def count(self, pool: Key) -> int:
        """How many live allocations name the pool."""
        return len(self._live.of(pool))

    def of(self, pool: Key) -> Collection[Holding]:
        """The live allocations that name the pool."""
        return self._live.of(pool).values()

    def unreadable(self, pool: Key) -> list[str]:
        """Names of allocations of the pool whose status does not say what they hold."""
        return list(self._unreadable.get(pool, {}).values())

    def changed(self, change: Change[IPAllocation]) -> None:
        """Take in what the cache reports."""
        if change.old is not None:
            self._forget_unreadable(change.old)
            if change.new is None or change.new.metadata.uid != change.old.metadata.uid:
                self._set(change.old.metadata.uid, None)
        if change.new is not None:
            uid = change.new.metadata.uid
            try:
                self._set(uid, holding_of(change.new))
            except BadAddress as error:
                # What it held before is still the best guess at what it holds, and only a guess.
                log.error("IPAllocation %s has a status that cannot be read: %s", change.key, error)
                pool = pool_key(change.new)
                self._unreadable.setdefault(pool, {})[uid] = change.new.metadata.name
                self._on_unreadable(pool)

    def _forget_unreadable(self, allocation: IPAllocation) -> None:
        pool = pool_key(allocation)
        known = self._unreadable.get(pool)
        if known is not None and known.pop(allocation.metadata.uid, None) is not None and not known:
            del self._unreadable[pool]

    def _set(self, uid: str, holding: Holding | None) -> None:
        before = self._live.get(uid)
        if before == holding:
            return
        if before is not None:
            self._live.remove(uid)
            for book in self._concerned(before):
                book.strike(uid, before)
        if holding is not None:
            self._live.add(uid, holding)
            for book in self._concerned(holding):
                book.enter(uid, holding)

    def _concerned(self, holding: Holding) -> list[Book]:
        """The books that a holding touches, and that of its own pool, which names those outside of it."""
        pools = {pool for _, pool in self._reaches[holding.family].touching(holding.range)}
        if holding.pool in self._books:
            pools.add(holding.pool)
        return [self._books[pool] for pool in pools]
