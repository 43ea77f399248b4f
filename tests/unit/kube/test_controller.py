"""Controllers: keys in, reconciles out."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.objects import Change, Key
from butler.kube.controller import After, Controller
from butler.kube.errors import Status, error_from_status
from butler.kube.metrics import Metrics
from butler.kube.retry import Backoff
from unit.kube.virtual_time import now, run

if TYPE_CHECKING:
    from butler.kube.cache import Cache

A, B = Key("ns", "a"), Key("ns", "b")
Json = dict[str, Any]


class StillCache:
    """What a controller needs of a cache, changed by hand."""

    def __init__(self) -> None:
        self.objects: dict[Key, Json] = {}
        self.handlers: list[Any] = []

    def on_change(self, handler: Any) -> None:
        self.handlers.append(handler)

    def replay(self, handler: Any) -> None:
        for key, obj in self.objects.items():
            handler(Change(key, None, obj))

    async def wait_settled(self) -> None:
        pass

    def set(self, key: Key, new: Json | None) -> None:
        old = self.objects.pop(key, None)
        if new is not None:
            self.objects[key] = new
        for handler in self.handlers:
            handler(Change(key, old, new))


def watching(controller: Controller, **options: Any) -> StillCache:
    cache = StillCache()
    controller.watches(cast("Cache[Json]", cache), **options)
    return cache


@asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_a_change_is_reconciled_and_after_asks_for_another_look() -> None:
    async def main() -> None:
        looks: list[tuple[Key, float]] = []

        async def reconcile(key: Key) -> After | None:
            looks.append((key, now()))
            return After(30) if len(looks) == 1 else None

        controller = Controller("test", reconcile)
        cache = watching(controller)
        async with running(controller):
            cache.set(A, {})
            await asyncio.sleep(100)
        assert [key for key, _ in looks] == [A, A]
        assert looks[1][1] - looks[0][1] == pytest.approx(30)

    run(main())


def test_a_failing_key_backs_off_without_holding_up_others(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        looks: Counter[Key] = Counter()

        async def reconcile(key: Key) -> None:
            looks[key] += 1
            if key == A:
                raise ValueError("a bug")

        metrics = Metrics()
        controller = Controller("test", reconcile, workers=1, backoff=Backoff(first=1, cap=100), metrics=metrics)
        cache = watching(controller)
        async with running(controller):
            cache.set(A, {})
            for _ in range(10):
                cache.set(B, {})
                await asyncio.sleep(6)
        assert looks[B] == 10
        assert 5 <= looks[A] <= 8, "about log2 of a minute"
        errors = metrics.registry.get_sample_value(
            "controller_runtime_reconcile_total", {"controller": "test", "result": "error"}
        )
        assert errors == looks[A]

    with caplog.at_level(logging.CRITICAL):
        run(main())


def test_a_reconcile_cut_off_from_inside_costs_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        looks = 0

        async def reconcile(_: Key) -> None:
            nonlocal looks
            looks += 1
            if looks < 4:
                raise asyncio.CancelledError  # as when a task that it awaits was cancelled by another task

        controller = Controller("test", reconcile, workers=1)
        cache = watching(controller)
        async with running(controller) as task:
            cache.set(A, {})
            await asyncio.sleep(10)
            assert not task.done()
        assert looks == 4

    with caplog.at_level(logging.CRITICAL):
        run(main())


def test_a_conflict_is_retried_quietly(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        looks = 0

        async def reconcile(_: Key) -> None:
            nonlocal looks
            looks += 1
            if looks == 1:
                raise error_from_status(Status(reason="Conflict", code=409))

        controller = Controller("test", reconcile)
        cache = watching(controller)
        async with running(controller):
            cache.set(A, {})
            await asyncio.sleep(10)
        assert looks == 2

    run(main())
    assert not caplog.records


def test_an_object_that_moves_concerns_both_where_it_was_and_where_it_is() -> None:
    async def main() -> None:
        looks: list[Key] = []

        async def reconcile(key: Key) -> None:
            looks.append(key)

        controller = Controller("test", reconcile, workers=1)
        cache = watching(controller, to_keys=lambda obj: [Key("ns", obj["owner"])])
        async with running(controller):
            cache.set(Key("ns", "child"), {"owner": "a"})
            await asyncio.sleep(1)
            cache.set(Key("ns", "child"), {"owner": "b"})
            await asyncio.sleep(1)
            cache.set(Key("ns", "child"), None)
            await asyncio.sleep(1)
        assert looks == [A, A, B, B]

    run(main())


def test_changes_that_do_not_matter_are_not_reconciled() -> None:
    async def main() -> None:
        looks: list[Key] = []

        async def reconcile(key: Key) -> None:
            looks.append(key)

        controller = Controller("test", reconcile)
        cache = watching(controller, when=lambda old, new: old is None or new is None)
        async with running(controller):
            cache.set(A, {})
            await asyncio.sleep(1)
            cache.set(A, {"status": 1})
            await asyncio.sleep(1)
        assert looks == [A]

    run(main())


def test_a_reconcile_that_hangs_is_cut_off_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        looks = 0

        async def reconcile(_: Key) -> None:
            nonlocal looks
            looks += 1
            await asyncio.sleep(1000 if looks == 1 else 0)

        controller = Controller("test", reconcile, timeout=5)
        cache = watching(controller)
        async with running(controller):
            cache.set(A, {})
            await asyncio.sleep(20)
        assert looks == 2

    with caplog.at_level(logging.CRITICAL):
        run(main())


@pytest.mark.parametrize(("needs", "finished"), [(3, True), (60, False)])
def test_stopping_lets_a_reconcile_finish_within_limits(
    needs: float, finished: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        ended: list[bool] = []

        async def reconcile(_: Key) -> None:
            try:
                await asyncio.sleep(needs)
                ended.append(True)
            except asyncio.CancelledError:
                ended.append(False)
                raise

        controller = Controller("test", reconcile)
        cache = watching(controller)
        async with running(controller) as task:
            cache.set(A, {})
            await asyncio.sleep(1)
            start = now()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            assert now() - start == pytest.approx(min(needs - 1, 10), abs=0.1)
        assert ended == [finished]

    with caplog.at_level(logging.CRITICAL):
        run(main())


def test_a_controller_that_runs_again_looks_at_everything_again() -> None:
    async def main() -> None:
        looks: list[Key] = []

        async def reconcile(key: Key) -> None:
            looks.append(key)

        controller = Controller("test", reconcile, workers=1)
        cache = watching(controller)
        cache.set(A, {})
        for _ in range(2):
            async with running(controller):
                await asyncio.sleep(1)
        assert looks == [A, A]

    run(main())


def test_changes_are_collected_where_a_key_is_to_be_looked_at_calmly() -> None:
    async def main() -> None:
        looks: list[tuple[Key, float]] = []

        async def reconcile(key: Key) -> None:
            looks.append((key, round(now(), 3)))

        controller = Controller("test", reconcile, calm=lambda key: 0.5 if key == A else 0.0)
        cache = watching(controller)
        async with running(controller):
            began = now()
            for number in range(4):
                cache.set(A, {"number": number})
                cache.set(B, {"number": number})
                await asyncio.sleep(0.1)
            assert [key for key, _ in looks] == [B] * 4
            await asyncio.sleep(1)
            assert [(key, at) for key, at in looks if key == A] == [(A, round(began + 0.5, 3))]
            controller.queue.add(A)  # who is called comes at once
            await asyncio.sleep(0)
            await asyncio.sleep(0.01)
            assert [key for key, _ in looks].count(A) == 2

    run(main())
