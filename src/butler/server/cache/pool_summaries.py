"""A summary of each pool, and the responses that are made of it.

A summary takes a tenth of a second for ten thousand allocations, and everything that is shown of a pool is made of it:
it is computed once for all clients (`background_work`), and what is made of it is kept with it, so that it agrees.

A pool that no longer changes is shown as it is. One that changes faster than it can be summarized is shown as it was a
moment ago, at most `LATELY`, while it is summarized again: otherwise every client would wait for a summary that is out
of date when it comes. A client never gets less than it has been told already (`read_your_writes`), and the stream tells
of a pool only when it has been summarized anew, so that a client that loads it then gets at least that.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.objects import key_of
from butler.reports.pool.summary import Summary, summary_of
from butler.server.cache import background_work, read_your_writes
from butler.server.cache.cluster_state import ClusterState, KindName
from butler.server.json_body import JsonBody, compressed_json_body, json_body
from butler.server.models.pools import PoolItem
from butler.server.permissions import Namespaces, is_in
from butler.server.presenters.pool_outlook import pool_advice, pool_history
from butler.server.presenters.pools import pool_detail, pool_free_blocks, pool_item
from butler.server.presenters.segments import columns_of

T = TypeVar("T")
LATELY: Final = 1.0
"""Seconds that a count may be old while the pool changes on."""
KEPT_SIZES: Final = 64
"""Free blocks up to this size are kept; larger ones are seldom asked for twice."""


@dataclass(eq=False, slots=True)
class PoolSnapshot:
    """A pool as it was at one moment, its summary, and the responses that were made of it."""

    pool: NetworkPool
    allocations: list[IPAllocation]
    """Those that concern it."""
    version: int
    reached: Mapping[KindName, int]
    """The resourceVersions up to which its sources were known."""
    taken: float
    """When that was."""
    summary: Summary
    seconds: float
    """How long the summary and the responses took."""
    responses: dict[Hashable, Any] = field(default_factory=dict)
    under_way: dict[Hashable, asyncio.Task[Any]] = field(default_factory=dict)

    def may_be_shown(self, now: float) -> bool:
        """Although the pool has changed since."""
        return now - self.taken <= LATELY and read_your_writes.reaches(self.reached, read_your_writes.by_the_client())

    def has_rested(self, now: float) -> bool:
        """Summaries leave the processor to others for three times as long as they took, within reason."""
        return now - self.taken >= min(LATELY / 2, 4 * self.seconds)


# What is shown of a pool.


async def summary(state: ClusterState, pool: NetworkPool) -> Summary:
    return (await snapshot(state, pool)).summary


async def item(state: ClusterState, pool: NetworkPool, *, providers: Namespaces, exactly: bool = False) -> PoolItem:
    """A pool as lists and the stream show it to a user who may see the providers of these namespaces."""
    return await _item(await snapshot(state, pool, exactly=exactly), _users(state, pool, providers))


async def detail(state: ClusterState, pool: NetworkPool, *, providers: Namespaces) -> JsonBody:
    """A pool's page, for a user who may see the providers of these namespaces."""
    users, at = _users(state, pool, providers), await snapshot(state, pool)
    shown = await _item(at, users)
    return await _once(at, ("detail", *users), lambda: json_body(pool_detail(at.pool, at.summary, shown)))


async def segments(state: ClusterState, pool: NetworkPool) -> JsonBody:
    """All segments of a pool, column by column."""
    at = await snapshot(state, pool)
    return await _once(at, "segments", lambda: compressed_json_body(columns_of(at.summary.segments)))


async def free_blocks(state: ClusterState, pool: NetworkPool, size: int | None, *, align: bool) -> JsonBody:
    """Where so many addresses would fit."""
    at = await snapshot(state, pool)

    def work() -> JsonBody:
        return compressed_json_body(pool_free_blocks(at.pool.metadata.name, at.summary, size, align=align))

    if size is None or size <= KEPT_SIZES:
        return await _once(at, ("free", size, align), work)
    return await background_work.once(work)


async def advice(state: ClusterState, pool: NetworkPool, now: datetime) -> JsonBody:
    """Why a pool is fragmented, and what would help."""
    at = await snapshot(state, pool)
    return await _once_a_minute(
        at, "advice", now, lambda: compressed_json_body(pool_advice(at.pool, at.allocations, now))
    )


async def history(state: ClusterState, pool: NetworkPool, now: datetime) -> JsonBody:
    """What was granted and released."""
    at = await snapshot(state, pool)
    total = at.summary.standing.layout.total if at.summary.standing else None
    return await _once_a_minute(
        at, "history", now, lambda: compressed_json_body(pool_history(at.pool, total, at.allocations, now))
    )


async def _item(at: PoolSnapshot, users: list[str]) -> PoolItem:
    return await _once(at, ("item", *users), lambda: pool_item(at.pool, at.summary, at.allocations, users))


def _users(state: ClusterState, pool: NetworkPool, namespaces: Namespaces) -> list[str]:
    """The providers whose tenants get addresses from a pool, as far as they lie in these namespaces."""

    def everywhere() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for config in sorted(
            state.providers.values(), key=lambda provider: (provider.metadata.namespace, provider.metadata.name)
        ):
            for ref in config.spec.network.pool_refs:
                found.setdefault(ref.name, []).append(f"{config.metadata.namespace}/{config.metadata.name}")
        return found

    found = state.of_all("users of pools", everywhere).get(pool.metadata.name, [])
    return [provider for provider in found if is_in(provider.partition("/")[0], namespaces)]


# What it is made of: computed once for each change of the pool.


async def snapshot(state: ClusterState, pool: NetworkPool, *, exactly: bool = False) -> PoolSnapshot:
    """The pool as it is, or as it was a moment ago where that will do."""
    name, now = pool.metadata.name, time.monotonic()
    kept: PoolSnapshot | None = state.beside(name).get("snapshot")
    if kept is not None and kept.version == state.version(name):
        return kept
    if state.count(name) <= background_work.FEW:
        state.beside(name)["snapshot"] = made = _taking(state, pool)()
        return made
    start = partial(_take, state, pool)
    if kept is None or exactly or not kept.may_be_shown(now):
        return await background_work.turns(state).take((name, "snapshot"), start)
    if kept.has_rested(now):
        background_work.turns(state).begin((name, "snapshot"), start)
    return kept


async def _take(state: ClusterState, pool: NetworkPool) -> PoolSnapshot:
    into = state.beside(pool.metadata.name)
    into["snapshot"] = made = await background_work.for_pages(_taking(state, pool))
    return made


def _taking(state: ClusterState, pool: NetworkPool) -> Callable[[], PoolSnapshot]:
    """Reads the state as it is now; the rest may be done in a thread."""
    name, taken = pool.metadata.name, time.monotonic()
    # As it is when its turn comes: what is made of it is kept for all requests from then on.
    current = state.pools.get(key_of(pool)) or pool
    allocations, version = state.concerning(name), state.version(name)
    versions = state.versions()
    reached: dict[KindName, int] = {"pool": versions["pool"], "allocation": versions["allocation"]}

    def take() -> PoolSnapshot:
        found, seconds = _timed(lambda: summary_of(current, allocations))
        return PoolSnapshot(current, allocations, version, reached, taken, found, seconds)

    return take


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    return work(), time.thread_time() - began


async def _once(at: PoolSnapshot, what: Hashable, work: Callable[[], T]) -> T:
    """A response that is made of a snapshot, once."""
    if what not in at.responses and len(at.allocations) <= background_work.FEW:
        at.responses[what] = work()
    if what in at.responses:
        kept: T = at.responses[what]
        return kept
    if what not in at.under_way:
        at.under_way[what] = asyncio.create_task(_make(at, what, work))
        at.under_way[what].add_done_callback(background_work.forget_failure)
    found: T = await asyncio.shield(at.under_way[what])  # by then another minute's response may have taken its place
    return found


async def _once_a_minute(at: PoolSnapshot, what: str, now: datetime, work: Callable[[], T]) -> T:
    """A response that depends on the time, too: the same for all requests within a minute."""
    minute = now.replace(second=0, microsecond=0)
    for old in [key for key in at.responses if isinstance(key, tuple) and key[0] == what and key[1] != minute]:
        del at.responses[old]
    return await _once(at, (what, minute), work)


async def _make(at: PoolSnapshot, what: Hashable, work: Callable[[], T]) -> T:
    try:
        found, seconds = await background_work.for_pages(lambda: _timed(work))
        at.responses[what] = found
        at.seconds += seconds
        return found
    finally:
        del at.under_way[what]
