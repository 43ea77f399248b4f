"""A sorted list against the plainest thing that does the same: all items, sorted anew for every page."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.objects import Key
from butler.server.cache.sorted_list import SortedList
from butler.server.problems import RequestRefused


class Thing(NamedTuple):
    name: str
    size: int | None
    colour: str


NAMES = st.sampled_from([f"thing-{number}" for number in range(12)])
THINGS = st.builds(Thing, NAMES, st.none() | st.integers(0, 4), st.sampled_from(["red", "green"]))
STEPS = st.lists(st.tuples(st.booleans(), THINGS), max_size=40)
SORTS = ("name", "-name", "size", "-size")


def _things() -> SortedList[Thing]:
    return SortedList({"name": lambda thing: thing.name, "size": lambda thing: thing.size}, lambda thing: thing.colour)


def _sorted(things: list[Thing], sort: str) -> list[Thing]:
    """What is not known comes last, whichever way."""
    if sort.endswith("name"):
        return sorted(things, key=lambda thing: thing.name, reverse=sort.startswith("-"))
    known = [thing for thing in things if thing.size is not None]
    unknown = [thing for thing in things if thing.size is None]
    in_order = sorted(known, key=lambda thing: (thing.size, thing.name), reverse=sort.startswith("-"))
    return [*in_order, *sorted(unknown, key=lambda thing: thing.name)]


@given(steps=STEPS, sort=st.sampled_from(SORTS), limit=st.integers(1, 5), red=st.booleans(), early=st.booleans())
def test_pages_are_those_of_a_list_that_is_sorted_anew(
    steps: list[tuple[bool, Thing]], sort: str, limit: int, red: bool, early: bool
) -> None:
    things, plain = _things(), dict[str, Thing]()
    if early:  # the order is there before the things are
        things.page(sort=sort, limit=1, cursor=None)
    for is_put, thing in steps:
        key = Key("here", thing.name)
        if is_put:
            things.put(key, thing, [thing.colour])
            plain[thing.name] = thing
        else:
            things.drop(key)
            plain.pop(thing.name, None)
    wanted = _sorted([thing for thing in plain.values() if not red or thing.colour == "red"], sort)
    for by_group in (True, False):
        found: list[Thing] = []
        cursor = None
        while True:
            page = things.page(
                sort=sort,
                limit=limit,
                cursor=cursor,
                group="red" if red and by_group else None,
                wanted=(lambda _, text: text == "red") if red and not by_group else None,
            )
            found += page.items
            assert page.total == len(wanted)
            cursor = page.next
            if cursor is None:
                break
        assert found == wanted


def test_a_cursor_stays_good_when_the_item_it_names_is_gone() -> None:
    things = _things()
    for number in range(4):
        things.put(Key("here", f"thing-{number}"), Thing(f"thing-{number}", number, "red"))
    page = things.page(sort="size", limit=2, cursor=None)
    things.drop(Key("here", "thing-1"))
    things.put(Key("here", "thing-0"), Thing("thing-0", 9, "red"))
    rest = things.page(sort="size", limit=9, cursor=page.next)
    assert [thing.name for thing in rest.items] == ["thing-2", "thing-3", "thing-0"]


def test_a_cursor_that_means_nothing_here_is_refused() -> None:
    things = _things()
    for number in range(3):
        things.put(Key("here", f"thing-{number}"), Thing(f"thing-{number}", number, "red"))
    page = things.page(sort="name", limit=1, cursor=None)
    for sort, cursor in (("size", page.next), ("name", "?"), ("name", "e30")):
        with pytest.raises(RequestRefused) as refused:
            things.page(sort=sort, limit=1, cursor=cursor)
        assert refused.value.status == 422
