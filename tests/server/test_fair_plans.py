"""Plans and forecasts of several users: none keeps others waiting, and one that no client waits for ends."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from butler.reports.plan.planner import rehearse
from butler.server.cache.fair_threads import MOST_OF_ONE, Check, ClientGone, FairThreads
from butler.server.problems import RequestRefused
from server.eventually import eventually
from server.objects import create, pool
from server.rights import reader
from server.test_planning import planned, ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as threads:
        yield threads


async def test_a_small_plan_is_made_beside_a_large_one_which_ends_when_its_client_goes(
    api: Api, plane: ControlPlane, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(plane, pool("fair", f"{network}.0.0/24"))
    await ready(api, "fair")
    began, ended, enough = threading.Event(), threading.Event(), threading.Event()

    def slow(*args: Any, check: Check = lambda: None, **asked: Any) -> Any:
        if asked["tenants"].count < 100:
            return rehearse(*args, **asked)
        began.set()
        try:
            while not enough.wait(0.01):
                check()
        finally:
            ended.set()
        return rehearse(*args, **asked)

    monkeypatch.setattr("butler.server.routes.plan.rehearse", slow)
    greedy, modest = reader(plane, "greedy"), reader(plane, "modest")
    large = {"tenants": {"count": 150, "nodes": 1, "loadBalancers": 1, "pools": ["fair"]}}
    small = {"tenants": {"count": 2, "nodes": 1, "loadBalancers": 1, "pools": ["fair"]}}
    try:
        asking = [asyncio.create_task(api.call("POST", "/plan", large, user=greedy)) for _ in range(5)]
        await asyncio.to_thread(began.wait, 20)
        async with asyncio.timeout(20):
            assert (await planned(api, small, user=modest))["tenantsThatFit"] == 2
        assert not ended.is_set()
        for task in asking:
            task.cancel()
        assert await asyncio.to_thread(ended.wait, 20), "the client that asked has gone"
        enough.set()
        async with asyncio.timeout(20):  # and there is room again
            assert (await planned(api, small, user=greedy))["tenantsThatFit"] == 2
    finally:
        enough.set()


async def test_of_one_person_one_piece_is_under_way_at_a_time(executor: ThreadPoolExecutor) -> None:
    threads = FairThreads(executor, 2)
    ann, bob = threading.Event(), threading.Event()
    begun: list[str] = []

    def work(name: str, until: threading.Event) -> Any:
        def run(_: Check) -> None:
            begun.append(name)
            until.wait(20)

        return run

    first = [asyncio.create_task(threads.run("ann", 1, work(f"ann-{number}", ann))) for number in range(3)]
    await asyncio.sleep(0)
    other = asyncio.create_task(threads.run("bob", 1_000, work("bob", bob)))

    async def both() -> None:
        assert set(begun) == {"ann-0", "bob"}

    await eventually(both)
    bob.set()
    await other
    await asyncio.sleep(0.2)
    assert set(begun) == {"ann-0", "bob"}, "a thread is free, and the next one is ann's, too"
    ann.set()
    await asyncio.gather(*first)


async def test_the_smallest_comes_first(executor: ThreadPoolExecutor) -> None:
    threads = FairThreads(executor, 1, clock=lambda: 0.0)
    gate, order = threading.Event(), list[str]()
    first = asyncio.create_task(threads.run("ann", 1, lambda _: gate.wait(20)))
    await asyncio.sleep(0)
    others = []
    for who, size in (("bob", 9), ("cid", 900), ("dan", 700), ("eve", 1)):
        others.append(asyncio.create_task(threads.run(who, size, lambda _, who=who: order.append(who))))  # type: ignore[misc]
        await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, *others)
    assert order == ["eve", "bob", "dan", "cid"]


async def test_waiting_makes_a_piece_come_before_smaller_ones_that_came_later(executor: ThreadPoolExecutor) -> None:
    now, order = [0.0], list[str]()
    threads = FairThreads(executor, 1, clock=lambda: now[0])
    gate = threading.Event()
    first = asyncio.create_task(threads.run("ann", 1, lambda _: gate.wait(20)))
    await asyncio.sleep(0)
    large = asyncio.create_task(threads.run("bob", 1_000, lambda _: order.append("large")))
    await asyncio.sleep(0)
    now[0] = 60.0
    small = asyncio.create_task(threads.run("cid", 1, lambda _: order.append("small")))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, large, small)
    assert order == ["large", "small"]


async def test_what_no_client_waits_for_is_not_begun_or_ends_and_lines_have_an_end(
    executor: ThreadPoolExecutor,
) -> None:
    threads = FairThreads(executor, 1)
    stopped, begun = threading.Event(), list[int]()

    def endless(check: Check) -> None:
        try:
            while True:
                check()
        except ClientGone:
            stopped.set()
            raise

    first = asyncio.create_task(threads.run("ann", 1, endless))
    await asyncio.sleep(0.05)
    waiting = [
        asyncio.create_task(threads.run("ann", 1, lambda _, number=number: begun.append(number)))  # type: ignore[misc]
        for number in range(MOST_OF_ONE - 1)
    ]
    await asyncio.sleep(0)
    with pytest.raises(RequestRefused) as refused:
        await threads.run("ann", 1, lambda _: None)
    assert (refused.value.status, "of yours" in refused.value.detail) == (429, True)
    waiting[0].cancel()
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(*waiting[1:])
    assert stopped.wait(20)
    assert 0 not in begun

    async def empty() -> None:
        assert await threads.run("ann", 1, lambda _: "again") == "again"

    await eventually(empty)
