"""Who holds what, kept in step: after any history the books say what a slow recount says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.objects import Change, Key, key_of
from butler.ipam.addresses import BadAddress, Family, Range, address_text
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import read_layout
from butler.rules.pool.holdings import Book, Holding, holding_of, pool_named_in
from unit.controllers.networkpool.values import NAMESPACE, POOL, allocation, grants, holdings_of, planned, pool

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

OTHER = Key(NAMESPACE, "other")
BASE = 10 << 24
# Two windows with a gap between, two that touch, and a reserved block in the middle of one.
LAYOUTS = [
    read_layout(pool("10.0.0.4-10.0.0.11", "10.0.0.16-10.0.0.23", "10.0.0.24-10.0.0.30").spec),
    read_layout(pool("10.0.0.0-10.0.0.31", reserved=("10.0.0.8/30", "10.0.0.20/32")).spec),
]


def text(first: int, last: int) -> str:
    return f"{address_text(BASE + first, Family.V4)}-{address_text(BASE + last, Family.V4)}"


def test_an_allocation_holds_its_range_while_it_is_allocated() -> None:
    held = holding_of(allocation("a", holds="10.0.0.1-10.0.0.4"))
    assert held == (Family.V4, Range(BASE + 1, BASE + 4), POOL, "a")
    assert holding_of(allocation("a")) is None
    assert holding_of(allocation("a", holds="10.0.0.1-10.0.0.4", phase="Released")) is None


def test_an_allocation_that_is_allocated_and_names_no_range_makes_no_sense() -> None:
    with pytest.raises(BadAddress, match="startAddress or endAddress is missing"):
        holding_of(allocation("a", phase="Allocated"))


@pytest.mark.parametrize("nonsense", ["10.0.0.4-10.0.0.1", "10.0.0.1-fd00::1", "999.999.999.999-10.0.0.1", "-"])
def test_a_status_that_makes_no_sense_is_said_to_be_one(nonsense: str) -> None:
    with pytest.raises(BadAddress):
        holding_of(allocation("a", holds=nonsense))


def test_a_holding_that_became_unreadable_is_left_as_it_was_and_reported() -> None:
    before, after = allocation("a", holds="10.0.0.4-10.0.0.7"), allocation("a", holds="none-10.0.0.7")
    unreadable: list[Key] = []
    holdings = holdings_of(before, unreadable=unreadable)
    book = holdings.book(POOL, LAYOUTS[0])
    holdings.changed(Change(key_of(before), before, after))
    assert unreadable == [POOL]
    assert holdings.unreadable(POOL) == ["a"]
    assert book.holders(Range(BASE + 4, BASE + 4)) == ["a"]
    assert holdings.count(POOL) == 1
    holdings.changed(Change(key_of(before), after, before))
    assert holdings.unreadable(POOL) == []


@pytest.mark.parametrize("end", ["10.0.0.1O", "10.0.0.3"], ids=["no address", "before the start"])
def test_a_new_process_knows_that_it_does_not_know(end: str) -> None:
    """It never saw the status make sense, so nothing keeps it from taking the range for free but this."""
    strange = allocation("a", holds=f"10.0.0.4-{end}")
    holdings = holdings_of(strange)
    assert holdings.unreadable(POOL) == ["a"]
    assert holdings.unreadable(Key(POOL.namespace, "another")) == []
    holdings.changed(Change(key_of(strange), strange, None))
    assert holdings.unreadable(POOL) == []


@pytest.mark.parametrize(
    ("text", "pool"),
    [
        (b'{"spec":{"poolRef":{"name":"p","x":1},"count":"many"},"status":{"allocatedAt":"never"}}', "p"),
        (b'{"spec":{"poolRef":{"name":5}}}', None),
        (b'{"spec":{}}', None),
        (b"[", None),
    ],
)
def test_the_pool_of_an_object_that_does_not_fit_is_read_if_that_much_can_be(text: bytes, pool: str | None) -> None:
    assert pool_named_in(text) == pool


def test_the_same_name_with_a_new_uid_holds_nothing_of_the_old_one() -> None:
    before = allocation("a", holds="10.0.0.4-10.0.0.7", uid="old")
    holdings = holdings_of(before)
    book = holdings.book(POOL, LAYOUTS[0])
    holdings.changed(Change(key_of(before), before, allocation("a", uid="new")))
    assert book.free.free == LAYOUTS[0].total
    assert holdings.count(POOL) == 0


def test_a_book_whose_sums_are_wrong_is_made_anew_rather_than_left_behind() -> None:
    gone, stays = allocation("a", holds="10.0.0.4-10.0.0.7"), allocation("b", holds="10.0.0.16-10.0.0.17")
    holdings = holdings_of(gone, stays)
    book = holdings.book(POOL, LAYOUTS[0])
    book.free.give(Range(BASE + 5, BASE + 5))
    moved = allocation("a", holds="10.0.0.8-10.0.0.9")
    holdings.changed(Change(key_of(gone), gone, moved))
    assert book.free.free == LAYOUTS[0].total - 4
    assert book.free.is_free(Range(BASE + 4, BASE + 7))
    assert not book.free.is_free(Range(BASE + 8, BASE + 8))


def test_what_a_tenant_holds_is_free_for_no_other_whatever_pool_it_names() -> None:
    holdings = holdings_of(allocation("a", holds="10.0.0.4-10.0.0.11", of="other"))
    assert not holdings.book(POOL, LAYOUTS[0]).free.is_free(Range(BASE + 11, BASE + 11))
    assert (holdings.count(POOL), holdings.count(OTHER)) == (0, 1)
    assert [holding.name for holding in holdings.of(OTHER)] == ["a"]


def test_a_book_is_made_anew_when_the_pool_is_edited() -> None:
    holdings = holdings_of(allocation("a", holds="10.0.0.4-10.0.0.11"))
    first = holdings.book(POOL, LAYOUTS[0])
    assert holdings.book(POOL, LAYOUTS[0]) is first
    assert holdings.book(POOL, LAYOUTS[1]).free.free == LAYOUTS[1].total - 4, "8 to 11 are reserved there"


def test_those_whose_addresses_an_edit_took_out_of_the_pool_are_named() -> None:
    wholly, partly = allocation("w", holds="10.0.0.100-10.0.0.101"), allocation("p", holds="10.0.0.10-10.0.0.16")
    others = allocation("o", holds="10.0.0.100-10.0.0.101", of="other")
    holdings = holdings_of(wholly, partly, others, allocation("in", holds="10.0.0.5-10.0.0.5"))
    book = holdings.book(POOL, LAYOUTS[0])
    assert sorted(book.stranded.values()) == ["p", "w"]
    holdings.changed(Change(key_of(partly), partly, None))
    assert sorted(book.stranded.values()) == ["w"]


def test_holdings_that_overlap_are_all_named_and_each_address_counts_once() -> None:
    """A user wrote statuses by hand."""
    big, small = allocation("big", holds="10.0.0.4-10.0.0.11"), allocation("small", holds="10.0.0.9-10.0.0.10")
    holdings = holdings_of(big, small)
    book = holdings.book(POOL, LAYOUTS[0])
    assert book.free.free == LAYOUTS[0].total - 8
    assert book.holders(Range(BASE + 4, BASE + 5)) == ["big"]
    assert book.holders(Range(BASE + 10, BASE + 10)) == ["big", "small"]
    holdings.changed(Change(key_of(big), big, None))
    assert book.free.free == LAYOUTS[0].total - 2, "what the other one still has is not free"
    holdings.changed(Change(key_of(small), small, None))
    assert book.free.free == LAYOUTS[0].total


def test_a_pool_with_overlapping_holdings_still_hands_out_what_is_free() -> None:
    made = planned(
        pool("10.0.0.0-10.0.0.15"),
        allocation("a", holds="10.0.0.0-10.0.0.7"),
        allocation("b", holds="10.0.0.4-10.0.0.11"),
        allocation("c", 4),
    )
    assert grants(made) == {"c": "10.0.0.12-10.0.0.15"}
    assert (made.status.allocated_ips, made.status.available_ips, made.status.allocation_count) == (16, 0, 3)


# What it costs, counted.


@pytest.mark.parametrize("pools", [10, 200])
def test_an_allocation_costs_its_own_book_and_no_other(pools: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Books are looked up by address, and begin with what lies in their addresses: pools do not multiply anything."""
    touched: list[str] = []
    laid_out: list[int] = []
    without = FreeSpace.without

    def counted(change: Any) -> Any:
        def count(self: Book, uid: str, *holding: Holding) -> None:
            touched.append(uid)
            change(self, uid, *holding)

        return count

    def counted_without(usable: Any, taken: list[Range]) -> FreeSpace:
        laid_out.append(len(taken))
        return without(usable, taken)

    monkeypatch.setattr(Book, "enter", counted(Book.enter))
    monkeypatch.setattr(Book, "strike", counted(Book.strike))
    monkeypatch.setattr(FreeSpace, "without", counted_without)
    held = [
        allocation(f"{number}-{item}", holds=f"10.1.{number}.{item}-10.1.{number}.{item}", of=f"p{number}")
        for number in range(pools)
        for item in range(5)
    ]
    holdings = holdings_of(*held)
    for number in range(pools):
        layout = read_layout(pool(cidr=f"10.1.{number}.0/24").spec)
        assert holdings.book(Key(NAMESPACE, f"p{number}"), layout).free.free == 254 - 4, "the first address is none"
    assert laid_out == [4] * pools
    holdings.changed(Change(key_of(held[7]), held[7], allocation("1-2", holds="10.1.1.9-10.1.1.9", of="p1")))
    assert touched == ["uid-1-2"] * 2
    assert len(holdings.of(Key(NAMESPACE, "p1"))) == 5


# Against a recount.


@dataclass
class Recount:
    """Everything as sets of addresses, counted from the start each time."""

    held: dict[str, IPAllocation] = field(default_factory=dict)

    def addresses(self, each: IPAllocation) -> set[int]:
        found = holding_of(each)
        return set(range(found.range.first, found.range.last + 1)) if found else set()

    def check(self, book: Book) -> None:
        usable = {address for piece in book.layout.usable for address in range(piece.first, piece.last + 1)}
        taken = {address for item in self.held.values() for address in self.addresses(item)}
        free = {address for hole in book.free.extents() for address in range(hole.first, hole.last + 1)}
        assert free == usable - taken
        assert book.free.free == len(free)
        for wanted in (Range(BASE + 4, BASE + 4), Range(BASE + 8, BASE + 20), Range(BASE + 30, BASE + 30)):
            asked = set(range(wanted.first, wanted.last + 1))
            expected = {
                n for n, each in self.held.items() if self.addresses(each) & asked and self.addresses(each) & usable
            }
            named = book.holders(wanted)
            assert sorted(named) == sorted(expected)


ENDS = st.tuples(st.integers(0, 35), st.integers(0, 9)).map(lambda pair: text(pair[0], pair[0] + pair[1]))
STATES = st.one_of(st.none(), st.just("waits"), ENDS)
HISTORIES = st.lists(st.tuples(st.sampled_from("abcdef"), STATES, st.booleans()), max_size=25)


@given(HISTORIES, st.sampled_from(LAYOUTS))
def test_after_any_history_the_book_says_what_a_recount_says(
    history: list[tuple[str, str | None, bool]], layout: Any
) -> None:
    holdings, recount = holdings_of(), Recount()
    book = holdings.book(POOL, layout)
    known: dict[str, IPAllocation] = {}
    for name, state, look in history:
        before = known.pop(name, None)
        recount.held.pop(name, None)
        now = None
        if state is not None:
            now = known[name] = allocation(name, holds=None if state == "waits" else state)
            if state != "waits":
                recount.held[name] = now
        if before is not None or now is not None:
            holdings.changed(Change(Key(NAMESPACE, name), before, now))
        if look:  # else changes pile up in a book that has not been read yet
            recount.check(book)
        assert holdings.count(POOL) == len(recount.held)
    recount.check(book)
    fresh = holdings_of(*known.values()).book(POOL, layout)
    assert list(fresh.free.extents()) == list(book.free.extents())
    assert fresh.stranded == book.stranded
