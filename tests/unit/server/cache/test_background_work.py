"""Work that takes long: once for all who ask, never piled up, and never older than the question."""

from __future__ import annotations

import asyncio
import threading

import pytest

from butler.server.cache.background_work import MOST_WAITING, SingleFlight, once
from butler.server.problems import RequestRefused

pytestmark = pytest.mark.asyncio


class Job:
    """Work that ends when it is told to, and tells how often it began."""

    def __init__(self) -> None:
        self.began = 0
        self.go_on = asyncio.Semaphore(0)

    async def __call__(self) -> int:
        self.began += 1
        mine = self.began
        await self.go_on.acquire()
        return mine


async def _settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_who_asks_while_work_is_under_way_waits_for_the_next_together_with_all_others() -> None:
    turns, job = SingleFlight(), Job()
    first = asyncio.create_task(turns.take("it", job))
    await _settle()
    assert job.began == 1
    later = [asyncio.create_task(turns.take("it", job)) for _ in range(50)]
    await _settle()
    assert job.began == 1
    job.go_on.release()
    await _settle()
    assert await first == 1
    assert job.began == 2
    job.go_on.release()
    assert await asyncio.gather(*later) == [2] * 50
    await _settle()
    assert job.began == 2


async def test_one_who_gives_up_does_not_spoil_it_for_the_others() -> None:
    turns, job = SingleFlight(), Job()
    one, other = (asyncio.create_task(turns.take("it", job)) for _ in range(2))
    await _settle()
    one.cancel()
    await _settle()
    job.go_on.release()
    assert await other == 1


async def test_work_that_fails_is_told_to_who_waits_and_tried_anew_for_the_next() -> None:
    turns = SingleFlight()

    async def broken() -> int:
        raise ValueError("broken")

    async def whole() -> int:
        return 7

    with pytest.raises(ValueError, match="broken"):
        await turns.take("it", broken)
    assert await turns.take("it", whole) == 7


async def test_only_so_much_waits_that_is_for_one_alone() -> None:
    go_on = threading.Event()
    waiting = [asyncio.create_task(once(go_on.wait)) for _ in range(MOST_WAITING)]
    await _settle()
    with pytest.raises(RequestRefused, match="wait a moment") as refused:
        await once(go_on.wait)
    assert refused.value.status == 429
    go_on.set()
    assert all(await asyncio.gather(*waiting))
    assert await once(lambda: 7) == 7
