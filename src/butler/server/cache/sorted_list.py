"""Items that lists show, each made once when its object changes, and kept in the orders that people read them in.

Sorting ten thousand items takes longer than a request may: an order is made when it is first asked for, and from then
on an item that changes is taken out of its place and put into its new one.

A cursor says where the page before ended, by the value that was sorted by: nothing is shown twice or left out when
others come or go, and it stays good when the very item that it names has gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from butler.api.objects import Key
from butler.server.cursor import encode_cursor
from butler.server.problems import RequestRefused
from butler.server.responses import ListPage, read_cursor

T = TypeVar("T")
Value = str | int | float
Sorts = Mapping[str, Callable[[T], Value | None]]
Wanted = Callable[[T, str], bool]
"""Takes an item and the text that it is found by, in small letters."""


class _Place(NamedTuple):
    """Where an item stands in an order. What has no value comes last, whichever way the order is read."""

    value: Value
    key: Key


P = TypeVar("P", _Place, Key)


class _Order:
    def __init__(self) -> None:
        self.known: list[_Place] = []
        self.unknown: list[Key] = []

    def add(self, value: Value | None, key: Key) -> None:
        if value is None:
            insort(self.unknown, key)
        else:
            insort(self.known, _Place(value, key))

    def remove(self, value: Value | None, key: Key) -> None:
        if value is None:
            _take_out(self.unknown, key)
        else:
            _take_out(self.known, _Place(value, key))

    def keys(self, after: _Mark | None, *, descending: bool) -> Iterator[Key]:
        """All keys in this order, from behind a mark on."""
        known, unknown = self.known, self.unknown
        if after is not None:
            if after.value is None:
                return iter(unknown[bisect_right(unknown, after.key) :])
            at = _Place(after.value, after.key)
            known = known[: bisect_left(known, at)] if descending else known[bisect_right(known, at) :]
        in_order = reversed(known) if descending else iter(known)
        return (key for part in ((place.key for place in in_order), iter(unknown)) for key in part)


class _Mark(NamedTuple):
    """Where a page ended."""

    value: Value | None
    key: Key


class _Entry(NamedTuple, Generic[T]):
    item: T
    text: str
    groups: frozenset[str]


class SortedList(Generic[T]):
    """Items by key. `sorts` says by which fields they can be ordered, `text` what they are found by."""

    def __init__(self, sorts: Sorts[T], text: Callable[[T], str]) -> None:
        self._sorts = sorts
        self._text = text
        self._entries: dict[Key, _Entry[T]] = {}
        self._groups: dict[str, dict[Key, None]] = {}
        self._orders: dict[tuple[str | None, str], _Order] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> T | None:
        entry = self._entries.get(key)
        return entry.item if entry else None

    def items(self, group: str | None = None) -> Iterator[T]:
        keys: Iterable[Key] = self._entries if group is None else self._groups.get(group, {})
        return (self._entries[key].item for key in keys)

    def put(self, key: Key, item: T, groups: Iterable[str] = ()) -> None:
        """An item that is new, or has changed."""
        self.drop(key)
        entry = _Entry(item, self._text(item).lower(), frozenset(groups))
        self._entries[key] = entry
        for group in entry.groups:
            self._groups.setdefault(group, {})[key] = None
        for (group_of, field), order in self._orders.items():
            if group_of is None or group_of in entry.groups:
                order.add(self._sorts[field](item), key)

    def drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        for (group_of, field), order in self._orders.items():
            if group_of is None or group_of in entry.groups:
                order.remove(self._sorts[field](entry.item), key)
        for group in entry.groups:
            members = self._groups[group]
            del members[key]
            if not members:
                self._forget(group)

    def _forget(self, group: str) -> None:
        del self._groups[group]
        for pair in [known for known in self._orders if known[0] == group]:
            del self._orders[pair]

    def first(self, sort: str) -> Key | None:
        """The key of the item that comes first in an order."""
        return next(self._order(None, sort.removeprefix("-")).keys(None, descending=sort.startswith("-")), None)

    def page(
        self, *, sort: str, limit: int, cursor: str | None, group: str | None = None, wanted: Wanted[T] | None = None
    ) -> ListPage:
        """A page of a group, or of all, in the order that was asked for."""
        field, descending = sort.removeprefix("-"), sort.startswith("-")
        if field not in self._sorts:
            raise RequestRefused(
                422, f"sort: {field!r} is no field to sort by: take one of {', '.join(sorted(self._sorts))}"
            )
        order = self._order(group, field)
        after = read_cursor(cursor, _Mark) if cursor is not None else None
        try:
            keys = order.keys(after, descending=descending)
        except TypeError:  # its value cannot be compared with those of this order
            raise RequestRefused(422, "cursor: it was given out for another order: begin with the first page") from None
        shown = self._wanted(keys, wanted)
        if wanted is None:
            total = len(self._entries) if group is None else len(self._groups.get(group, ()))
        elif after is None:
            shown = list(shown)
            total = len(shown)
        else:
            total = sum(1 for _ in self._wanted(order.keys(None, descending=descending), wanted))
        page = list(islice(shown, limit + 1))
        last = page[limit - 1] if len(page) > limit else None
        mark = _Mark(self._sorts[field](self._entries[last].item), last) if last else None
        return ListPage([self._entries[key].item for key in page[:limit]], total, encode_cursor(mark) if mark else None)

    def _wanted(self, keys: Iterable[Key], wanted: Wanted[T] | None) -> Iterable[Key]:
        if wanted is None:
            return keys
        entries = self._entries
        return (key for key in keys if wanted((entry := entries[key]).item, entry.text))

    def _order(self, group: str | None, field: str) -> _Order:
        order = self._orders.get((group, field))
        if order is None:
            order = _Order()
            value = self._sorts[field]
            keys: Iterable[Key] = self._entries if group is None else self._groups.get(group, {})
            valued = [(value(self._entries[key].item), key) for key in keys]
            order.known = sorted(_Place(found, key) for found, key in valued if found is not None)
            order.unknown = sorted(key for found, key in valued if found is None)
            if group is None or group in self._groups:  # what is not there yet is not worth keeping
                self._orders[group, field] = order
        return order


def _take_out(places: list[P], place: P) -> None:
    at = bisect_left(places, place)
    if at < len(places) and places[at] == place:
        del places[at]
