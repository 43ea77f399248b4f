"""Work that takes long, without holding up other requests: in a thread, once, and kept.

The event loop serves all requests, and must never be busy for long. What is made of few allocations is made at once;
for a pool with many, and for all of the estate, a thread does it, while the request waits together with all that ask
the same. What was made is kept until something changes that it depends on.

Changes may come faster than work gets done. So of each piece of work one is under way at most, and one waits behind it
that takes things as they are when its turn comes: a request gets what was true when it came, or later, and
work never piles up.

There is one thread each for what pages need and for forecasts: more would only wait for each other. What a form shows
while a user types, and plans, are worked out for each request: they have threads that are shared fairly.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from butler.api.objects import key_of
from butler.reports.estate import Estate
from butler.server.access.person import Person
from butler.server.cache.cluster_state import ClusterState
from butler.server.cache.fair_threads import Check, FairThreads
from butler.server.problems import RequestRefused

T = TypeVar("T")
Work = Callable[[], T]
"""What may run in a thread: it must not touch the cluster state."""
FEW: Final = 200
"""Allocations that are looked through at once; a thousand take about 30 ms."""
MOST_WAITING: Final = 32
"""Pieces of work that wait for one thread, where each is for who asked alone."""
_pages = ThreadPoolExecutor(1, "butler-pages")
_forecasts = ThreadPoolExecutor(1, "butler-forecasts")
AT_ONCE: Final = 2
_previews = ThreadPoolExecutor(AT_ONCE, "butler-previews")
_plans = ThreadPoolExecutor(AT_ONCE, "butler-plans")
_waiting: Counter[ThreadPoolExecutor] = Counter()


class SingleFlight:
    """Pieces of work by name: of each, one under way and one that waits."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, asyncio.Task[Any]] = {}
        self._last: dict[Hashable, asyncio.Task[Any]] = {}

    async def take(self, what: Hashable, start: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of a piece of work that begins from now on."""
        task = self._waiting.get(what)
        if task is None:
            task = self._add(what, start)
        found: T = await asyncio.shield(task)
        return found

    def begin(self, what: Hashable, start: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Have it done, unless it is under way, without waiting for it."""
        if what not in self._last:
            self._add(what, start)

    def _add(self, what: Hashable, start: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        task = asyncio.create_task(self._in_turn(what, self._last.get(what), start))
        self._waiting[what] = self._last[what] = task
        task.add_done_callback(partial(self._ended, what))
        return task

    async def _in_turn(
        self, what: Hashable, before: asyncio.Task[Any] | None, start: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        if before is not None:
            await asyncio.wait([before])
        del self._waiting[what]
        return await start()

    def _ended(self, what: Hashable, task: asyncio.Task[Any]) -> None:
        if self._waiting.get(what) is task:  # cancelled before its turn came
            del self._waiting[what]
        if self._last.get(what) is task:
            del self._last[what]
        forget_failure(task)


def forget_failure(task: asyncio.Task[Any]) -> None:
    """A request that waits gets the error; where none waits any more, it is not an error that nothing retrieved it."""
    if not task.cancelled():
        task.exception()


_turns: WeakKeyDictionary[ClusterState, SingleFlight] = WeakKeyDictionary()


def turns(state: ClusterState) -> SingleFlight:
    """The work on what is made of a cluster state."""
    return _turns.setdefault(state, SingleFlight())


async def for_pages(work: Work[T]) -> T:
    """Something that pages are made of."""
    return await _in(_pages, work)


async def of_all(state: ClusterState, what: Hashable, compute: Callable[[Estate], T]) -> T:
    """What `compute` says of everything, kept until anything but Events changes."""

    def kept() -> list[T]:
        return state.of_all(("kept", what), list)

    async def start() -> T:
        into, collect = kept(), _collecting(state)
        made = await for_pages(lambda: compute(collect()))
        into.append(made)
        return made

    known = kept()
    if not known:
        if len(state.allocations) > FEW:
            return await turns(state).take(("all", what), start)
        known.append(compute(_collecting(state)()))
    return known[0]


def _collecting(state: ClusterState) -> Work[Estate]:
    """All there is at this moment; putting it in order is part of the work."""
    pools, allocations = state.pools.values(), state.allocations.values()
    providers, clusters = state.providers.values(), state.clusters.values()

    def collect() -> Estate:
        return Estate(
            state.home,
            tuple(sorted(pools, key=key_of)),
            tuple(sorted(allocations, key=key_of)),
            tuple(sorted(providers, key=key_of)),
            tuple(sorted(clusters, key=key_of)),
        )

    return collect


async def foretold(work: Work[T]) -> T:
    """Something that takes seconds."""
    return await _in(_forecasts, work)


async def once(work: Work[T]) -> T:
    """Something that takes long and is not worth keeping."""
    return await _alone(_pages, work)


async def previewed(state: ClusterState, person: Person, compute: Callable[[Estate], T]) -> T:
    """What `compute` says of everything, for a user who is about to change something."""
    collect = _collecting(state)
    return await _fair(state, _previews).run(person.user, 1, lambda _: _undisturbed(lambda: compute(collect())))


async def planned(state: ClusterState, person: Person, size: int, compute: Callable[[Estate, Check], T]) -> T:
    """The same for a plan of about that size, which may take long and ends when no client waits for it any more."""
    collect = _collecting(state)
    work: Callable[[Check], T] = lambda check: _undisturbed(lambda: compute(collect(), check))  # noqa: E731
    return await _fair(state, _plans).run(person.user, size, work)


_shared: WeakKeyDictionary[ClusterState, dict[ThreadPoolExecutor, FairThreads]] = WeakKeyDictionary()


def _fair(state: ClusterState, threads: ThreadPoolExecutor) -> FairThreads:
    return _shared.setdefault(state, {}).setdefault(threads, FairThreads(threads, AT_ONCE))


async def _alone(threads: ThreadPoolExecutor, work: Work[T]) -> T:
    if _waiting[threads] >= MOST_WAITING:
        raise RequestRefused(
            429, "too much is being worked out here: wait a moment, then try again", headers={"Retry-After": "2"}
        )
    _waiting[threads] += 1
    try:
        return await _in(threads, work)
    finally:
        _waiting[threads] -= 1


async def _in(threads: ThreadPoolExecutor, work: Work[T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(threads, _undisturbed, work)


_busy = 0
_busy_lock = threading.Lock()


def _undisturbed(work: Work[T]) -> T:
    """Do it without the garbage collector: it would walk all that is being made several times over, and no client is
    served while it walks. What views make has no cycles, and goes without it."""
    global _busy  # noqa: PLW0603 (the collector is one for the whole process, too)
    with _busy_lock:
        _busy += 1
        gc.disable()
    try:
        return work()
    finally:
        with _busy_lock:
            _busy -= 1
            if not _busy:
                gc.enable()
