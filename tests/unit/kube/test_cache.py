"""One cache and one misfortune at a time; random ones are in tests/local/runtime."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from butler.api.objects import Change, Key, version_of
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.metrics import Metrics
from butler.kube.resource import CONFIGMAPS, Resource
from butler.kube.retry import Backoff
from unit.kube.fake_api import FakeApi, refusal, status

MAPS = "/api/v1/namespaces/default/configmaps"
A, B = Key("default", "a"), Key("default", "b")
Json = dict[str, Any]


@asynccontextmanager
async def running(client: Client, **options: Any) -> AsyncIterator[tuple[Cache[Json], list[Change[Json]]]]:
    cache = Cache(client, CONFIGMAPS, **{"backoff": Backoff(0.005, cap=0.02), "rng": random.Random(1), **options})
    told: list[Change[Json]] = []
    cache.on_change(told.append)
    task = asyncio.create_task(cache.run())
    try:
        await asyncio.wait_for(cache.wait_synced(), 5)
        yield cache, told
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def summary(told: list[Change[Json]]) -> list[tuple[str, str, str]]:
    return [
        (
            change.key.name,
            version_of(change.old) if change.old else "",
            version_of(change.new) if change.new else "",
        )
        for change in told
    ]


async def test_the_first_list_and_later_changes_are_told(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (cache, told):
        api.put(f"{MAPS}/b")
        api.put(f"{MAPS}/a")
        api.remove(f"{MAPS}/b")
        await until(lambda: len(told) == 4)
        assert summary(told) == [("a", "", "101"), ("b", "", "102"), ("a", "101", "103"), ("b", "102", "")]
        assert [*map(version_of, cache.values())] == ["103"]
        assert (cache.position, len(cache), A in cache, B in cache) == ("104", 1, True, False)


async def test_a_watch_that_ends_resumes_where_it_was(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, told):
        api.put(f"{MAPS}/a")
        await until(lambda: len(told) == 1)
        api.close_watches()
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
    assert api.counts["GET"] == 1, "one list was enough"
    assert "resourceVersion=101" in [path for verb, path in api.requests if verb == "WATCH"][-1]


async def test_a_bookmark_moves_the_place_to_resume(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, _):
        api.version = 500
        api.bookmark()
        await until(lambda: cache.position == "500")
        api.compacted = 400
        api.close_watches()
        await until(lambda: api.counts["WATCH"] == 2)
    assert api.counts["GET"] == 1


async def test_deletions_in_the_gap_of_a_410_are_told(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    api.put(f"{MAPS}/b", {"data": {"x": "1"}})
    async with running(client) as (cache, told):
        await until(lambda: len(told) == 2)
        api.refuse.append(refusal(503, "ServiceUnavailable"))
        api.close_watches()
        api.remove(f"{MAPS}/a")
        api.put(f"{MAPS}/b", {"data": {"x": "2"}})
        api.compact()
        await until(lambda: A not in cache)
        assert summary(told)[2:] == [("a", "101", ""), ("b", "102", "104")]
    assert api.counts["GET"] == 2


async def test_an_error_line_with_410_lists_anew(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (cache, _):
        await until(lambda: api.counts["WATCH"] == 1)
        api.compact()
        del api.objects[f"{MAPS}/a"]  # a deletion that no watch will ever show
        api.send_line("ERROR", status(410, "Expired", "too old resource version"))
        await until(lambda: A not in cache)


async def test_an_object_recreated_in_the_gap_is_told_as_gone_and_new(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (_, told):
        api.refuse.append(refusal(500, "InternalError"))
        api.close_watches()
        api.remove(f"{MAPS}/a")
        api.put(f"{MAPS}/a")
        api.compact()
        await until(lambda: len(told) == 3)
        assert summary(told) == [("a", "", "101"), ("a", "101", ""), ("a", "", "103")]


async def test_repeated_lines_change_nothing(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, told):
        first = api.put(f"{MAPS}/a")
        old = dict(api.objects[f"{MAPS}/a"])
        api.put(f"{MAPS}/a", {"data": {"x": "new"}})
        api.send_line("MODIFIED", api.objects[f"{MAPS}/a"])
        api.send_line("MODIFIED", old)
        api.remove(f"{MAPS}/a")
        api.send_line("ADDED", old)
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
        assert summary(told) == [("a", "", "101"), ("a", "101", "102"), ("a", "102", ""), ("b", "", "104")]
        assert first["metadata"]["name"] == "a"


@pytest.mark.parametrize("late", ["MODIFIED", "ADDED", "DELETED"])
async def test_a_line_that_comes_too_late_and_is_news_lists_anew(api: FakeApi, client: Client, late: str) -> None:
    """The change to `a` was not reported when `b` came along, so the position in time that `b` gave was not true."""
    if late != "ADDED":
        api.put(f"{MAPS}/a")
    async with running(client) as (cache, told):
        await until(lambda: api.counts["WATCH"] == 1)
        changed = {"metadata": {"name": "a", "namespace": "default", "uid": "u-a", "resourceVersion": "150"}}
        api.version = 150
        if late == "DELETED":
            del api.objects[f"{MAPS}/a"]
        else:
            api.objects[f"{MAPS}/a"] = changed
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
        api.send_line(late, changed)
        await until(lambda: api.counts["GET"] == 2)
        await until(lambda: (A in cache) == (late != "DELETED") and told[-1].key == A)


async def test_a_watch_out_of_order_has_reached_nothing_until_all_is_listed_anew(api: FakeApi, client: Client) -> None:
    go_on = asyncio.Event()

    async def slow_list(request: web.Request) -> None:
        if not request.query.get("watch"):
            await go_on.wait()

    async with running(client) as (cache, _):
        await until(lambda: api.counts["WATCH"] == 1)
        api.before = slow_list
        passed_over = {"metadata": {"name": "a", "namespace": "default", "uid": "u-a", "resourceVersion": "150"}}
        api.version = 150
        api.objects[f"{MAPS}/a"] = passed_over
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
        api.send_line("ADDED", passed_over)
        await until(lambda: api.counts["GET"] == 2)
        assert not await cache.reached("150", 0.05)
        go_on.set()
        assert await cache.reached("150", 5)
        assert A in cache


async def test_a_half_open_connection_is_noticed(api: FakeApi, client: Client) -> None:
    stalled = asyncio.Event()

    async def stall(request: web.Request) -> None:
        if request.query.get("watch") and not stalled.is_set():
            stalled.set()
            await asyncio.sleep(3600)

    api.before = stall
    async with running(client, silence=0.2) as (cache, _):
        await stalled.wait()
        api.put(f"{MAPS}/a")
        await until(lambda: A in cache)
    assert cache.silent_for() < 5


async def test_a_server_that_is_refusing_for_a_while_is_followed_again(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, _):
        refusals = [refusal(403, "Forbidden"), refusal(404, "NotFound"), refusal(503, "ServiceUnavailable")]
        api.refuse.extend([*refusals, refusal(429, "TooManyRequests", retry_after=0), refusal(500, "InternalError")])
        api.close_watches()
        await until(lambda: not api.refuse)
        api.put(f"{MAPS}/a")
        await until(lambda: A in cache)
    assert api.counts["GET"] == 1
    assert cache.last_error == ""


async def test_a_server_restored_from_a_backup_is_believed(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (cache, _):
        api.version = 50
        api.compact()
        api.objects.clear()
        ahead = status(504, "Timeout", causes=[{"reason": "ResourceVersionTooLarge", "message": "Too large"}])
        api.refuse.extend([(504, ahead, {})] * 3)
        api.close_watches()
        await until(lambda: len(cache) == 0)
        assert cache.position == "50"


async def test_a_watch_that_is_always_closed_at_once_is_no_busy_loop(api: FakeApi, client: Client) -> None:
    async def close_at_once(request: web.Request) -> web.Response | None:
        return web.Response() if request.query.get("watch") else None

    api.before = close_at_once
    async with running(client, backoff=Backoff(0.05, cap=0.2)):
        await asyncio.sleep(1)
    assert api.counts["WATCH"] < 15


async def test_own_writes_are_seen_before_the_watch_shows_them(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, told):
        await until(lambda: api.counts["WATCH"] == 1)
        written = await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        cache.wrote(written)
        assert cache.get(A) == written
        assert await cache.reached(version_of(written), 2)
        assert len(told) == 1, "the echo on the watch is no second change"


async def test_a_late_answer_does_not_raise_the_dead(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, _):
        written = await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default")
        api.remove(f"{MAPS}/a")
        await until(lambda: cache.position == str(api.version))
        cache.wrote(written)
        assert A not in cache


async def test_a_write_made_while_a_list_is_under_way_is_not_forgotten_by_it(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, told):
        listing, go_on = asyncio.Event(), asyncio.Event()
        stale: Json = {"kind": "List", "metadata": {"resourceVersion": str(api.version)}, "items": []}

        async def slow_list(request: web.Request) -> web.Response | None:
            if request.method == "GET" and not request.query.get("watch"):
                listing.set()
                await go_on.wait()
                return web.json_response(stale)
            return None

        await until(lambda: api.counts["WATCH"] == 1)
        api.before = slow_list
        api.send_line("ERROR", status(410, "Expired"))
        await listing.wait()
        cache.wrote(await client.create(CONFIGMAPS, {"metadata": {"name": "a"}}, "default"))
        assert A in cache
        go_on.set()
        await until(lambda: api.counts["WATCH"] >= 2 and cache.position == str(api.version))
        assert A in cache
        assert summary(told) == [("a", "", "101")], "neither deleted nor told twice"


async def test_waiting_for_a_version_that_does_not_come_ends(api: FakeApi, client: Client) -> None:
    async with running(client) as (cache, _):
        assert not await cache.reached("9999", 0.1)


async def test_a_handler_that_fails_harms_no_other(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(client) as (cache, told):

        def broken(_: Change[Json]) -> None:
            raise KeyError("a bug")

        cache.on_change(broken)
        with caplog.at_level(logging.CRITICAL):
            api.put(f"{MAPS}/a")
            api.put(f"{MAPS}/b")
            await until(lambda: len(told) == 2)


async def test_a_handler_that_comes_late_is_told_of_what_is_there(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a")
    async with running(client) as (cache, _):
        told: list[Change[Json]] = []
        cache.on_change(told.append)
        assert summary(told) == [("a", "", "101")]


class Strict(msgspec.Struct):
    class Meta(msgspec.Struct, rename="camel"):
        name: str = ""
        namespace: str = ""
        uid: str = ""
        resource_version: str = ""

    metadata: Meta
    data: dict[str, int] = {}


async def test_an_object_that_does_not_fit_is_neither_dropped_nor_a_stop(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Resource("", "v1", "configmaps", "ConfigMap", Strict)
    metrics = Metrics()
    cache = Cache(client, strict, metrics=metrics, backoff=Backoff(0.005, cap=0.02))
    api.put(f"{MAPS}/a", {"data": {"x": 1}})
    with caplog.at_level(logging.CRITICAL):
        task = asyncio.create_task(cache.run())
        await cache.wait_synced()
        api.put(f"{MAPS}/a", {"data": {"x": "words"}})
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
        known = cache.get(A)
        assert known is not None
        assert known.data == {"x": 1}, "the last good version stays"
        assert set(cache.unreadable) == {A}
        api.compact()
        api.put(f"{MAPS}/c")
        api.compact()
        api.close_watches()
        await until(lambda: Key("default", "c") in cache)
        assert A in cache, "through a list as well"
        assert set(cache.unreadable) == {A}
        api.remove(f"{MAPS}/a")
        await until(lambda: A not in cache)
        assert not cache.unreadable
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert metrics.registry.get_sample_value(
        "butler_cache_undecodable_objects_total", {"resource": "configmaps"}
    ) == pytest.approx(2)


async def test_a_repeated_line_that_does_not_fit_moves_nothing_back(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    strict = Resource("", "v1", "configmaps", "ConfigMap", Strict)
    cache = Cache(client, strict, backoff=Backoff(0.005, cap=0.02))
    api.put(f"{MAPS}/a", {"data": {"x": "words"}})
    misfit = dict(api.objects[f"{MAPS}/a"])
    with caplog.at_level(logging.CRITICAL):
        task = asyncio.create_task(cache.run())
        await until(lambda: api.counts["WATCH"] == 1)
        api.put(f"{MAPS}/b")
        await until(lambda: B in cache)
        for line in (misfit, {"metadata": {"name": "c", "namespace": "default"}}):
            sent = asyncio.get_running_loop().time()
            api.send_line("MODIFIED", line)
            await until(lambda: cache.silent_for() < asyncio.get_running_loop().time() - sent)  # noqa: B023
        assert (cache.position, len(cache)) == ("102", 1)
        api.close_watches()
        await until(lambda: api.counts["WATCH"] == 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert "resourceVersion=102" in [path for verb, path in api.requests if verb == "WATCH"][-1]


async def test_a_cache_whose_index_fails_has_heard_nothing(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    cache = Cache(client, CONFIGMAPS, backoff=Backoff(0.005, cap=0.02))
    cache.index("broken", lambda obj: [obj["data"]["missing"]])
    api.put(f"{MAPS}/a")
    with caplog.at_level(logging.CRITICAL):
        task = asyncio.create_task(cache.run())
        await until(lambda: api.counts["GET"] >= 3)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert cache.silent_for() == float("inf")
    assert not cache.has_synced


async def test_managed_fields_are_not_kept_and_a_transform_trims_the_rest(api: FakeApi, client: Client) -> None:
    api.put(f"{MAPS}/a", {"metadata": {"managedFields": [{}]}, "data": {"big": "x"}})

    def trim(obj: Json) -> Json:
        return {"metadata": obj["metadata"]}

    async with running(client, transform=trim) as (cache, _):
        known = cache.get(A)
        assert known is not None
        assert set(known) == {"metadata"}
        assert "managedFields" not in known["metadata"]


async def test_selectors_namespace_and_page_size_reach_the_server(api: FakeApi, client: Client) -> None:
    options = {"namespace": "default", "label_selector": "a=b", "field_selector": "metadata.name=x", "page_size": 7}
    async with running(client, **options):
        await until(lambda: api.counts["WATCH"] == 1)
    for _, path in api.requests:
        assert path.startswith(MAPS)
        assert "labelSelector=a%3Db" in path
        assert "fieldSelector=metadata.name%3Dx" in path
    assert "limit=7" in api.requests[0][1]
    assert "allowWatchBookmarks=true" in api.requests[1][1]
