"""What a pool has promised and no allocation holds yet. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.rules.pool.next_status import PoolView, open_intents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import Intent, NetworkPool


def promised(pool: NetworkPool, allocations: Iterable[IPAllocation]) -> tuple[Intent, ...]:
    """The intents that count: an allocation that says itself what it holds needs none, and one that is gone has none.

    The allocations must have been listed after the pool: one that is not among them is gone then, and not new.
    """
    if not pool.status.intents:
        return ()
    by_uid = {allocation.metadata.uid: allocation for allocation in allocations}
    return open_intents(pool, PoolView(waiting=(), leaving=(), live=0, find=by_uid.get))
