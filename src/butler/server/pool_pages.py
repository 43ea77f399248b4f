"""What is kept of each pool until something about it changes: its summary, and the pages that are made of it.

Several pages are made of one summary, which takes a third of a second for ten thousand allocations: `working` sees to
it that it is made once, and in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import TypeVar

from butler.api.networkpool import NetworkPool
from butler.server import working
from butler.server.feed import Feed
from butler.server.models.pools import PoolItem
from butler.server.shown import pool_item
from butler.views.pool_standing import Summary, summary_of

T = TypeVar("T")


async def summary(feed: Feed, pool: NetworkPool) -> Summary:
    """All there is to say about a pool."""
    name = pool.metadata.name
    return await working.of_pool(feed, name, "summary", lambda: partial(summary_of, pool, feed.concerning(name)))


async def item(feed: Feed, pool: NetworkPool, *, providers: bool = True) -> PoolItem:
    """A pool as lists and the stream show it; without `providers` for who may not see those."""
    name, users = pool.metadata.name, _users(feed, pool) if providers else []
    found = await summary(feed, pool)
    what = ("item", *users)
    return await working.of_pool(
        feed, name, what, lambda: partial(pool_item, pool, found, feed.concerning(name), users)
    )


async def made(feed: Feed, pool: NetworkPool, what: Hashable, compute: Callable[[Summary], T]) -> T:
    """What `compute` makes of the summary of a pool."""
    found = await summary(feed, pool)
    return await working.of_pool(feed, pool.metadata.name, what, lambda: partial(compute, found))


def item_now(feed: Feed, pool: NetworkPool) -> PoolItem:
    """The same as `item`, for who cannot wait; slow for a pool with thousands of allocations that has just changed."""
    name, users = pool.metadata.name, _users(feed, pool)

    def compute() -> PoolItem:
        concerned = feed.concerning(name)
        found = feed.of_pool(name, "summary", lambda: summary_of(pool, concerned))
        return pool_item(pool, found, concerned, users)

    return feed.of_pool(name, ("item", *users), compute)


def _users(feed: Feed, pool: NetworkPool) -> list[str]:
    """The providers whose tenants get addresses from a pool."""

    def everywhere() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for each in sorted(feed.providers.values(), key=lambda each: (each.metadata.namespace, each.metadata.name)):
            for ref in each.spec.network.pool_refs:
                found.setdefault(ref.name, []).append(f"{each.metadata.namespace}/{each.metadata.name}")
        return found

    return feed.of_all("users of pools", everywhere).get(pool.metadata.name, [])
