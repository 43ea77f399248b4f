"""Forecasts of pools. One plays many futures and takes seconds for a large pool: it is made in a thread of its own, and
kept for a minute, whatever happens to the pool meanwhile."""

from __future__ import annotations

from datetime import datetime

from butler.api.networkpool import NetworkPool
from butler.kube.recent_results import RecentResults
from butler.server.cache import background_work
from butler.server.cache.cluster_state import ClusterState
from butler.server.json_body import JsonBody, compressed_json_body
from butler.server.presenters.pool_outlook import pool_forecast

SECONDS = 60.0


class PoolForecasts:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._recent = RecentResults(SECONDS)

    async def forecast(self, pool: NetworkPool, now: datetime) -> JsonBody:
        """In how many days a pool is full; at most a minute old."""
        allocations = self._state.concerning(pool.metadata.name)

        def work() -> JsonBody:
            return compressed_json_body(pool_forecast(pool, allocations, now))

        key = (pool.metadata.uid, pool.metadata.generation)
        return await self._recent.of(key, lambda: background_work.foretold(work))
