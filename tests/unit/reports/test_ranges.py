"""Ranges taken from ranges."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from butler.ipam.addresses import Range
from butler.ipam.range_difference import without

ranges = st.builds(lambda first, size: Range(first, first + size), st.integers(0, 60), st.integers(0, 20))


@given(ranges, st.lists(ranges, max_size=6))
def test_what_is_left_of_a_range_is_what_no_other_has(wanted: Range, taken: list[Range]) -> None:
    left = [value for piece in without(wanted, taken) for value in range(piece.first, piece.last + 1)]
    others = {value for span in taken for value in range(span.first, span.last + 1)}
    assert left == [value for value in range(wanted.first, wanted.last + 1) if value not in others]
