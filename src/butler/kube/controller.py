"""A controller: keys in, reconciles out.

The whole contract is one function. It gets a key, reads the world, writes the difference, and either returns
(done), returns `After(seconds)` (look again then) or raises (look again after a back-off). It may be called at any
time, twice, or late; it is never called twice at once for the same key. An error in one key never delays another,
and nothing that a reconcile raises ends the controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from butler.api.objects import Key
from butler.kube.errors import Conflict, KubeError
from butler.kube.metrics import Metrics
from butler.kube.queue import PER_KEY, QueueClosed, WorkQueue

if TYPE_CHECKING:
    from butler.api.objects import Change
    from butler.kube.cache import Cache
    from butler.kube.retry import Backoff

T = TypeVar("T")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class After:
    """Done for now; look again after so many seconds."""

    seconds: float


Reconcile = Callable[[Key], Awaitable[After | None]]


class Controller:
    """Runs `reconcile` for every key that its watches name, with a number of workers."""

    def __init__(
        self,
        name: str,
        reconcile: Reconcile,
        *,
        workers: int = 4,
        timeout: float | None = None,
        backoff: Backoff = PER_KEY,
        longest_pause: Callable[[Key], float | None] = lambda _: None,
        calm: Callable[[Key], float] = lambda _: 0.0,
        metrics: Metrics | None = None,
    ) -> None:
        """`longest_pause`: for how long a key may rest at most after a failure, where that is less than usual. `calm`:
        for how many seconds changes of a key are collected before it is looked at.
        """
        self.name = name
        self._reconcile = reconcile
        self._workers = workers
        self._timeout = timeout
        self._metrics = metrics or Metrics()
        self._backoff = backoff
        self._longest_pause = longest_pause
        self._calm = calm
        self.queue = self._new_queue()
        self.caches: list[Cache[Any]] = []
        self._replays: list[Callable[[], None]] = []
        self._metrics.queue_depth.labels(name).set_function(lambda: len(self.queue))

    def _new_queue(self) -> WorkQueue[Key]:
        waited = self._metrics.queue_seconds.labels(self.name).observe
        return WorkQueue(backoff=self._backoff, on_wait=waited)

    def watches(
        self,
        cache: Cache[T],
        to_keys: Callable[[T], Iterable[Key]] | None = None,
        *,
        when: Callable[[T | None, T | None], bool] | None = None,
    ) -> Controller:
        """Reconcile the keys that `to_keys` names (by default the object's own) when it changes.

        Both the old and the new state are asked, so that an object that is no longer pointed at is reconciled too.
        Work begins when the caches have caught up; an optional one whose kind is missing is not waited for.
        """

        def concerned(change: Change[T]) -> Iterable[Key]:
            if when is not None and not when(change.old, change.new):
                return ()
            if to_keys is None:
                return (change.key,)
            return [key for state in (change.old, change.new) if state is not None for key in to_keys(state)]

        return self.hears(cache, concerned)

    def hears(self, cache: Cache[T], concerned: Callable[[Change[T]], Iterable[Key]]) -> Controller:
        """Reconcile the keys that follow from a change as a whole, where neither state alone tells them.

        Everything is told again, as an addition, whenever work begins anew.
        """

        def enqueue(change: Change[T]) -> None:
            for key in concerned(change):
                self.changed(key)

        cache.on_change(enqueue)
        self.caches.append(cache)
        self._replays.append(lambda: cache.replay(enqueue))
        return self

    def changed(self, key: Key) -> None:
        """Something that a key depends on changed."""
        self.queue.add_after(key, self._calm(key))

    async def run(self, drain: Callable[[], float] = lambda: 10.0) -> None:
        """Work until cancelled; then let reconciles under way finish for up to `drain()` seconds.

        May be run again, as when leadership is lost and won: then everything is looked at afresh.
        """
        if self.queue.closed:
            self.queue = self._new_queue()
            for replay in self._replays:
                replay()
        for cache in self.caches:
            await cache.wait_settled()
        workers = {asyncio.create_task(self._work(), name=f"{self.name}-{number}") for number in range(self._workers)}
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
            raise RuntimeError(f"{self.name}: a worker ended by itself")
        finally:
            self.queue.close()
            _, late = await asyncio.wait(workers, timeout=drain())
            for worker in late:
                log.warning("%s: a reconcile did not finish in time and is cut off", self.name)
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self) -> None:
        queue = self.queue
        while True:
            try:
                key = await queue.get()
            except QueueClosed:
                return
            for cache in self.caches:
                await cache.wait_settled()  # one that was called in question lists anew before anything is decided
            with self._metrics.active_workers.labels(self.name).track_inprogress():
                await self._process(key)

    async def _process(self, key: Key) -> None:
        """One reconcile, whatever comes of it."""
        started = asyncio.get_running_loop().time()
        result = "error"
        try:
            async with asyncio.timeout(self._timeout):
                outcome = await self._reconcile(key)
            self.queue.forget(key)
            result = "success"
            if outcome is not None:
                result = "requeue_after"
                self.queue.add_after(key, outcome.seconds)
        except Conflict as error:
            # Another process wrote first. That is the protection working, not a failure to report.
            result = "conflict"
            self._later(key)
            log.debug("%s %s: %s", self.name, key, error)
        except (KubeError, TimeoutError) as error:
            delay = self._later(key)
            log.warning("%s %s: %s; again in %.1f s", self.name, key, error or "timed out", delay)
        except asyncio.CancelledError:
            if cast("asyncio.Task[None]", asyncio.current_task()).cancelling():
                raise
            # Not we were cancelled but something that the reconcile waited for.
            delay = self._later(key)
            log.exception("%s %s was cut off from inside; again in %.1f s", self.name, key, delay)
        except Exception:
            delay = self._later(key)
            log.exception("%s %s failed; again in %.1f s", self.name, key, delay)
        finally:
            self.queue.done(key)
            self._metrics.reconciles.labels(self.name, result).inc()
            elapsed = asyncio.get_running_loop().time() - started
            self._metrics.reconcile_seconds.labels(self.name).observe(elapsed)

    def _later(self, key: Key) -> float:
        self._metrics.queue_retries.labels(self.name).inc()
        return self.queue.retry(key, self._longest_pause(key))
