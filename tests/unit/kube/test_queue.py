"""The work queue, in virtual time."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.kube.queue import QueueClosed, WorkQueue
from butler.kube.retry import Backoff
from unit.kube.virtual_time import now, run


def test_a_key_added_many_times_comes_once() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for key in "aabab":
            queue.add(key)
        assert [await queue.get(), await queue.get()] == ["a", "b"]
        assert len(queue) == 0

    run(main())


def test_a_key_being_worked_on_is_not_given_to_a_second_worker_but_comes_again() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        assert await queue.get() == "a"
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        queue.done("a")
        assert await queue.get() == "a"
        queue.done("a")
        assert (len(queue), queue.busy) == (0, 0)

    run(main())


def test_a_delayed_key_comes_when_it_is_due_and_the_earliest_wish_counts() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        start = now()
        queue.add_after("a", 30)
        queue.add_after("a", 10)
        queue.add_after("a", 20)
        assert await queue.get() == "a"
        assert now() - start == pytest.approx(10)
        queue.done("a")
        await asyncio.sleep(100)
        assert len(queue) == 0, "the later wishes are void"

    run(main())


def test_delays_that_were_cut_short_do_not_pile_up() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        for _ in range(5000):
            queue.add_after("a", 3600)
            queue.add("a")
            queue.done(await queue.get())
        queue.add_after("b", 10)
        assert len(queue._later) < 200
        start = now()
        assert await queue.get() == "b"
        assert now() - start == pytest.approx(10)

    run(main())


def test_adding_a_delayed_key_ends_its_delay() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add_after("a", 30)
        queue.add("a")
        assert len(queue) == 1
        await queue.get()
        queue.done("a")
        await asyncio.sleep(60)
        assert (len(queue), queue.delayed) == (0, 0)

    run(main())


def test_a_delay_that_ends_while_the_key_is_worked_on_brings_it_again() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        queue.add("a")
        await queue.get()
        queue.add_after("a", 5)
        await asyncio.sleep(10)
        assert len(queue) == 0
        queue.done("a")
        assert await queue.get() == "a"

    run(main())


def test_back_off_doubles_up_to_its_cap_and_starts_anew_after_success() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue(backoff=Backoff(first=1, cap=8), rng=random.Random(1))
        delays = [queue.retry("a") for _ in range(6)]
        for delay, full in zip(delays, (1, 2, 4, 8, 8, 8), strict=True):
            assert full / 2 <= delay <= full
        assert queue.failures("a") == 6
        queue.forget("a")
        assert queue.retry("a") <= 1

    run(main())


def test_a_batch_takes_what_is_ready_and_waits_only_for_the_first() -> None:
    async def main() -> None:
        queue: WorkQueue[int] = WorkQueue()
        waiting = asyncio.create_task(queue.get_batch(3))
        await asyncio.sleep(1)
        for key in range(5):
            queue.add(key)
        assert await waiting == [0, 1, 2]
        assert await queue.get_batch(10) == [3, 4]

    run(main())


def test_closing_wakes_those_who_wait() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.close()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(result, QueueClosed) for result in results)
        queue.add("a")
        assert len(queue) == 0

    run(main())


def test_a_cancelled_getter_does_not_swallow_a_key() -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        first, second = asyncio.create_task(queue.get()), asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.add("a")
        first.cancel()
        assert await asyncio.wait_for(second, 1) == "a"

    run(main())


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0, 5), st.floats(0, 2)), max_size=40), st.integers(1, 4))
def test_every_key_is_worked_on_after_its_last_addition_and_never_twice_at_once(
    additions: list[tuple[str, float, float]], workers: int
) -> None:
    async def main() -> None:
        queue: WorkQueue[str] = WorkQueue()
        busy: set[str] = set()
        last_start: dict[str, float] = {}
        last_added: dict[str, float] = {}

        async def work() -> None:
            while True:
                key = await queue.get()
                assert key not in busy
                busy.add(key)
                last_start[key] = now()
                await asyncio.sleep(0.3)
                busy.discard(key)
                queue.done(key)

        tasks = [asyncio.create_task(work()) for _ in range(workers)]
        for key, delay, gap in additions:
            queue.add_after(key, delay)
            last_added[key] = now()
            await asyncio.sleep(gap)
        await asyncio.sleep(100)
        assert all(last_start[key] >= added for key, added in last_added.items())
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(result, asyncio.CancelledError) for result in results), results

    run(main())


async def test_a_key_that_someone_waits_for_never_rests_for_long() -> None:
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(first=0.05, cap=60.0), rng=random.Random(1))
    delays = [queue.retry("awaited", 1.0) for _ in range(30)]
    assert max(delays) <= 1.0
    assert min(delays[10:]) >= 0.5, "nor is it asked for without a pause"
    assert max(queue.retry("other") for _ in range(30)) > 30.0
