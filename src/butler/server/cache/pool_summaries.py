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
from butler.server.models.pools import PoolItem
from butler.server.permissions import Namespaces, is_in
from butler.server.presenters.pools import pool_item

T = TypeVar("T")
LATELY: Final = 1.0
"""Seconds that a count may be old while the pool changes on."""


@dataclass(eq=False, slots=True)
class PoolSnapshot:
    """A pool as it was at one moment, and the pages that were made of it."""

    pool: NetworkPool
    concerned: list[IPAllocation]
    version: int
    reached: Mapping[KindName, int]
    """Up to where the sources had been heard."""
    taken: float
    """When that was."""
    summary: Summary
    seconds: float
    """How long it took to count, and to make its pages."""
    pages: dict[Hashable, Any] = field(default_factory=dict)
    making: dict[Hashable, asyncio.Task[Any]] = field(default_factory=dict)
    """Pages that are under way."""

    def may_be_shown(self, now: float) -> bool:
        """Although the pool has changed since."""
        return now - self.taken <= LATELY and read_your_writes.reaches(self.reached, read_your_writes.by_the_client())

    def has_rested(self, now: float) -> bool:
        """Counting leaves the processor to others for three times as long as it took, within reason."""
        return now - self.taken >= min(LATELY / 2, 4 * self.seconds)


async def known(state: ClusterState, pool: NetworkPool, *, exactly: bool = False) -> PoolSnapshot:
    """All there is to say about a pool: as it is, or as it was a moment ago where that will do."""
    name, now = pool.metadata.name, time.monotonic()
    kept: PoolSnapshot | None = state.beside(name).get("known")
    if kept is not None and kept.version == state.version(name):
        return kept
    if state.count(name) <= background_work.FEW:
        state.beside(name)["known"] = made = _counting(state, pool)()
        return made
    start = partial(_count, state, pool)
    if kept is None or exactly or not kept.may_be_shown(now):
        return await background_work.turns(state).take((name, "known"), start)
    if kept.has_rested(now):
        background_work.turns(state).begin((name, "known"), start)
    return kept


async def _count(state: ClusterState, pool: NetworkPool) -> PoolSnapshot:
    into = state.beside(pool.metadata.name)
    into["known"] = made = await background_work.for_pages(_counting(state, pool))
    return made


def _counting(state: ClusterState, pool: NetworkPool) -> Callable[[], PoolSnapshot]:
    """Takes everything as it is now; the rest may be done in a thread."""
    name, taken = pool.metadata.name, time.monotonic()
    # As it is when its turn comes: what is made of it is kept for all who ask from then on.
    current = state.pools.get(key_of(pool)) or pool
    concerned, version = state.concerning(name), state.version(name)
    versions = state.versions()
    reached: dict[KindName, int] = {"pool": versions["pool"], "allocation": versions["allocation"]}

    def count() -> PoolSnapshot:
        return PoolSnapshot(
            current, concerned, version, reached, taken, *_timed(lambda: summary_of(current, concerned))
        )

    return count


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    return work(), time.thread_time() - began


async def summary(state: ClusterState, pool: NetworkPool) -> Summary:
    return (await known(state, pool)).summary


async def item(state: ClusterState, pool: NetworkPool, *, providers: Namespaces, exactly: bool = False) -> PoolItem:
    """A pool as lists and the stream show it to somebody who may see the providers of these namespaces."""
    return await _item(await known(state, pool, exactly=exactly), _users(state, pool, providers))


async def _item(at: PoolSnapshot, users: list[str]) -> PoolItem:
    return await _made(at, ("item", *users), partial(pool_item, at.pool, at.summary, at.concerned, users))


async def page(
    state: ClusterState,
    pool: NetworkPool,
    what: Hashable,
    compute: Callable[[PoolSnapshot, PoolItem], T],
    *,
    providers: Namespaces,
) -> T:
    """What `compute` makes of a pool and its list item."""
    users, at = _users(state, pool, providers), await known(state, pool)
    return await _made(at, (what, *users), partial(compute, at, await _item(at, users)))


async def made(state: ClusterState, pool: NetworkPool, what: Hashable, compute: Callable[[Summary], T]) -> T:
    """What `compute` makes of the summary of a pool."""
    at = await known(state, pool)
    return await _made(at, what, partial(compute, at.summary))


async def dated(
    state: ClusterState,
    pool: NetworkPool,
    what: Hashable,
    compute: Callable[[NetworkPool, list[IPAllocation], datetime], T],
    now: datetime,
) -> T:
    """What `compute` makes of a pool, its allocations and the time; who asks twice within a minute is told the same."""
    at = await known(state, pool)
    minute = now.replace(second=0, microsecond=0)
    for old in [key for key in at.pages if isinstance(key, tuple) and key[0] == what and key[1] != minute]:
        del at.pages[old]
    return await _made(at, (what, minute), partial(compute, at.pool, at.concerned, now))


async def _made(at: PoolSnapshot, what: Hashable, work: Callable[[], T]) -> T:
    """A page of what is known, made once."""
    if what not in at.pages and len(at.concerned) <= background_work.FEW:
        at.pages[what] = work()
    if what in at.pages:
        kept: T = at.pages[what]
        return kept
    if what not in at.making:
        at.making[what] = asyncio.create_task(_make(at, what, work))
        at.making[what].add_done_callback(background_work.forget_failure)
    found: T = await asyncio.shield(at.making[what])  # by then another minute's page may have taken its place
    return found


async def _make(at: PoolSnapshot, what: Hashable, work: Callable[[], T]) -> T:
    try:
        found, seconds = await background_work.for_pages(lambda: _timed(work))
        at.pages[what] = found
        at.seconds += seconds
        return found
    finally:
        del at.making[what]


def _users(state: ClusterState, pool: NetworkPool, namespaces: Namespaces) -> list[str]:
    """The providers whose tenants get addresses from a pool, as far as they lie in these namespaces."""

    def everywhere() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in sorted(
            state.providers.values(), key=lambda provider: (provider.metadata.namespace, provider.metadata.name)
        ):
            for ref in entry.spec.network.pool_refs:
                found.setdefault(ref.name, []).append(f"{entry.metadata.namespace}/{entry.metadata.name}")
        return found

    found = state.of_all("users of pools", everywhere).get(pool.metadata.name, [])
    return [text for text in found if is_in(text.partition("/")[0], namespaces)]
