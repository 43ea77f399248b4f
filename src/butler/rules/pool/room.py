"""Whether a pool has room for a block, read off its status: a guess, because only the pool decides. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import condition_holds
from butler.api.labels import ConditionType

if TYPE_CHECKING:
    from butler.api.networkpool import NetworkPool


def can_hold(pool: NetworkPool | None, count: int) -> bool:
    """Whether a pool has so many free addresses in one run, as far as it says."""
    return (
        pool is not None
        and condition_holds(pool.status.conditions, ConditionType.READY)
        and (pool.status.largest_free_block or 0) >= count
    )


def why_not(pool: NetworkPool | None) -> str:
    """Why it has not, in words that follow its name."""
    if pool is None:
        return "does not exist"
    if not condition_holds(pool.status.conditions, ConditionType.READY):
        return "is not ready"
    return f"has no run of free addresses longer than {pool.status.largest_free_block or 0}"
