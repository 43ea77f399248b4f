"""A range less ranges, against a count of single addresses."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import Range
from butler.ipam.range_difference import gaps, without

SPANS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda ends: Range(min(ends), max(ends)))


@given(SPANS, st.lists(SPANS, max_size=6))
def test_what_is_left_is_every_address_that_is_in_no_part(whole: Range, parts: list[Range]) -> None:
    left = without(whole, parts)
    taken = {address for part in parts for address in range(part.first, part.last + 1)}
    assert [address for piece in left for address in range(piece.first, piece.last + 1)] == [
        address for address in range(whole.first, whole.last + 1) if address not in taken
    ]
    assert all(before.last + 1 < after.first for before, after in itertools.pairwise(left))


def test_a_taken_range_reaches_over_several_pieces() -> None:
    assert gaps([(0, 4), (6, 9), (12, 15)], [(3, 7), (9, 12)]) == [(0, 2), (8, 8), (13, 15)]


def test_a_range_that_ends_before_it_begins_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="cannot end"):
        without(Range(0, 9), [Range(5, 4)])
