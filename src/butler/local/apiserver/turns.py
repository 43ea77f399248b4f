"""Whose work comes next on the event loop: callers take turns, and between turns the loop looks at the network.

A loop that has a hundred requests at hand works on all of them before it listens again, and who asks meanwhile waits
for all. Here each caller begins one piece of work in a round of the loop (a request, or the next part of a long
list), and few callers do in one. Who sends many requests waits for the own ones.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

_AT_ONCE: Final = 8  # callers that begin something in one round of the loop


class Turns:
    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by caller, in order of their turns
        self._begun: set[str] = set()  # in this round

    async def take(self, caller: str) -> None:
        """Return when it is the caller's turn."""
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next_round, loop)
        elif caller in self._begun or caller in self._waiting or len(self._begun) >= _AT_ONCE:
            turn: asyncio.Future[None] = loop.create_future()
            self._waiting.setdefault(caller, deque()).append(turn)
            await turn
            return
        self._begun.add(caller)

    def _next_round(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun.clear()
        for caller in list(self._waiting)[:_AT_ONCE]:
            queue = self._waiting.pop(caller)
            turn = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the others
            if not turn.done():
                turn.set_result(None)
            self._begun.add(caller)
        if self._begun:
            loop.call_soon(self._next_round, loop)
