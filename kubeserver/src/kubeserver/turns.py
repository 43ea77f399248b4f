"""Whose work comes next on the event loop: callers take turns, and between turns the loop looks at the network.

A loop that has a hundred requests at hand works on all of them before it listens again, and who asks meanwhile waits
for all. Here few pieces of work begin in a round of the loop (a request, or the next part of a long list), one of each
caller before the second of any, and of one caller no more than two. Who sends many requests waits for the own ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

T = TypeVar("T")

_AT_ONCE: Final = 8  # that begin in one round of the loop
_OF_ONE: Final = 2  # of one caller among them


class Turns:
    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by caller, in order of their turns
        self._begun: Counter[str] = Counter()  # in this round

    async def take(self, caller: str) -> None:
        """Return when it is the caller's turn."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next_round, loop)
        elif self._waiting or self._begun[caller] >= _OF_ONE or self._begun.total() >= _AT_ONCE:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(caller, deque()).append(turn)
            await turn
            return
        self._begun[caller] += 1

    async def each(
        self, caller: str, items: Iterable[T], work: Callable[[T], Awaitable[object]], *, at_once: int
    ) -> None:
        """Do `work` for every item: so many under way together, each begun in a turn of the caller.

        The first failure ends it; what was begun by then may have been done.
        """
        left = iter(items)

        async def some() -> None:
            for item in left:
                await self.take(caller)
                await work(item)

        tasks = [asyncio.create_task(some()) for _ in range(at_once)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun.clear()
        for _ in range(_OF_ONE):
            for caller in list(self._waiting)[: _AT_ONCE - self._begun.total()]:
                queue = self._waiting.pop(caller)
                turn = queue.popleft()
                if queue:
                    self._waiting[caller] = queue  # behind the others
                if not turn.done():
                    turn.set_result(None)
                self._begun[caller] += 1
        if self._begun:
            loop.call_soon(self._next_round, loop)
