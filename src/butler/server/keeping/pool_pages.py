"""What is known of each pool: its summary, and the pages that are made of it.

A summary takes a tenth of a second for ten thousand allocations, and is the ground for everything that is shown of a
pool: it is made once for all who ask (`working`), and its pages are kept with it, so they cannot disagree.

A pool that has come to rest is shown as it is. One that changes faster than it can be counted is shown as it was a
moment ago, at most `LATELY`, while it is counted again: otherwise everybody would wait for a count that is old when it
comes. Nobody is shown less than they have heard of already (`heard`), and the stream tells of a pool only when it has
been counted anew: whoever looks again then sees it.
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
from butler.server.keeping import heard, working
from butler.server.keeping.feed import Feed, KindName
from butler.server.models.pools import PoolItem
from butler.server.shown.pools import pool_item
from butler.server.sight import Namespaces, is_in

T = TypeVar("T")
LATELY: Final = 1.0
"""Seconds that a count may be old while the pool changes on."""


@dataclass(eq=False, slots=True)
class Known:
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
        return now - self.taken <= LATELY and heard.reaches(self.reached, heard.by_the_client())

    def has_rested(self, now: float) -> bool:
        """Counting leaves the processor to others for three times as long as it took, within reason."""
        return now - self.taken >= min(LATELY / 2, 4 * self.seconds)


async def known(feed: Feed, pool: NetworkPool, *, exactly: bool = False) -> Known:
    """All there is to say about a pool: as it is, or as it was a moment ago where that will do."""
    name, now = pool.metadata.name, time.monotonic()
    kept: Known | None = feed.beside(name).get("known")
    if kept is not None and kept.version == feed.version(name):
        return kept
    if feed.count(name) <= working.FEW:
        feed.beside(name)["known"] = made = _counting(feed, pool)()
        return made
    start = partial(_count, feed, pool)
    if kept is None or exactly or not kept.may_be_shown(now):
        return await working.turns(feed).take((name, "known"), start)
    if kept.has_rested(now):
        working.turns(feed).begin((name, "known"), start)
    return kept


async def _count(feed: Feed, pool: NetworkPool) -> Known:
    into = feed.beside(pool.metadata.name)
    into["known"] = made = await working.for_pages(_counting(feed, pool))
    return made


def _counting(feed: Feed, pool: NetworkPool) -> Callable[[], Known]:
    """Takes everything as it is now; the rest may be done in a thread."""
    name, taken = pool.metadata.name, time.monotonic()
    # As it is when its turn comes: what is made of it is kept for all who ask from then on.
    current = feed.pools.get(key_of(pool)) or pool
    concerned, version = feed.concerning(name), feed.version(name)
    versions = feed.versions()
    reached: dict[KindName, int] = {"pool": versions["pool"], "allocation": versions["allocation"]}

    def count() -> Known:
        return Known(current, concerned, version, reached, taken, *_timed(lambda: summary_of(current, concerned)))

    return count


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.thread_time()
    return work(), time.thread_time() - began


async def summary(feed: Feed, pool: NetworkPool) -> Summary:
    return (await known(feed, pool)).summary


async def item(feed: Feed, pool: NetworkPool, *, providers: Namespaces, exactly: bool = False) -> PoolItem:
    """A pool as lists and the stream show it to somebody who may see the providers of these namespaces."""
    return await _item(await known(feed, pool, exactly=exactly), _users(feed, pool, providers))


async def _item(at: Known, users: list[str]) -> PoolItem:
    return await _made(at, ("item", *users), partial(pool_item, at.pool, at.summary, at.concerned, users))


async def page(
    feed: Feed, pool: NetworkPool, what: Hashable, compute: Callable[[Known, PoolItem], T], *, providers: Namespaces
) -> T:
    """What `compute` makes of a pool and its list item."""
    users, at = _users(feed, pool, providers), await known(feed, pool)
    return await _made(at, (what, *users), partial(compute, at, await _item(at, users)))


async def made(feed: Feed, pool: NetworkPool, what: Hashable, compute: Callable[[Summary], T]) -> T:
    """What `compute` makes of the summary of a pool."""
    at = await known(feed, pool)
    return await _made(at, what, partial(compute, at.summary))


async def dated(
    feed: Feed,
    pool: NetworkPool,
    what: Hashable,
    compute: Callable[[NetworkPool, list[IPAllocation], datetime], T],
    now: datetime,
) -> T:
    """What `compute` makes of a pool, its allocations and the time; who asks twice within a minute is told the same."""
    at = await known(feed, pool)
    minute = now.replace(second=0, microsecond=0)
    for old in [key for key in at.pages if isinstance(key, tuple) and key[0] == what and key[1] != minute]:
        del at.pages[old]
    return await _made(at, (what, minute), partial(compute, at.pool, at.concerned, now))


async def _made(at: Known, what: Hashable, work: Callable[[], T]) -> T:
    """A page of what is known, made once."""
    if what not in at.pages and len(at.concerned) <= working.FEW:
        at.pages[what] = work()
    if what in at.pages:
        kept: T = at.pages[what]
        return kept
    if what not in at.making:
        at.making[what] = asyncio.create_task(_make(at, what, work))
        at.making[what].add_done_callback(working.forget_failure)
    found: T = await asyncio.shield(at.making[what])  # by then another minute's page may have taken its place
    return found


async def _make(at: Known, what: Hashable, work: Callable[[], T]) -> T:
    try:
        found, seconds = await working.for_pages(lambda: _timed(work))
        at.pages[what] = found
        at.seconds += seconds
        return found
    finally:
        del at.making[what]


def _users(feed: Feed, pool: NetworkPool, namespaces: Namespaces) -> list[str]:
    """The providers whose tenants get addresses from a pool, as far as they lie in these namespaces."""

    def everywhere() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in sorted(
            feed.providers.values(), key=lambda provider: (provider.metadata.namespace, provider.metadata.name)
        ):
            for ref in entry.spec.network.pool_refs:
                found.setdefault(ref.name, []).append(f"{entry.metadata.namespace}/{entry.metadata.name}")
        return found

    found = feed.of_all("users of pools", everywhere).get(pool.metadata.name, [])
    return [text for text in found if is_in(text.partition("/")[0], namespaces)]
