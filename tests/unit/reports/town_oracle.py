"""Who would get which addresses, found the slow way: letters for addresses, and the rules as people tell them.

It shares no code with what it judges. Tenants come one after the other. Each gets its nodes and its load balancers, or
neither: from the first two pools in order, those for its nodes before those for its load balancers, that have room for
both. Where there is no such pair, it waits for the first pool of each kind that has room for that kind alone, else for
the first of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING

from unit.ipam.bitmap_oracle import Asking

if TYPE_CHECKING:
    from unit.ipam.bitmap_oracle import Bitmap, Span


@dataclass
class Purse:
    """What a tenant wants of one kind: from which pools, how many of each."""

    kind: str
    counts: dict[str, int]
    """By pool, in the order in which pools are tried; 0: none."""
    most: int | None = None


@dataclass
class Town:
    pools: dict[str, Bitmap]
    ready: set[str]
    granted: list[tuple[str, str, Span]] = field(default_factory=list)

    def one(self, pool: str, count: int) -> Span | None:
        """A single request."""
        return self.pools[pool].decide([Asking("one", 0, count)], 1).granted.get("one")

    def tenant(self, purses: list[Purse]) -> dict[str, tuple[str, Span | None]]:
        """By kind, where it ended up asking, and what it got."""
        wanted = [purse for purse in purses if purse.counts]
        asks = {purse.kind: self._first(purse) for purse in wanted}
        for purse in wanted:
            if purse.most is not None and purse.counts[asks[purse.kind]] > purse.most:
                return {}
        wanted = [purse for purse in wanted if purse.counts[asks[purse.kind]]]
        for pools in product(*(purse.counts for purse in wanted)):
            spans = self._take(list(zip(wanted, pools, strict=True)))
            if spans is not None:
                places = zip(wanted, pools, spans, strict=True)
                return {purse.kind: (pool, span) for purse, pool, span in places}
        return {purse.kind: (self._first(purse), None) for purse in wanted}

    def _take(self, places: list[tuple[Purse, str]]) -> list[Span] | None:
        """Take a block in each of these pools, or none at all."""
        before = {pool: list(bitmap.letters) for pool, bitmap in self.pools.items()}
        spans = [self.one(pool, purse.counts[pool]) if pool in self.ready else None for purse, pool in places]
        if all(span is not None for span in spans):
            return [span for span in spans if span is not None]
        for pool, letters in before.items():
            self.pools[pool].letters = letters
        return None

    def _first(self, purse: Purse) -> str:
        return next((pool for pool in purse.counts if self._holds(purse, pool)), next(iter(purse.counts)))

    def _holds(self, purse: Purse, pool: str) -> bool:
        return pool in self.ready and self.pools[pool].largest >= purse.counts[pool]
