"""Keys waiting to be worked on.

A key stands here for "look at this again", nothing more, so being added ten times is being added once. A key that
is being worked on is never given to a second worker: added meanwhile, it waits until the first says `done`, and
comes again. That is all the locking a reconciler needs. Delays keep the earliest of the times asked for; a failing
key backs off on its own without slowing the others.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from butler.kube.retry import Backoff

K = TypeVar("K", bound=Hashable)
PER_KEY = Backoff(first=0.05, cap=60.0)


class QueueClosed(Exception):  # an end, not a fault
    """The queue takes and gives no more keys."""


class WorkQueue(Generic[K]):
    """A deduplicating queue with delays and back-off, timed by the event loop's clock."""

    def __init__(
        self,
        *,
        backoff: Backoff = PER_KEY,
        rng: random.Random | None = None,
        on_wait: Callable[[float], None] | None = None,
    ) -> None:
        self._backoff = backoff
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._on_wait = on_wait
        self._ready: dict[K, float] = {}  # in order of arrival, with the time of arrival
        self._busy: set[K] = set()
        self._again: set[K] = set()  # added while busy
        self._due: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._serial = 0
        self._failures: dict[K, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        """Keys that could be worked on now."""
        return len(self._ready)

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def busy(self) -> int:
        return len(self._busy)

    @property
    def delayed(self) -> int:
        return len(self._due)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def add(self, key: K) -> None:
        """Look at this as soon as possible. Any delay it was waiting out is over."""
        if self._closed:
            return
        self._due.pop(key, None)
        if key in self._busy:
            self._again.add(key)
        elif key not in self._ready:
            self._ready[key] = asyncio.get_running_loop().time()
            self._wake()

    def add_after(self, key: K, seconds: float) -> None:
        """Reconcile this key after a while, or earlier if a caller asks earlier."""
        if seconds <= 0:
            self.add(key)
            return
        at = asyncio.get_running_loop().time() + seconds
        if self._closed or key in self._ready or self._due.get(key, at + 1) <= at:
            return
        self._due[key] = at
        self._serial += 1
        heapq.heappush(self._later, (at, self._serial, key))
        if len(self._later) > 2 * len(self._due) + 100:  # delays that were cut short would pile up until their time
            self._later = [entry for entry in self._later if self._due.get(entry[2]) == entry[0]]
            heapq.heapify(self._later)
        if self._later[0][2] is key:
            self._set_timer()

    def retry(self, key: K, most: float | None = None) -> float:
        """Look at this again after its back-off, which grows with every call up to `most`; gives the delay."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._backoff.delay(failures, self._rng)
        if most is not None and delay > most:
            delay = most * (0.5 + 0.5 * self._rng.random())
        self.add_after(key, delay)
        return delay

    def forget(self, key: K) -> None:
        """It went well: the next back-off starts small."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; say `done` when finished with it."""
        while not self._ready:
            await self._arrival()
        if self._closed:
            raise QueueClosed
        return self._take()

    async def get_batch(self, most: int) -> list[K]:
        """All keys that are ready, up to `most`, waiting for the first. Say `done` for each."""
        batch = [await self.get()]
        while self._ready and len(batch) < most:
            batch.append(self._take())
        return batch

    def done(self, key: K) -> None:
        self._busy.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def close(self) -> None:
        """Wake all who wait with QueueClosed. What is left is dropped: the next list finds it again."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for getter in self._getters:
            if not getter.done():
                getter.set_result(None)

    def _take(self) -> K:
        key = next(iter(self._ready))
        arrived = self._ready.pop(key)
        self._busy.add(key)
        if self._on_wait is not None:
            self._on_wait(asyncio.get_running_loop().time() - arrived)
        return key

    async def _arrival(self) -> None:
        if self._closed:
            raise QueueClosed
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except BaseException:
            # Woken and cancelled at the same moment: the wake-up belongs to another worker then.
            if getter.done() and not getter.cancelled() and self._ready:
                self._wake()
            raise
        finally:
            if getter in self._getters:
                self._getters.remove(getter)
        if self._closed:
            raise QueueClosed

    def _wake(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._later and not self._closed:
            self._timer = asyncio.get_running_loop().call_at(self._later[0][0], self._release_due)

    def _release_due(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._later and self._later[0][0] <= now:
            at, _, key = heapq.heappop(self._later)
            if self._due.get(key) == at:  # otherwise it was asked for earlier, and this is a leftover
                self.add(key)
        self._set_timer()
