"""Ask once, and keep the answer for a while: the one time-limited memory of answers.

Callers that ask for the same thing while the question is under way wait for its one answer; a failure is not kept. A
caller that is cancelled does not cancel the question for the others.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class RecentResults:
    """Answers by question, each kept for so many seconds; of more than `most`, the oldest go. `clock` is monotonic."""

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
