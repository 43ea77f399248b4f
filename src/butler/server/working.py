"""What takes long to work out, without holding up everybody else: in a thread, once, and kept.

The event loop serves all requests, and must never be busy for long. What is made of a pool with few allocations is made
at once; for one with many, and for all of the estate, a thread does it, while whoever asks waits together with all who
ask the same. `Feed` keeps what was made until something changes that it depends on: requests that come later get what
is new, those under way get what was true when they asked.

There is one thread for what pages need and one for forecasts: more would only wait for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from butler.kube.objects import key_of
from butler.server.feed import Feed
from butler.views.estate import Estate

T = TypeVar("T")
FEW: Final = 200
"""Allocations that are looked through at once; a thousand take about 30 ms."""
_pages = ThreadPoolExecutor(1, "butler-pages")
_forecasts = ThreadPoolExecutor(1, "butler-forecasts")


async def of_pool(feed: Feed, pool: str, what: Hashable, prepare: Callable[[], Callable[[], T]]) -> T:
    """Something about a pool, kept until something about the pool changes.

    `prepare` takes what is needed from the feed and gives the work itself, which may run in a thread and must not touch
    the feed."""
    if feed.count(pool) <= FEW:
        return feed.of_pool(pool, what, lambda: _now(prepare))
    task = feed.of_pool(pool, ("task", what), lambda: asyncio.ensure_future(_in(_pages, prepare())))
    return await asyncio.shield(task)


async def of_pool_at(feed: Feed, pool: str, what: Hashable, at: Hashable, prepare: Callable[[], Callable[[], T]]) -> T:
    """The same for what depends on the time, too: kept as long as `at` is the same."""
    kept: dict[Hashable, asyncio.Future[T]] = feed.of_pool(pool, ("at", what), dict)
    if at not in kept:
        kept.clear()
        if feed.count(pool) <= FEW:
            kept[at] = asyncio.get_running_loop().create_future()
            kept[at].set_result(_now(prepare))
        else:
            kept[at] = asyncio.ensure_future(_in(_pages, prepare()))
    return await asyncio.shield(kept[at])


async def of_all(feed: Feed, what: Hashable, compute: Callable[[Estate], T]) -> T:
    """What `compute` says of everything, kept until anything but Events changes."""
    task = feed.of_all(("task", what), lambda: asyncio.ensure_future(_of_estate(feed, compute)))
    return await asyncio.shield(task)


async def _of_estate(feed: Feed, compute: Callable[[Estate], T]) -> T:
    if len(feed.allocations) <= FEW:
        return compute(feed.estate)
    estate = await asyncio.shield(feed.of_all("estate task", lambda: asyncio.ensure_future(_estate(feed))))
    return await _in(_pages, lambda: compute(estate))


async def _estate(feed: Feed) -> Estate:
    pools, allocations = feed.pools.values(), feed.allocations.values()
    providers, clusters = feed.providers.values(), feed.clusters.values()

    def made() -> Estate:
        return Estate(
            feed.home,
            tuple(sorted(pools, key=key_of)),
            tuple(sorted(allocations, key=key_of)),
            tuple(sorted(providers, key=key_of)),
            tuple(sorted(clusters, key=key_of)),
        )

    return await _in(_pages, made)


async def foretold(compute: Callable[[], T]) -> T:
    """Something that takes seconds."""
    return await _in(_forecasts, compute)


async def once(compute: Callable[[], T]) -> T:
    """Something that takes long and is not worth keeping."""
    return await _in(_pages, compute)


class Lately:
    """Answers that are kept for a while, whatever changes: who asks meanwhile gets the same, or waits for it too."""

    def __init__(self, seconds: float, *, most: int = 256, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._most = most
        self._clock = clock
        self._kept: OrderedDict[Hashable, tuple[float, asyncio.Future[Any]]] = OrderedDict()

    async def of(self, what: Hashable, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        kept = self._kept.get(what)
        if kept is None or self._is_over(*kept):
            kept = (self._clock(), asyncio.create_task(start()))
            self._kept[what] = kept
            self._kept.move_to_end(what)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        found: T = await asyncio.shield(kept[1])
        return found

    def _is_over(self, began: float, task: asyncio.Future[Any]) -> bool:
        if not task.done():
            return False
        return self._clock() - began > self._seconds or task.cancelled() or task.exception() is not None


def _now(prepare: Callable[[], Callable[[], T]]) -> T:
    work = prepare()
    return work()


async def _in(threads: ThreadPoolExecutor, compute: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, compute)
