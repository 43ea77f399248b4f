"""Pools that overlap, and addresses that are allocated twice or outside their pool; kept until anything changes."""

from __future__ import annotations

from collections.abc import Sequence

from butler.reports.pool.overlaps import OverlapFinding, overlaps
from butler.server.cache import background_work
from butler.server.cache.cluster_state import ClusterState


async def estate_overlaps(state: ClusterState) -> Sequence[OverlapFinding]:
    return await background_work.of_all(state, "overlaps", lambda estate: overlaps(estate.pools, estate.allocations))
