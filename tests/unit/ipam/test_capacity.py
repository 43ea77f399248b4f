"""How full a pool is, and which warnings that gives."""

from __future__ import annotations

import pytest

from butler.api.networkpool import CapacityTier
from butler.ipam.capacity import Capacity, capacity_of, fragmentation, tiers
from butler.ipam.free_space import FreeSpace
from unit.ipam.pools import layout, span


def raised(total: int, allocated: int) -> set[str]:
    return {tier.value for tier, holds in tiers(Capacity(total, allocated, 0, 0)).items() if holds}


WARNING, CRITICAL, EXHAUSTED = (tier.value for tier in CapacityTier)


@pytest.mark.parametrize(
    ("total", "allocated", "percent", "expected"),
    [
        # The table of the operations page: 32 addresses, tenants of 2.
        (32, 16, 50, set()),
        (32, 22, 68, set()),
        (32, 24, 75, {WARNING}),
        (32, 28, 87, {WARNING, CRITICAL}),
        (32, 32, 100, {WARNING, CRITICAL, EXHAUSTED}),
        # At the thresholds, and just below: nothing is rounded.
        (100, 69, 69, set()),
        (100, 70, 70, {WARNING}),
        (100, 80, 80, {WARNING}),
        (100, 84, 84, {WARNING}),
        (100, 85, 85, {WARNING, CRITICAL}),
        (100, 94, 94, {WARNING, CRITICAL}),
        (100, 95, 95, {WARNING, CRITICAL, EXHAUSTED}),
        (1000, 699, 69, set()),
        (2**24, 11744051, 69, set()),
        (2**24, 11744052, 70, {WARNING}),
        (1, 0, 0, set()),
        (1, 1, 100, {WARNING, CRITICAL, EXHAUSTED}),
        # Nothing to hand out: above no tier, and still all three are answered.
        (0, 0, 0, set()),
    ],
)
def test_the_tiers_hold_at_or_above_their_threshold(
    total: int, allocated: int, percent: int, expected: set[str]
) -> None:
    assert raised(total, allocated) == expected
    assert Capacity(total, allocated, 0, 0).percent == percent
    assert set(tiers(Capacity(total, allocated, 0, 0))) == set(CapacityTier)


@pytest.mark.parametrize(
    ("free", "largest", "longest_piece", "percent"),
    [
        (24, 16, 64, 34),
        (16, 2, 64, 88),
        (145, 141, 141, 0),
        (145, 141, 200, 3),
        (0, 0, 64, 0),
        (7, 7, 9, 0),
        (3, 1, 9, 67),
    ],
)
def test_fragmentation_is_what_the_largest_hole_leaves_over_rounded_up(
    free: int, largest: int, longest_piece: int, percent: int
) -> None:
    assert fragmentation(free, largest, longest_piece) == percent


@pytest.mark.parametrize("reserved", [(), ("10.40.0.96/28",)])
def test_an_empty_pool_is_not_fragmented_however_many_pieces_it_has(reserved: tuple[str, ...]) -> None:
    pool = layout(
        "10.40.0.0/24", "10.40.0.0-10.40.0.31", "10.40.0.32-10.40.0.63", "10.40.0.80-10.40.0.200", reserved=reserved
    )
    capacity = capacity_of(FreeSpace(pool.usable), pool.total)
    assert capacity.fragmentation_percent == 0
    held = FreeSpace.without(pool.usable, [span("10.40.0.180-10.40.0.180")])
    assert capacity_of(held, pool.total).fragmentation_percent > 0


def test_ten_tenants_of_5_and_8_in_a_24_with_a_reserved_28() -> None:
    pool = layout("10.40.0.0/24", "10.40.0.0-10.40.0.255", reserved=("10.40.0.0/28",))
    free = FreeSpace(pool.usable)
    for count in [5, 8] * 10:
        place = free.best_fit(count)
        assert place is not None
        free.take(place)
    capacity = capacity_of(free, pool.total)
    assert (capacity.total, capacity.allocated, capacity.available) == (240, 130, 110)


def test_two_windows_count_as_one_pool() -> None:
    pool = layout("10.40.0.0/23", "10.40.0.32-10.40.0.63", "10.40.1.51-10.40.1.191")
    free = FreeSpace.without(pool.usable, [span("10.40.0.32-10.40.0.59")])
    capacity = capacity_of(free, pool.total)
    assert (capacity.total, capacity.allocated, capacity.available) == (173, 28, 145)
    assert (free.holes, capacity.largest_free_block, capacity.fragmentation_percent) == (2, 141, 0)


def test_allocations_outside_the_windows_or_in_reserved_blocks_count_nowhere() -> None:
    pool = layout("10.40.0.0/24", "10.40.0.64-10.40.0.127", reserved=("10.40.0.64/28",))
    held = [span("10.40.0.0-10.40.0.7"), span("10.40.0.72-10.40.0.83"), span("10.40.0.200-10.40.0.255")]
    capacity = capacity_of(FreeSpace.without(pool.usable, held), pool.total)
    assert (capacity.total, capacity.allocated, capacity.available) == (48, 4, 44)
