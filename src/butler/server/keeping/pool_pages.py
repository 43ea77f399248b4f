"""What is kept of each pool until something about it changes: its summary, and the pages that are made of it.

Several pages are made of one summary, which takes a third of a second for ten thousand allocations: `working` sees to
it that it is made once, and in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.kube.objects import key_of
from butler.server.keeping import working
from butler.server.keeping.feed import Feed
from butler.server.models.pools import PoolItem
from butler.server.shown.pools import pool_item
from butler.server.sight import Namespaces, is_in
from butler.views.pool_standing import Summary, summary_of

T = TypeVar("T")


class Known(NamedTuple):
    """A pool as it was at one moment. What is made of it is good for this version alone: the pool may have changed
    while somebody waited."""

    pool: NetworkPool
    concerned: Sequence[IPAllocation]
    summary: Summary
    version: int


async def known(feed: Feed, pool: NetworkPool) -> Known:
    """All there is to say about a pool."""
    name = pool.metadata.name

    def prepare() -> Callable[[], Known]:
        return partial(_summed, _current(feed, pool), feed.concerning(name), feed.version(name))

    return await working.of_pool(feed, name, "known", prepare)


def _summed(pool: NetworkPool, concerned: Sequence[IPAllocation], version: int) -> Known:
    return Known(pool, concerned, summary_of(pool, concerned), version)


async def summary(feed: Feed, pool: NetworkPool) -> Summary:
    return (await known(feed, pool)).summary


async def item(feed: Feed, pool: NetworkPool, *, providers: Namespaces) -> PoolItem:
    """A pool as lists and the stream show it to somebody who may see the providers of these namespaces."""
    return await _item(feed, await known(feed, pool), _users(feed, pool, providers))


async def _item(feed: Feed, at: Known, users: list[str]) -> PoolItem:
    work = partial(pool_item, at.pool, at.summary, at.concerned, users)
    return await working.of_pool(feed, at.pool.metadata.name, ("item", *users), lambda: work, at=at.version)


async def page(
    feed: Feed, pool: NetworkPool, what: Hashable, compute: Callable[[Known, PoolItem], T], *, providers: Namespaces
) -> T:
    """What `compute` makes of a pool and its list item."""
    users, at = _users(feed, pool, providers), await known(feed, pool)
    work = partial(compute, at, await _item(feed, at, users))
    return await working.of_pool(feed, pool.metadata.name, (what, *users), lambda: work, at=at.version)


async def made(feed: Feed, pool: NetworkPool, what: Hashable, compute: Callable[[Summary], T]) -> T:
    """What `compute` makes of the summary of a pool."""
    at = await known(feed, pool)
    return await working.of_pool(feed, pool.metadata.name, what, lambda: partial(compute, at.summary), at=at.version)


async def dated(
    feed: Feed,
    pool: NetworkPool,
    what: Hashable,
    compute: Callable[[NetworkPool, list[IPAllocation], datetime], T],
    now: datetime,
) -> T:
    """What `compute` makes of a pool, its allocations and the time; who asks twice within a minute is told the same."""
    name = pool.metadata.name

    def prepare() -> Callable[[], T]:
        return partial(compute, _current(feed, pool), feed.concerning(name), now)

    return await working.of_pool(feed, name, what, prepare, at=now.replace(second=0, microsecond=0))


def _current(feed: Feed, pool: NetworkPool) -> NetworkPool:
    """The pool as it is when its turn comes: what is made of it is kept for all who ask from then on."""
    return feed.pools.get(key_of(pool)) or pool


def _users(feed: Feed, pool: NetworkPool, namespaces: Namespaces) -> list[str]:
    """The providers whose tenants get addresses from a pool, as far as they lie in these namespaces."""

    def everywhere() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in sorted(feed.providers.values(), key=lambda each: (each.metadata.namespace, each.metadata.name)):
            for ref in each.spec.network.pool_refs:
                found.setdefault(ref.name, []).append(f"{each.metadata.namespace}/{each.metadata.name}")
        return found

    found = feed.of_all("users of pools", everywhere).get(pool.metadata.name, [])
    return [each for each in found if is_in(each.partition("/")[0], namespaces)]
