"""A follower watches every change of a logical cluster and works on what it concerns, one or a few items at a time.

`concerns` is called synchronously with each committed change and names items (a key, a name); `work` is called later
with each, once per burst of changes. Work that fails is tried again with growing pauses; it must be safe to repeat.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from kubeserver.storage.store import StoredChange

Item = TypeVar("Item", bound="Hashable")

log = logging.getLogger(__name__)

_LONGEST_PAUSE: Final = 5.0


class Follower(ABC, Generic[Item]):
    at_once = 1  # how many items are worked on together; never the same one twice

    def __init__(self) -> None:
        self._waiting: dict[Item, None] = {}  # a dict keeps the order of a queue and holds each item once
        self._failures: dict[Item, int] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def concerns(self, change: StoredChange) -> Iterable[Item]:
        """The items that a committed change makes worth a look."""

    @abstractmethod
    async def work(self, item: Item) -> None:
        """Bring one item to where it should be; raising means trying again later."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=type(self).__name__)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def changed(self, change: StoredChange) -> None:
        for item in self.concerns(change):
            self.look_at(item)

    def look_at(self, item: Item) -> None:
        self._waiting[item] = None
        self._wake.set()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                items = list(islice(self._waiting, self.at_once))
                for item in items:
                    del self._waiting[item]
                await asyncio.gather(*(self._attempt(item) for item in items))

    async def _attempt(self, item: Item) -> None:
        try:
            await self.work(item)
        except asyncio.CancelledError:
            raise
        except Exception as error:
            expected = isinstance(error, ApiError) and error.code in (404, 409)
            if not expected:
                log.warning("%s: %s failed and will be tried again: %s", type(self).__name__, item, error)
            failures = self._failures[item] = self._failures.get(item, 0) + 1
            pause = min(_LONGEST_PAUSE, 0.01 * 2**failures)
            asyncio.get_running_loop().call_later(pause, self.look_at, item)
        else:
            self._failures.pop(item, None)
