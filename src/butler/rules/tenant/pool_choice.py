"""Which pool a cluster asks for a block: the first, by priority, that can hold it. Pure.

What a pool can hold is read off its status, and therefore a guess: the pool decides. A cluster that is not built yet
gets its blocks together, so they are placed together: two blocks that each fit into a pool need not fit into it both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.rules.pool.room import can_hold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from butler.api.networkpool import NetworkPool
    from butler.rules.tenant.requested_addresses import Wish

    Count = Callable[[NetworkPool | None], int]


@dataclass(frozen=True, slots=True)
class Choice:
    """A pool to ask, and whether it seems to have room; where none has, a pool to wait for."""

    pool: str
    fits: bool


def choose(wish: Wish, pools: Mapping[str, NetworkPool], count: Count) -> Choice:
    """The first pool that can hold one block; where none can, the first that exists."""
    for name in wish.pools:
        pool = pools.get(name)
        if can_hold(pool, count(pool)):
            return Choice(name, fits=True)
    return Choice(next((name for name in wish.pools if name in pools), wish.pools[0]), fits=False)


def choose_together(
    wishes: tuple[Wish, Wish],
    pools: Mapping[str, NetworkPool],
    counts: tuple[Count, Count],
    refused_in: Collection[str],
) -> tuple[Choice, Choice]:
    """The first pools that can hold two blocks. `refused_in`: pools that have just refused to hold both."""
    for first in wishes[0].pools:
        if not can_hold(pools.get(first), counts[0](pools.get(first))):
            continue
        for second in wishes[1].pools:
            pool = pools.get(second)
            if not can_hold(pool, counts[1](pool)):
                continue
            if first != second or _can_hold_both(pool, counts, certainly=first in refused_in):
                return Choice(first, fits=True), Choice(second, fits=True)
    waiting = (choose(wish, pools, count).pool for wish, count in zip(wishes, counts, strict=True))
    one, other = (Choice(pool, fits=False) for pool in waiting)
    return one, other


def _can_hold_both(pool: NetworkPool | None, counts: tuple[Count, Count], *, certainly: bool) -> bool:
    """Whether a pool that can hold either may hold both; certainly where one run is long enough."""
    if pool is None:
        return False
    wanted = counts[0](pool) + counts[1](pool)
    status = pool.status
    return wanted <= ((status.largest_free_block if certainly else status.available_ips) or 0)
