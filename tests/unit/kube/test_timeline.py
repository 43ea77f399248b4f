"""Versions that go back: a server restored from a snapshot under running caches, which takes a watch from the future.

The fake server does as kube-apiserver does: a watch that starts above its own version is answered 200 and stays silent.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from butler.api.objects import Key
from butler.kube import timeline
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.lease import LeaderLease
from butler.kube.operator import Operator
from butler.kube.resource import CONFIGMAPS, SECRETS
from butler.kube.retry import Backoff
from butler.kube.timeline import LONGEST_BLIND, may_resume
from unit.kube.fake_api import FakeApi, refusal

MAPS = "/api/v1/namespaces/default/configmaps"
HIDDEN = "/api/v1/namespaces/default/secrets"
A, B, C = Key("default", "a"), Key("default", "b"), Key("default", "c")
Json = dict[str, Any]
QUICK = Backoff(0.005, cap=0.02)


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[tuple[Cache[Json], Cache[Json]]]:
    caches = [Cache(client, resource, backoff=QUICK, rng=random.Random(1)) for resource in (CONFIGMAPS, SECRETS)]
    tasks = [asyncio.create_task(cache.run()) for cache in caches]
    try:
        for cache in caches:
            await asyncio.wait_for(cache.wait_synced(), 5)
        yield caches[0], caches[1]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_reopened_watch_notices_that_the_server_is_behind_it(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    restore = api.snapshot()
    async with running(client) as (maps, _):
        for _ in range(20):
            api.put(f"{MAPS}/b")
        await until(lambda: B in maps)
        restore()
        api.put(f"{MAPS}/c")  # below the position of the cache: no watch from there would ever tell
        await until(lambda: C in maps and B not in maps)
        assert maps.position == str(api.version)
    assert client.timeline.returns == 1


async def test_what_one_cache_learns_all_others_act_on(api: FakeApi, client: Client) -> None:
    restore = api.snapshot()
    async with running(client) as (maps, hidden):
        api.put(f"{MAPS}/a")
        api.put(f"{HIDDEN}/a")
        for _ in range(20):
            api.put(f"{MAPS}/b")
        await until(lambda: B in maps and A in hidden)
        lists = hidden.lists
        restore()
        for _ in range(10):  # by now the server has passed what the Secrets were seen at, and not the ConfigMaps
            api.put(f"{HIDDEN}/c")
        await until(lambda: A not in hidden and C in hidden)
        assert hidden.lists > lists


async def test_nothing_counts_as_seen_before_a_reopened_watch_was_compared(api: FakeApi, client: Client) -> None:
    async with running(client) as (maps, _):
        api.put(f"{MAPS}/a")
        await until(lambda: A in maps)
        asked, answer = asyncio.Event(), asyncio.Event()

        async def hold_comparisons(request: Any) -> None:
            if request.query.get("limit") == "1":
                asked.set()
                await answer.wait()

        api.before = hold_comparisons
        api.close_watches()
        await asyncio.wait_for(asked.wait(), 5)
        assert not maps.is_followed
        assert not await maps.reached("1", 0.05)
        answer.set()
        assert await maps.reached("1", 5)


async def test_a_comparison_that_fails_is_repeated(api: FakeApi, client: Client) -> None:
    async with running(client) as (maps, _):
        api.put(f"{MAPS}/a")
        await until(lambda: A in maps)
        api.refuse.extend([None, refusal(403, "Forbidden")])
        api.close_watches()
        await until(lambda: not api.refuse)
        assert await maps.reached("1", 5)
        assert maps.lists == 1


async def test_an_object_that_is_older_than_it_was_makes_every_cache_list_anew(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (maps, hidden):
        api.put(f"{MAPS}/a")
        await until(lambda: maps.position == str(api.version))
        lists = maps.lists, hidden.lists
        api.objects[f"{MAPS}/a"]["metadata"]["resourceVersion"] = "101"
        assert (await maps.read_again(A))["metadata"]["resourceVersion"] == "101"
        await until(lambda: maps.lists > lists[0] and hidden.lists > lists[1])
        await until(lambda: (maps.get(A) or {})["metadata"]["resourceVersion"] == "101")


async def test_an_object_that_was_made_anew_proves_nothing(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (maps, _):
        known = maps.get(A)
        assert known is not None
        api.objects[f"{MAPS}/a"]["metadata"] |= {"resourceVersion": "7", "uid": "another"}
        await maps.read_again(A)
        assert client.timeline.returns == 0


async def test_the_answer_to_a_write_that_was_lost_is_not_kept(api: FakeApi, client: Client) -> None:
    """The watch never told of it, so nothing but the answer itself is ahead of the server."""
    api.put(f"{MAPS}/a")
    async with running(client) as (maps, hidden):
        api.put(f"{MAPS}/b")
        await until(lambda: B in maps)
        lists = hidden.lists
        there = api.objects[f"{MAPS}/a"]["metadata"]
        maps.wrote({"metadata": {**there, "resourceVersion": str(api.version + 5)}})
        api.close_watches()
        await until(lambda: (maps.get(A) or {})["metadata"]["resourceVersion"] == there["resourceVersion"])
        await until(lambda: hidden.lists > lists)


async def test_a_comparison_that_is_answered_after_long_does_not_count(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server was behind when the watch was opened again, and has passed its position when it answers."""
    restore = api.snapshot()
    async with running(client) as (maps, _):
        api.put(f"{MAPS}/b")
        await until(lambda: B in maps)
        asked, answer = asyncio.Event(), asyncio.Event()

        async def hold_comparisons(request: Any) -> None:
            if request.query.get("limit") == "1":
                asked.set()
                await answer.wait()

        api.before = hold_comparisons
        restore()
        await asyncio.wait_for(asked.wait(), 5)
        for _ in range(5):
            api.put(f"{MAPS}/a")
        monkeypatch.setattr(timeline, "LONGEST_BLIND", 0.0)
        answer.set()
        await until(lambda: A in maps and B not in maps)
        monkeypatch.undo()


async def test_a_late_answer_to_a_write_proves_nothing(api: FakeApi, client: Client) -> None:
    async with running(client) as (maps, _):
        written = await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        api.put(f"{MAPS}/a")
        await until(lambda: maps.position == str(api.version))
        maps.wrote(written)
        assert client.timeline.returns == 0


async def test_after_long_without_contact_a_watch_is_not_resumed(
    api: FakeApi, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server may have passed the position: nothing that could be compared would show it."""
    restore = api.snapshot()
    async with running(client) as (maps, _):
        api.put(f"{MAPS}/b")
        await until(lambda: B in maps)
        monkeypatch.setattr(timeline, "LONGEST_BLIND", 0.0)
        restore()
        for _ in range(5):
            api.put(f"{MAPS}/a")
        await until(lambda: A in maps and B not in maps)
        monkeypatch.undo()


async def test_a_process_that_stood_still_does_not_resume(api: FakeApi, client: Client) -> None:
    restore = api.snapshot()
    async with running(client) as (maps, _):
        api.put(f"{MAPS}/b")
        await until(lambda: B in maps)
        restore()
        for _ in range(5):
            api.put(f"{MAPS}/a")
        client.timeline.stood_still(asyncio.get_running_loop().time())
        await until(lambda: A in maps and B not in maps)


async def test_every_object_is_told_again_after_versions_went_back(api: FakeApi, client: Client) -> None:
    """A controller may wait for what it wrote, which never was: it has to look again though nothing changed."""
    api.put(f"{MAPS}/a")
    async with running(client) as (maps, _):
        told = []
        maps.on_change(told.append)
        told.clear()
        maps.doubt()
        await until(lambda: told)
        assert [(change.key, change.old) for change in told] == [(A, maps.get(A))]


async def test_a_lease_that_is_older_than_it_was_makes_every_cache_list_anew(api: FakeApi, client: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/home/leases"
    async with running(client) as (maps, hidden):
        lease = LeaderLease(client, "butler", "home", "we")
        assert await lease._try(5)
        api.put(f"{MAPS}/b")
        lists = maps.lists, hidden.lists
        restore = api.snapshot()
        assert await lease._try(5)
        assert client.timeline.returns == 0
        api.objects[f"{leases}/butler"]["metadata"]["resourceVersion"] = "101"
        await lease._try(5)
        await until(lambda: maps.lists > lists[0] and hidden.lists > lists[1])
        del restore


async def test_a_standby_holds_its_view_against_the_server_before_it_leads(api: FakeApi, client: Client) -> None:
    restore = api.snapshot()
    lease = LeaderLease(client, "butler", "home", "we")
    operator = Operator(client, "test", lease=lease)
    cache = operator.cache(CONFIGMAPS)
    leading = asyncio.Event()

    async def work() -> None:
        leading.set()

    operator.add_task(work)
    other = {"holderIdentity": "other", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"}
    api.put("/apis/coordination.k8s.io/v1/namespaces/home/leases/butler", {"spec": other})
    running = asyncio.create_task(operator.run(handle_signals=False))
    await asyncio.wait_for(cache.wait_synced(), 5)
    api.put(f"{MAPS}/b")
    await until(lambda: B in cache)
    cache._contact_at -= 60  # it was long idle
    closed, api.close_watches = api.close_watches, lambda: None  # type: ignore[method-assign]
    restore()  # and its watch was not even ended
    api.close_watches = closed  # type: ignore[method-assign]
    await asyncio.wait_for(leading.wait(), 10)
    await until(lambda: B not in cache)
    assert client.timeline.returns == 1
    operator.stop()
    await running


@pytest.mark.parametrize(
    ("since_contact", "since_standstill", "may"),
    [
        (0.0, 1000.0, True),
        (LONGEST_BLIND - 1, 1000.0, True),
        (LONGEST_BLIND + 1, 1000.0, False),
        (2.0, 1.0, False),  # stood still after the last contact
        (1.0, 1.5, False),  # heard while it was waking up: may have been said before
        (1.0, 3.0, True),
    ],
)
def test_when_a_watch_may_be_resumed(since_contact: float, since_standstill: float, may: bool) -> None:
    assert may_resume(contact_at=100 - since_contact, stood_still_at=100 - since_standstill, now=100) is may


async def test_an_answer_that_is_ahead_of_the_watch_moves_nothing_but_its_object(api: FakeApi, client: Client) -> None:
    """Why others may put their answers into the cache that addresses are granted from: objects get ahead, the
    position does not, so nothing counts as seen that was not, and nothing vanishes that is there."""
    api.put(f"{MAPS}/a")
    async with running(client) as (maps, _):
        position = maps.position
        api.objects[f"{MAPS}/a"]["metadata"]["resourceVersion"] = "900"
        maps.wrote(api.objects[f"{MAPS}/a"])
        assert (maps.get(A) or {})["metadata"]["resourceVersion"] == "900"
        assert maps.position == position
        assert not await maps.reached("900", 0.05)
        assert len(maps) == 1
