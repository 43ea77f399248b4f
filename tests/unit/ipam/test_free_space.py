"""Free space: where a request goes, case by case. The random histories are in test_free_space_model."""

from __future__ import annotations

import random

import pytest

from butler.ipam.addresses import Family, Range, range_text
from butler.ipam.free_space import FreeSpace, NotFree, NotTaken
from unit.ipam.pools import layout, span


def net(last_octets: str) -> Range:
    """`8-15` in 10.0.0.0/24."""
    first, _, last = last_octets.partition("-")
    return span(f"10.0.0.{first}-10.0.0.{last or first}")


def holes(space: FreeSpace) -> list[str]:
    return [range_text(hole, Family.V4).replace("10.0.0.", "") for hole in space.extents()]


EMPTY: list[str] = []


@pytest.mark.parametrize(
    ("why", "size", "taken", "count", "expected"),
    [
        ("the first of an empty /24", "0-255", EMPTY, 8, "0-7"),
        ("a single one", "0-255", EMPTY, 1, "0"),
        ("all of it", "0-255", EMPTY, 256, "0-255"),
        ("one more than all of it", "0-255", EMPTY, 257, None),
        ("the hole between two blocks of a /27", "0-31", ["0-3", "12-15"], 8, "4-11"),
        ("of holes of 10, 3 and 50 the 10", "0-68", ["10-12", "16-18"], 5, "0-4"),
        ("of holes of 10, 3 and 50 the 3", "0-68", ["10-12", "16-18"], 3, "13-15"),
        ("of holes of 10, 3 and 50 the 50", "0-68", ["10-12", "16-18"], 11, "19-29"),
        ("no hole of four is five long", "0-27", ["4-7", "12-15", "20-23"], 5, None),
        ("the lowest of equal holes", "0-27", ["4-7", "12-15", "20-23"], 4, "0-3"),
        ("an exact fit before a lower, longer hole", "0-31", ["8-11", "16-31"], 4, "12-15"),
        ("from the start of the hole, whatever the alignment", "0-31", ["0-4"], 8, "5-12"),
        ("nothing in a full pool", "0-31", ["0-31"], 1, None),
    ],
)
def test_a_request_goes_into_the_smallest_hole_that_holds_it(
    why: str, size: str, taken: list[str], count: int, expected: str | None
) -> None:
    space = FreeSpace.without([net(size)], [net(block) for block in taken])
    assert space.best_fit(count) == (net(expected) if expected else None), why


def test_32_requests_for_8_fill_a_24_without_overlap_and_then_it_is_full() -> None:
    space = FreeSpace([net("0-255")])
    seen: set[int] = set()
    for _ in range(32):
        place = space.best_fit(8)
        assert place is not None
        space.take(place)
        assert seen.isdisjoint(range(place.first, place.last + 1))
        seen.update(range(place.first, place.last + 1))
    assert len(seen) == 256
    assert (space.best_fit(1), space.free, space.largest, space.holes) == (None, 0, 0, 0)


def test_a_released_block_is_used_for_the_small_request_and_the_end_for_the_large() -> None:
    space = FreeSpace.without([net("0-255")], [net("0-7"), net("8-15"), net("16-23"), net("24-31")])
    space.give(net("8-15"))
    assert space.best_fit(4) == net("8-11")
    space.take(net("8-11"))
    assert space.best_fit(8) == net("32-39")


def test_a_reserved_block_is_skipped_and_one_outside_the_window_ignored() -> None:
    pool = layout("10.0.0.0/24", "10.0.0.16-10.0.0.63", reserved=("10.0.0.32/28", "10.0.0.128/28"))
    space = FreeSpace(pool.usable)
    assert holes(space) == ["16-31", "48-63"]
    assert space.best_fit(17) is None


def test_three_migrated_ranges_stay_clear_of_what_is_handed_out_afterwards() -> None:
    space = FreeSpace([net("0-63")])
    migrated = [net("4-9"), net("10-12"), net("40-47")]
    for block in migrated:
        space.take(block)
    assert space.best_fit(5) == net("48-52")
    assert holes(space) == ["0-3", "13-39", "48-63"]


def test_touching_ranges_are_no_conflict() -> None:
    space = FreeSpace([net("0-63")])
    space.take(net("16-23"))
    space.take(net("8-15"))
    space.take(net("24-31"))
    assert holes(space) == ["0-7", "32-63"]


@pytest.mark.parametrize(
    ("wanted", "conflict"),
    [("0-63", "20"), ("20", "20"), ("18-22", "20"), ("25-40", "25"), ("27-40", "40"), ("60-70", "64"), ("200", "200")],
)
def test_taking_what_is_not_free_names_the_first_conflict_and_changes_nothing(wanted: str, conflict: str) -> None:
    space = FreeSpace.without([net("0-63")], [net("20-25"), net("40")])
    before = holes(space)
    with pytest.raises(NotFree) as caught:
        space.take(net(wanted))
    assert caught.value.address == net(conflict).first
    assert (holes(space), space.free) == (before, 57)


@pytest.mark.parametrize(
    ("given_back", "first_not_taken"),
    [("20-26", "26"), ("19-25", "19"), ("0", "0"), ("10-50", "10"), ("64", "64"), ("60-70", "60")],
)
def test_giving_back_what_is_free_or_foreign_is_refused_and_changes_nothing(
    given_back: str, first_not_taken: str
) -> None:
    space = FreeSpace.without([net("0-63")], [net("20-25"), net("40")])
    before = holes(space)
    with pytest.raises(NotTaken) as caught:
        space.give(net(given_back))
    assert caught.value.address == net(first_not_taken).first
    assert (holes(space), space.free) == (before, 57)


def test_holes_do_not_melt_across_windows_that_touch() -> None:
    space = FreeSpace([net("0-15"), net("16-31")])
    assert (space.largest, space.holes, space.best_fit(17)) == (16, 2, None)
    space.take(net("12-15"))
    space.take(net("16-19"))
    space.give(net("12-15"))
    space.give(net("16-19"))
    assert holes(space) == ["0-15", "16-31"]


def test_a_range_over_two_windows_that_touch_is_taken_and_given_back_as_a_whole() -> None:
    space = FreeSpace([net("0-15"), net("16-31"), net("40-47")])
    space.take(net("10-20"))
    assert holes(space) == ["0-9", "21-31", "40-47"]
    with pytest.raises(NotTaken):
        space.give(net("10-21"))
    with pytest.raises(NotFree):
        space.take(net("21-40"))
    assert holes(space) == ["0-9", "21-31", "40-47"]
    space.give(net("10-20"))
    assert holes(space) == ["0-15", "16-31", "40-47"]


def test_what_is_taken_may_overlap_and_reach_outside_when_a_space_is_made_from_records() -> None:
    taken = [net("10-20"), net("15-18"), net("0-2"), net("30-50"), net("19-21"), net("200")]
    space = FreeSpace.without([net("60-70"), net("1-31"), net("32-45"), net("48-55")], taken)
    assert holes(space) == ["3-9", "22-29", "51-55", "60-70"]
    assert space.free == 7 + 8 + 5 + 11


@pytest.mark.parametrize("extents", [["0-7", "7-9"], ["0-7", "3-4"], ["5-5", "5-5"]])
def test_extents_that_overlap_are_no_space(extents: list[str]) -> None:
    with pytest.raises(ValueError, match="overlap"):
        FreeSpace([net(extent) for extent in extents])


def test_a_reversed_range_is_never_taken_for_an_empty_one() -> None:
    backwards = Range(20, 10)
    space = FreeSpace([Range(0, 63)])
    for verb in (space.take, space.give, space.is_free, space.first_taken):
        with pytest.raises(ValueError, match="before it begins"):
            verb(backwards)
    with pytest.raises(ValueError, match="before it begins"):
        FreeSpace([backwards])
    with pytest.raises(ValueError, match="before it begins"):
        FreeSpace.without([Range(0, 63)], [backwards])
    with pytest.raises(ValueError, match="cannot look for 0 addresses"):
        space.best_fit(0)


def test_a_space_of_nothing_answers_all_questions() -> None:
    space = FreeSpace(())
    assert (space.free, space.largest, space.holes, space.best_fit(1)) == (0, 0, 0, None)
    assert (list(space.extents()), space.largest_holes(3), space.first_taken(Range(5, 6))) == ([], [], 5)
    with pytest.raises(NotTaken):
        space.give(Range(0, 0))


def test_the_largest_holes_come_longest_first_and_asking_changes_nothing() -> None:
    space = FreeSpace.without([net("0-63")], [net("4"), net("9"), net("14"), net("17"), net("40")])
    for _ in range(3):
        largest = [range_text(hole, Family.V4).replace("10.0.0.", "") for hole in space.largest_holes(4)]
        assert largest == ["41-63", "18-39", "0-3", "5-8"]
    assert len(space.largest_holes(99)) == 6
    assert space.largest_holes(0) == []
    assert space.best_fit(3) == net("0-2")


def test_a_hole_that_went_and_came_back_is_listed_once() -> None:
    space = FreeSpace.without([net("0-63")], [net("4-7"), net("12-63")])
    for _ in range(5):
        space.take(net("0-3"))
        space.give(net("0-3"))
    assert space.largest_holes(5) == [net("0-3"), net("8-11")]
    space.take(net("0-3"))
    assert space.largest_holes(5) == [net("8-11")]


def test_the_lowest_hole_is_found_also_after_a_heap_was_cleaned() -> None:
    """Many holes of one size, most of them taken again in random order, so that vanished entries outweigh."""
    chance = random.Random(3)
    blocks = [Range(start * 977, start * 977 + 3) for start in range(300)]
    space = FreeSpace.without([Range(0, 300 * 977)], [Range(b.last + 1, b.first + 976) for b in blocks])
    while len(blocks) > 1:
        space.take(blocks.pop(chance.randrange(len(blocks))))
        assert space.best_fit(4) == blocks[0]


def test_the_last_address_of_all_can_be_handed_out() -> None:
    space = FreeSpace([span("255.255.255.0/24")])
    space.take(span("255.255.255.0-255.255.255.254"))
    assert space.best_fit(1) == span("255.255.255.255")
    space.take(span("255.255.255.255"))
    space.give(span("255.255.255.248/29"))
    assert space.largest == 8


def test_a_pool_of_sixteen_million_costs_no_more_memory_than_its_holes() -> None:
    """Every index has at most a few entries per hole, however long the history."""
    chance = random.Random(7)
    space = FreeSpace([span("10.0.0.0/8")])
    held: list[Range] = []
    for step in range(30_000):
        if held and (len(held) > 400 or chance.random() < 0.45):
            space.give(held.pop(chance.randrange(len(held))))
        else:
            place = space.best_fit(chance.choice((1, 2, 3, 5, 8)))
            assert place is not None
            space.take(place)
            held.append(place)
        if step % 100 == 0:
            entries = sum(len(heap) for heap in space._by_size.values())
            assert entries <= 2 * space.holes + 16 * len(space._sizes)
            holes_now = list(space.extents())
            for count in (1, 2, 3, 5, 8):
                smallest = min((hole.size, hole.first) for hole in holes_now if hole.size >= count)
                assert space.best_fit(count) == Range(smallest[1], smallest[1] + count - 1)
    for block in held:
        space.give(block)
    assert list(space.extents()) == [span("10.0.0.0/8")]
    assert sum(len(heap) for heap in space._by_size.values()) == 1
