"""Where so many addresses fit: held against looking at every address."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from butler.ipam.addresses import Family, Range
from butler.ipam.free_space import FreeSpace
from butler.reports.pool.free_blocks import free_blocks, free_blocks_json
from unit.ipam.pools import span

SPACES = st.lists(st.booleans(), min_size=1, max_size=80).map(
    lambda bits: FreeSpace.without(
        [Range(100, 99 + len(bits))], [Range(100 + at, 100 + at) for at, bit in enumerate(bits) if bit]
    )
)


@settings(max_examples=300, deadline=None)
@given(SPACES, st.integers(1, 20))
def test_every_hole_that_holds_so_many_is_there_and_the_engines_choice_is_marked(space: FreeSpace, size: int) -> None:
    found = free_blocks(space, size=size)
    assert [block.hole for block in found.blocks] == [hole for hole in space.extents() if hole.size >= size]
    assert found.best_fit == space.best_fit(size)
    assert [block.fit for block in found.blocks if block.chosen] == ([found.best_fit] if found.best_fit else [])


@settings(max_examples=300, deadline=None)
@given(SPACES, st.sampled_from([1, 2, 4, 8, 16]))
def test_an_aligned_fit_is_the_first_network_of_that_size_in_its_hole(space: FreeSpace, size: int) -> None:
    for block in free_blocks(space, size=size, align=True).blocks:
        networks = [at for at in range(0, 256, size) if block.hole.contains(Range(at, at + size - 1))]
        assert block.fit == Range(networks[0], networks[0] + size - 1)
    listed = {block.hole for block in free_blocks(space, size=size, align=True).blocks}
    for hole in space.extents():
        fits = any(hole.contains(Range(at, at + size - 1)) for at in range(0, 256, size))
        assert fits == (hole in listed)


@given(SPACES)
def test_without_a_size_the_largest_network_of_each_hole_is_found(space: FreeSpace) -> None:
    for block in free_blocks(space, align=True).blocks:
        assert block.hole.contains(block.fit)
        assert block.fit.first % block.fit.size == 0
        twice = 2 * block.fit.size
        assert not any(block.hole.contains(Range(at, at + twice - 1)) for at in range(0, 256, twice))


def test_json_has_the_choice_and_the_blocks() -> None:
    made = free_blocks_json(
        free_blocks(FreeSpace([span("10.0.0.0/28"), span("10.0.1.0/29")]), size=8), "rack", Family.V4
    )
    assert made["bestFit"] == {"start": "10.0.1.0", "end": "10.0.1.7", "count": 8, "cidr": "10.0.1.0/29"}
    assert [block["bestFit"] for block in made["blocks"]] == [False, True]
