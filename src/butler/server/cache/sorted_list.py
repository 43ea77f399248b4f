"""Items that lists show, each made once when its object changes, and kept in the orders that lists are read in.

Sorting ten thousand items takes longer than a request may: an order is made when it is first asked for, and from then
on an item that changes is moved from its place to its new one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from butler.api.objects import Key
from butler.server.list_page import KeyOrder, ListPage, Sorts, end_of, page_of, sort_of

T = TypeVar("T")
Wanted = Callable[[T, str], bool]
"""Takes an item and the text that it is found by, in small letters."""


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
        self._orders: dict[tuple[str | None, str], KeyOrder] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> T | None:
        entry = self._entries.get(key)
        return entry.item if entry else None

    def items(self, group: str | None = None) -> Iterator[T]:
        return (self._entries[key].item for key in self._keys(group))

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
        field, descending = sort_of(self._sorts, sort)
        return next(self._order(None, field).keys(descending=descending), None)

    def page(
        self, *, sort: str, limit: int, cursor: str | None, group: str | None = None, wanted: Wanted[T] | None = None
    ) -> ListPage:
        """A page of a group, or of all, in the order that was asked for."""
        field, descending = sort_of(self._sorts, sort)
        order, after = self._order(group, field), end_of(cursor)
        keys: Iterable[Key] = order.keys(after, descending=descending)
        if wanted is None:
            total = len(self._keys(group))
        elif after is None:
            keys = list(self._wanted(keys, wanted))
            total = len(keys)
        else:
            keys = self._wanted(keys, wanted)
            total = sum(1 for _ in self._wanted(order.keys(descending=descending), wanted))
        return page_of(keys, self._item, self._sorts[field], limit=limit, total=total)

    def _item(self, key: Key) -> T:
        return self._entries[key].item

    def _keys(self, group: str | None) -> Collection[Key]:
        return self._entries if group is None else self._groups.get(group, {})

    def _wanted(self, keys: Iterable[Key], wanted: Wanted[T]) -> Iterator[Key]:
        entries = self._entries
        return (key for key in keys if wanted((entry := entries[key]).item, entry.text))

    def _order(self, group: str | None, field: str) -> KeyOrder:
        order = self._orders.get((group, field))
        if order is None:
            value = self._sorts[field]
            order = KeyOrder((value(self._entries[key].item), key) for key in self._keys(group))
            if group is None or group in self._groups:  # what is not there yet is not worth keeping
                self._orders[group, field] = order
        return order
