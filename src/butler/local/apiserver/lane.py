"""Where long work is done: one thread beside the event loop, which callers take in turns.

A body of megabytes, a patch of ten thousand operations or a rule that asks for a million steps takes seconds. On the
loop everybody would wait for it; here only requests of that kind do, and among those each caller has a turn for each
turn of another, however many requests it sends. Who has too many waiting is told to come back.

One thread and not several: they would only take the interpreter's lock from each other and from the loop.
"""

from __future__ import annotations

import asyncio
import gc
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

from butler.local.apiserver.wire.status import too_many_requests

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

LARGE: Final = 16 * 1024  # bytes of JSON from which on work on them leaves the loop
_MOST_WAITING: Final = 32  # of one caller


def _without_collecting(work: Callable[[], T]) -> T:
    """Do work that makes hundreds of thousands of objects, none of them in a circle.

    The collector would look at all objects of the process each time their number has grown by a quarter, and stop
    everybody for that.
    """
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


class Lane:
    def __init__(self, most_waiting: int = _MOST_WAITING) -> None:
        self._most_waiting = most_waiting
        self._waiting: dict[str, deque[tuple[Callable[[], Any], asyncio.Future[Any]]]] = {}  # in order of their turns
        self._pool: ThreadPoolExecutor | None = None
        self._busy = False

    async def run(self, caller: str, work: Callable[[], T]) -> T:
        """Do `work` when it is the caller's turn; it must not touch what belongs to the loop."""
        queue = self._waiting.get(caller, deque())
        if len(queue) >= self._most_waiting:
            raise too_many_requests(f"{len(queue)} large requests are waiting already: send fewer at once")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        queue.append((work, done))
        self._waiting.setdefault(caller, queue)
        self._begin(loop)
        return await done

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and not self._busy:
            caller = next(iter(self._waiting))
            queue = self._waiting.pop(caller)
            work, done = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the others
            if done.cancelled():
                continue  # the client has left
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, thread_name_prefix="lane")
            self._busy = True
            running = loop.run_in_executor(self._pool, _without_collecting, work)
            running.add_done_callback(lambda over, done=done: self._finish(loop, over, done))  # type: ignore[misc]

    def _finish(self, loop: asyncio.AbstractEventLoop, over: asyncio.Future[Any], done: asyncio.Future[Any]) -> None:
        self._busy = False
        if over.cancelled():
            done.cancel()
        elif problem := over.exception():
            if not done.cancelled():
                done.set_exception(problem)
        elif not done.cancelled():
            done.set_result(over.result())
        self._begin(loop)
