"""How full a pool is: its counters, and the three tiers that people are warned at.

The tiers compare unrounded numbers, at or above; what is shown is rounded down. So 87.5 % reads 87 %, and a pool
never shows 70 % without its warning. An empty pool (nothing to hand out) is above no tier: its Ready condition says
what is wrong with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.networkpool import CapacityTier

if TYPE_CHECKING:
    from butler.ipam.free_space import FreeSpace

THRESHOLDS = {CapacityTier.WARNING: 70, CapacityTier.CRITICAL: 85, CapacityTier.EXHAUSTED: 95}
"""Percent of the addresses allocated from which each tier holds."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The counters of a pool, in addresses."""

    total: int
    allocated: int
    largest_free_block: int
    fragmentation_percent: int

    @property
    def available(self) -> int:
        """Addresses that are free."""
        return self.total - self.allocated

    @property
    def percent(self) -> int:
        """How much is allocated, rounded down."""
        return self.allocated * 100 // self.total if self.total else 0


def capacity_of(free: FreeSpace, total: int) -> Capacity:
    """The counters of a pool that hands out so many addresses in all."""
    return Capacity(
        total=total,
        allocated=total - free.free,
        largest_free_block=free.largest,
        fragmentation_percent=fragmentation(free.free, free.largest, free.longest_piece),
    )


def fragmentation(free: int, largest: int, longest_piece: int) -> int:
    """How scattered the free addresses are, in percent: 0 when nothing is free, or one hole is as long as can be.

    No hole is longer than the longest piece of a pool: a pool with several windows that is empty is not fragmented.
    """
    return 100 - largest * 100 // min(free, longest_piece) if free else 0


def tiers(capacity: Capacity) -> dict[CapacityTier, bool]:
    """Which capacity conditions hold; all three are always answered."""
    return {
        tier: capacity.total > 0 and capacity.allocated * 100 >= threshold * capacity.total
        for tier, threshold in THRESHOLDS.items()
    }
