"""Which ranges touch given addresses, against a look at all of them; and how many have to be looked at for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import Range
from butler.ipam.ordered import Ordered
from butler.ipam.range_index import RangeIndex

if TYPE_CHECKING:
    from collections.abc import Iterator

RANGES = st.tuples(st.integers(0, 300), st.sampled_from([0, 0, 1, 2, 3, 7, 8, 63, 200])).map(
    lambda pair: Range(pair[0], pair[0] + pair[1])
)


@given(st.lists(st.tuples(RANGES, st.sampled_from("abcd"))), RANGES)
def test_what_touches_is_found_however_the_ranges_overlap(steps: list[tuple[Range, str]], wanted: Range) -> None:
    index: RangeIndex[str] = RangeIndex()
    held: set[tuple[Range, str]] = set()
    for step in steps:  # a second time takes it away
        (index.remove if step in held else index.add)(*step)
        held ^= {step}
        assert index.touching(wanted) == sorted((each, key) for each, key in held if each.overlaps(wanted))
    assert bool(index) == bool(held)


def test_addresses_of_ipv6_are_found_as_well() -> None:
    index: RangeIndex[str] = RangeIndex()
    network = Range(0xFD << 120, (0xFD << 120) + (1 << 64) - 1)
    index.add(network, "rack")
    assert index.touching(Range(network.last, network.last + 5)) == [(network, "rack")]
    assert index.touching(Range(network.last + 1, network.last + 5)) == []


@pytest.mark.parametrize("count", [100, 10_000])
def test_a_question_looks_at_a_few_ranges_however_many_there_are(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    index: RangeIndex[int] = RangeIndex()
    for number in range(count):
        index.add(Range(16 * number, 16 * number + 4 + number % 12), number)
    looked = 0
    between = Ordered.between

    def counted(self: Ordered[Any], low: Any, high: Any) -> Iterator[Any]:
        nonlocal looked
        for member in between(self, low, high):
            looked += 1
            yield member

    monkeypatch.setattr(Ordered, "between", counted)
    first = 16 * (count // 2)
    assert [key for _, key in index.touching(Range(first, first + 20))] == [count // 2, count // 2 + 1]
    assert looked <= 8
