"""Who would get which addresses, found the slow way: letters for addresses, and the rules as people tell them.

It shares no code with what it judges. Tenants come one after the other. Each asks for its nodes and its load balancers
at once, each from the first pool in order that has a run long enough. What was refused is asked for again at the first
pool that could hold it, until nobody can.
"""

from __future__ import annotations

from dataclasses import dataclass, field
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
        found: dict[str, tuple[str, Span | None]] = {}
        asks = {purse.kind: asks[purse.kind] for purse in wanted if purse.counts[asks[purse.kind]]}
        by_kind = {purse.kind: purse for purse in wanted}
        while asks:
            for pool in dict.fromkeys(asks.values()):
                batch = [
                    Asking(f"{place}", 0, by_kind[kind].counts[pool])
                    for place, (kind, where) in enumerate(asks.items())
                    if where == pool
                ]
                kinds = {f"{place}": kind for place, kind in enumerate(asks)}
                outcome = self.pools[pool].decide(batch, 99) if pool in self.ready else None
                for each in batch:
                    found[kinds[each.uid]] = (pool, outcome.granted.get(each.uid) if outcome else None)
            again = {kind: self._first(by_kind[kind]) for kind, (_, span) in found.items() if span is None}
            asks = {
                kind: pool
                for kind, pool in again.items()
                if pool != found[kind][0] and self._holds(by_kind[kind], pool)
            }
        return found

    def _first(self, purse: Purse) -> str:
        return next((pool for pool in purse.counts if self._holds(purse, pool)), next(iter(purse.counts)))

    def _holds(self, purse: Purse, pool: str) -> bool:
        return pool in self.ready and self.pools[pool].largest >= purse.counts[pool]
