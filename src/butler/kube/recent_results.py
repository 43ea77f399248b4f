"""Ask once, and keep the answer for a while: the one time-limited memory of answers.

Callers that ask for the same thing while the question is under way wait for its one answer. A failure is not kept: the
answer before it, where there is one, stays for what is left of its time. A caller that is cancelled does not cancel the
question for the others.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable

T = TypeVar("T")


class _Question(NamedTuple):
    began: float
    answer: asyncio.Future[Any]


class RecentResults:
    """Answers by question, each kept for so many seconds; of more than `most`, the oldest go. `clock` is monotonic.

    A slow question is waited for, however long it takes. With `never_older` it is asked anew once it has been under way
    for that long: for sessions and permissions, whose end must be noticed within these seconds.
    """

    def __init__(
        self,
        seconds: float,
        *,
        most: int = 256,
        never_older: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._most = most
        self._never_older = never_older
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Question] = OrderedDict()

    async def of(
        self, what: Hashable, start: Callable[[], Coroutine[Any, Any, T]], *, within: float | None = None
    ) -> T:
        """The answer, from `start` where none is kept; `within`: from fewer seconds ago than usual."""
        question = self._kept.get(what)
        if question is None or self._is_over(question, self._seconds if within is None else within):
            task = asyncio.create_task(start())
            task.add_done_callback(partial(self._drop_failure, what, question))
            question = self._keep(what, task)
        found: T = await asyncio.shield(question.answer)
        return found

    def put(self, what: Hashable, answer: object) -> None:
        """Keep an answer that is known without asking."""
        known: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        known.set_result(answer)
        self._keep(what, known)

    def forget(self, what: Hashable) -> None:
        """Ask anew next time, also where the question is under way."""
        self._kept.pop(what, None)

    def _keep(self, what: Hashable, answer: asyncio.Future[Any]) -> _Question:
        self._kept[what] = question = _Question(self._clock(), answer)
        self._kept.move_to_end(what)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return question

    def _is_over(self, question: _Question, seconds: float) -> bool:
        may_be_over = question.answer.done() or self._never_older
        return may_be_over and self._clock() - question.began > seconds

    def _drop_failure(self, what: Hashable, before: _Question | None, task: asyncio.Task[Any]) -> None:
        failed = task.cancelled() or task.exception() is not None
        kept = self._kept.get(what)
        if not failed or kept is None or kept.answer is not task:
            return
        if before is None or not before.answer.done():
            del self._kept[what]
        else:
            self._kept[what] = before
