"""Ask once, keep for a while: with a clock that the test moves."""

from __future__ import annotations

import asyncio

import pytest

from butler.kube.recent_results import RecentResults


class Question:
    """Counts how often it was asked; answers once it is let go."""

    def __init__(self) -> None:
        self.asked = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def __call__(self) -> int:
        self.asked += 1
        number = self.asked
        await self.go_on.wait()
        return number


async def test_an_answer_is_kept_for_so_long_and_asked_for_again_after() -> None:
    now = 0.0
    recent, question = RecentResults(60.0, clock=lambda: now), Question()
    assert [await recent.of("it", question), await recent.of("it", question)] == [1, 1]
    assert await recent.of("other", question) == 2
    now = 60.0
    assert await recent.of("it", question) == 1
    now = 60.1
    assert await recent.of("it", question) == 3


async def test_a_failure_is_not_kept() -> None:
    async def broken() -> int:
        raise ValueError("broken")

    recent = RecentResults(60.0, clock=lambda: 0.0)
    with pytest.raises(ValueError, match="broken"):
        await recent.of("it", broken)
    assert await recent.of("it", Question()) == 1


async def test_callers_that_come_meanwhile_wait_for_the_one_answer_however_long_it_takes() -> None:
    now = 0.0
    recent, question = RecentResults(60.0, clock=lambda: now), Question()
    question.go_on.clear()
    first = asyncio.create_task(recent.of("it", question))
    await asyncio.sleep(0)
    now = 100.0
    second = asyncio.create_task(recent.of("it", question))
    await asyncio.sleep(0)
    first.cancel()
    question.go_on.set()
    assert await second == 1
    assert question.asked == 1


async def test_after_a_failure_the_answer_before_it_is_good_for_what_is_left_of_its_time() -> None:
    async def broken() -> int:
        raise ValueError("broken")

    now = 0.0
    recent, question = RecentResults(60.0, clock=lambda: now), Question()
    assert await recent.of("it", question) == 1
    now = 20.0
    with pytest.raises(ValueError, match="broken"):
        await recent.of("it", broken, within=10.0)
    assert await recent.of("it", question) == 1
    now = 60.1
    assert await recent.of("it", question) == 2


async def test_a_caller_may_want_a_younger_answer_than_others() -> None:
    now = 0.0
    recent, question = RecentResults(60.0, clock=lambda: now), Question()
    assert await recent.of("it", question) == 1
    now = 10.0
    assert await recent.of("it", question, within=10.0) == 1
    now = 10.1
    assert [await recent.of("it", question), await recent.of("it", question, within=10.0)] == [1, 2]
    assert await recent.of("it", question) == 2


async def test_an_answer_that_must_not_be_older_is_not_waited_for_longer() -> None:
    now = 0.0
    recent, question = RecentResults(3.0, never_older=True, clock=lambda: now), Question()
    question.go_on.clear()
    first = asyncio.create_task(recent.of("it", question))
    await asyncio.sleep(0)
    now = 3.1
    second = asyncio.create_task(recent.of("it", question))
    await asyncio.sleep(0)
    question.go_on.set()
    assert [await first, await second, await recent.of("it", question)] == [1, 2, 2]


async def test_what_is_forgotten_is_asked_for_again_also_while_it_is_under_way() -> None:
    recent, question = RecentResults(60.0, clock=lambda: 0.0), Question()
    question.go_on.clear()
    first = asyncio.create_task(recent.of("it", question))
    await asyncio.sleep(0)
    recent.forget("it")
    question.go_on.set()
    assert [await recent.of("it", question), await first] == [2, 1]
    assert await recent.of("it", question) == 2


async def test_an_answer_that_is_put_is_kept_as_others_are() -> None:
    now = 0.0
    recent, question = RecentResults(60.0, clock=lambda: now), Question()
    recent.put("it", 7)
    assert await recent.of("it", question) == 7
    now = 60.1
    assert await recent.of("it", question) == 1


async def test_only_so_many_are_kept() -> None:
    recent, question = RecentResults(60.0, most=2, clock=lambda: 0.0), Question()
    for name in ("a", "b", "c"):
        await recent.of(name, question)
    assert [await recent.of("c", question), await recent.of("a", question)] == [3, 4]
