"""Lists page by page: one way to order, and one kind of cursor, for all lists. Pure.

A cursor says where the page before ended, by the value that was sorted by and the key of the item: nothing is shown
twice or left out when other items come or go, and it stays good when the very item that it names has gone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from butler.api.objects import Key
from butler.server.cursor import decode_cursor, encode_cursor
from butler.server.problems import RequestRefused

T = TypeVar("T")
MOST: Final = 1_000
USUAL: Final = 100
Value = str | int | float
Sorts = Mapping[str, Callable[[T], Value | None]]
"""By which fields a list can be sorted, and the value of each."""


class ListPage(NamedTuple):
    """One page of a list."""

    items: list[Any]
    total: int
    next: str | None


class PageEnd(NamedTuple):
    """Where a page ended: what a cursor holds."""

    value: Value | None
    key: Key


class _Place(NamedTuple):
    value: Value
    key: Key


P = TypeVar("P", _Place, Key)


class KeyOrder:
    """Keys in the order of a value. Items without a value come last, in either direction."""

    def __init__(self, values: Iterable[tuple[Value | None, Key]] = ()) -> None:
        valued = list(values)
        self._known = sorted(_Place(value, key) for value, key in valued if value is not None)
        self._unknown = sorted(key for value, key in valued if value is None)

    def add(self, value: Value | None, key: Key) -> None:
        if value is None:
            insort(self._unknown, key)
        else:
            insort(self._known, _Place(value, key))

    def remove(self, value: Value | None, key: Key) -> None:
        if value is None:
            _take_out(self._unknown, key)
        else:
            _take_out(self._known, _Place(value, key))

    def keys(self, after: PageEnd | None = None, *, descending: bool) -> Iterator[Key]:
        """All keys in this order, from behind the end of a page on."""
        known, unknown = self._known, self._unknown
        if after is not None:
            if after.value is None:
                return iter(unknown[bisect_right(unknown, after.key) :])
            at = _Place(after.value, after.key)
            try:
                known = known[: bisect_left(known, at)] if descending else known[bisect_right(known, at) :]
            except TypeError:  # its value cannot be compared with those of this order
                raise RequestRefused(
                    422, "cursor: it was given out for another order: begin with the first page"
                ) from None
        in_order = reversed(known) if descending else iter(known)
        return (key for part in ((place.key for place in in_order), iter(unknown)) for key in part)


def _take_out(places: list[P], place: P) -> None:
    at = bisect_left(places, place)
    if at < len(places) and places[at] == place:
        del places[at]


def sort_of(sorts: Sorts[T], sort: str) -> tuple[str, bool]:
    """The field that was asked for, and whether it is to descend."""
    field = sort.removeprefix("-")
    if field not in sorts:
        raise RequestRefused(422, f"sort: {field!r} is no field to sort by: take one of {', '.join(sorted(sorts))}")
    return field, sort.startswith("-")


def end_of(cursor: str | None) -> PageEnd | None:
    """Where the page before ended; None for the first page."""
    if cursor is None:
        return None
    found = decode_cursor(cursor, PageEnd)
    if found is None:
        raise RequestRefused(422, "cursor: this is none that was given out here: take it from `next` of a page")
    return found


def page_of(
    keys: Iterable[Key], items: Callable[[Key], T], value: Callable[[T], Value | None], *, limit: int, total: int
) -> ListPage:
    """The page that begins with the first of these keys; `value` is what they are sorted by."""
    taken = [(key, items(key)) for key in islice(keys, limit + 1)]
    shown = taken[:limit]
    end = PageEnd(value(shown[-1][1]), shown[-1][0]) if len(taken) > limit else None
    return ListPage([item for _, item in shown], total, encode_cursor(end) if end else None)


class _Named(Protocol):
    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def sorted_page(items: Iterable[N], *, sorts: Sorts[N], sort: str, limit: int, cursor: str | None) -> ListPage:
    """A page of items that are not kept in any order."""
    field, descending = sort_of(sorts, sort)
    by_key = {Key(item.namespace, item.name): item for item in items}
    value = sorts[field]
    order = KeyOrder((value(item), key) for key, item in by_key.items())
    keys = order.keys(end_of(cursor), descending=descending)
    return page_of(keys, by_key.__getitem__, value, limit=limit, total=len(by_key))
