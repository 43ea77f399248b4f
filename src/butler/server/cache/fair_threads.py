"""Threads for work that is done anew for each request, shared fairly between users.

Of one user one piece is under way at a time and a few wait. The smallest piece comes first, though none waits for ever:
a piece counts as smaller with every second that it waits. Two threads take turns on a processor, so a small piece of
one user is done while a large one of another is under way. A piece whose client has gone is taken out of the queue, or
told to stop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from butler.server.problems import RequestRefused

T = TypeVar("T")
Check = Callable[[], None]
"""Long work calls it now and then: it raises `ClientGone` where no client waits for it any more."""
MOST_WAITING: Final = 64
MOST_OF_ONE: Final = 8
"""Pieces of one person, the one under way included."""
PATIENCE: Final = 20.0
"""By how much a piece of work counts as smaller for each second that it has waited."""


class ClientGone(Exception):
    """No client waits for the work any more."""


@dataclass(eq=False, slots=True)
class _Piece:
    who: str
    size: float
    since: float
    work: Callable[[Check], Any]
    done: asyncio.Future[Any]
    given_up: bool = field(default=False)

    def check(self) -> None:
        if self.given_up:
            raise ClientGone

    def run(self) -> Any:
        return self.work(self.check)


class FairThreads:
    """Some threads, and who waits for them. It belongs to one event loop."""

    def __init__(self, executor: Executor, threads: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._executor = executor
        self._threads = threads
        self._clock = clock
        self._waiting: list[_Piece] = []
        self._under_way: dict[str, _Piece] = {}

    async def run(self, who: str, size: float, work: Callable[[Check], T]) -> T:
        """Have it done for a user; `size` tells about how much it is. Raises `RequestRefused` where too much waits."""
        theirs = sum(piece.who == who for piece in self._waiting) + (who in self._under_way)
        if theirs >= MOST_OF_ONE or len(self._waiting) >= MOST_WAITING:
            said = "of yours" if theirs >= MOST_OF_ONE else "here"
            raise RequestRefused(
                429, f"too much is being worked out {said}: wait a moment, then try again", headers={"Retry-After": "2"}
            )
        piece = _Piece(who, size, self._clock(), work, asyncio.get_running_loop().create_future())
        self._waiting.append(piece)
        self._begin()
        try:
            found: T = await asyncio.shield(piece.done)
        except asyncio.CancelledError:
            piece.given_up = True
            if piece in self._waiting:
                self._waiting.remove(piece)
            raise
        return found

    def _begin(self) -> None:
        while len(self._under_way) < self._threads:
            allowed = [piece for piece in self._waiting if piece.who not in self._under_way]
            if not allowed:
                return
            now = self._clock()
            piece = min(allowed, key=lambda piece: piece.size - PATIENCE * (now - piece.since))
            self._waiting.remove(piece)
            self._under_way[piece.who] = piece
            task = asyncio.ensure_future(asyncio.get_running_loop().run_in_executor(self._executor, piece.run))
            task.add_done_callback(lambda done, piece=piece: self._ended(piece, done))

    def _ended(self, piece: _Piece, done: asyncio.Future[Any]) -> None:
        del self._under_way[piece.who]
        error = None if done.cancelled() else done.exception()
        if not piece.given_up and not piece.done.done():
            if done.cancelled():
                piece.done.cancel()
            elif error is None:
                piece.done.set_result(done.result())
            else:
                piece.done.set_exception(error)
        self._begin()
