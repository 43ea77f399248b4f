"""Where long work is done: threads beside the event loop, of which a caller has one at a time.

A body of megabytes, a patch of ten thousand operations or a rule that asks for a million steps takes seconds. On the
loop every client would wait for it; here only requests of that kind wait, and only for those of the same caller:
another caller takes the next thread. When all are taken, each caller has a turn for each turn of another, however many
requests it sends. Who has too many waiting is told to come back.

Few threads and not many: they take the interpreter's lock from each other and from the loop.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from kubeserver.wire.messages import ClientLeft
from kubeserver.wire.status import too_many_requests

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_MOST_WAITING: Final = 32  # of one caller
_THREADS: Final = 3
_COLLECT_SECONDS: Final = 10.0


class _Waiting(NamedTuple):
    work: Callable[[], Any]
    done: asyncio.Future[Any]
    gone: Callable[[], bool]


class Lane:
    def __init__(self, most_waiting: int = _MOST_WAITING, threads: int = _THREADS) -> None:
        self._most_waiting = most_waiting
        self._threads = threads
        self._waiting: dict[str, deque[_Waiting]] = {}  # in order of their turns
        self._running: set[str] = set()  # callers
        self._pool: ThreadPoolExecutor | None = None
        self._collected = 0.0

    async def run(self, caller: str, work: Callable[[], T], gone: Callable[[], bool] = lambda: False) -> T:
        """Do `work` when it is the caller's turn, unless the client is `gone` by then.

        It must not touch what belongs to the loop.
        """
        queue = self._waiting.get(caller, deque())
        if len(queue) >= self._most_waiting:
            raise too_many_requests(f"{len(queue)} large requests are waiting already: send fewer at once")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        queue.append(_Waiting(work, done, gone))
        self._waiting.setdefault(caller, queue)
        self._begin(loop)
        return await done

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        while len(self._running) < self._threads:
            caller = next((caller for caller in self._waiting if caller not in self._running), None)
            if caller is None:
                return
            queue = self._waiting.pop(caller)
            work, done, gone = queue.popleft()
            if queue:
                self._waiting[caller] = queue  # behind the others
            if done.cancelled():
                continue
            if gone():
                done.set_exception(ClientLeft())
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="lane")
            self._running.add(caller)
            self._pause_collecting()
            over = loop.run_in_executor(self._pool, work)
            over.add_done_callback(lambda over, caller=caller, done=done: self._finish(loop, caller, over, done))  # type: ignore[misc]

    def _finish(
        self, loop: asyncio.AbstractEventLoop, caller: str, over: asyncio.Future[Any], done: asyncio.Future[Any]
    ) -> None:
        self._running.discard(caller)
        if over.cancelled():
            done.cancel()
        elif problem := over.exception():
            if not done.cancelled():
                done.set_exception(problem)
        elif not done.cancelled():
            done.set_result(over.result())
        self._begin(loop)
        if not self._running:
            gc.enable()

    def _pause_collecting(self) -> None:
        """Work here makes hundreds of thousands of objects, none of them in a circle.

        The collector would look at all of them each time their number has grown by a quarter, and stop all threads for
        that. While there is always work it has its turn now and then, with the youngest.
        """
        now = time.monotonic()
        if gc.isenabled():
            gc.disable()
            self._collected = now
        elif now - self._collected > _COLLECT_SECONDS:
            gc.collect(0)
            self._collected = now
