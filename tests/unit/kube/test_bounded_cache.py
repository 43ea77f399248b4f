"""A cache of a server that is not ours to trust: what does not fit is a failure, and what was known stays."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from butler.kube.cache import Bounds, Cache
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.gate import Gate
from butler.kube.resource import CONFIGMAPS, Resource
from butler.kube.retry import Allowance, Backoff
from unit.kube.fake_api import FakeApi

MAPS = "/api/v1/namespaces/default/configmaps"
Json = dict[str, Any]


class Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class Widget(msgspec.Struct):
    metadata: Meta
    size: int = 0


WIDGETS = Resource("", "v1", "configmaps", "ConfigMap", Widget)


@asynccontextmanager
async def running(client: Client, resource: Resource[Any] = CONFIGMAPS, **options: Any) -> AsyncIterator[Cache[Any]]:
    options = {"bounds": Bounds(3, steady=0), "backoff": Backoff(0.005, cap=0.02), **options}
    cache = Cache(client, resource, **options)
    task = asyncio.create_task(cache.run())
    try:
        yield cache
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def put(api: FakeApi, *names: str, **body: Any) -> None:
    for name in names:
        api.put(f"{MAPS}/{name}", body)


async def test_a_list_with_more_objects_than_allowed_is_a_failure(api: FakeApi, client: Client) -> None:
    put(api, "a", "b", "c", "d")
    async with running(client) as cache:
        await until(lambda: cache.failures > 1)
        assert "more than 3 items" in cache.last_error
        assert not cache.has_synced
        api.remove(f"{MAPS}/d")
        await until(lambda: cache.has_synced)
        assert (len(cache), cache.failures, cache.last_error) == (3, 0, "")


async def test_a_watch_that_brings_more_than_allowed_is_a_failure_and_keeps_what_was_known(
    api: FakeApi, client: Client
) -> None:
    put(api, "a", "b", "c")
    async with running(client) as cache:
        await until(lambda: cache.has_synced)
        put(api, "d")
        await until(lambda: cache.failures > 1)
        assert sorted(value["metadata"]["name"] for value in cache.values()) == ["a", "b", "c"]
        api.remove(f"{MAPS}/a")
        await until(lambda: not cache.failures)
        await until(lambda: sorted(value["metadata"]["name"] for value in cache.values()) == ["b", "c", "d"])


async def test_a_list_that_takes_for_ever_is_a_failure(api: FakeApi, client: Client) -> None:
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(0.02)
        item = {"metadata": {"name": "a", "namespace": "default", "resourceVersion": "1"}}
        return web.json_response({"metadata": {"resourceVersion": "1", "continue": "more"}, "items": [item]})

    api.before = slow
    async with running(client, bounds=Bounds(1_000_000, list_seconds=0.2)) as cache:
        await until(lambda: cache.failures > 1)
        assert "no end" in cache.last_error


async def test_an_object_of_the_wrong_shape_is_a_failure_until_it_is_put_right(api: FakeApi, client: Client) -> None:
    """For servers that are not trusted, what is kept of unreadable objects must not grow, nor be logged one by one."""
    put(api, "a", size=1)
    async with running(client, WIDGETS) as cache:
        await until(lambda: cache.has_synced)
        put(api, "a", size="large")
        await until(lambda: cache.failures > 1)
        assert [value.size for value in cache.values()] == [1]
        assert not cache.unreadable
        put(api, "a", size=2)
        await until(lambda: [value.size for value in cache.values()] == [2])


@pytest.mark.parametrize(
    "line",
    [b"7", b'{"type":"ADDED","object":7}', b'{"type":"BOOKMARK","object":7}', b'{"type":"ERROR","object":7}', b"{",
     b'{"type":"ADDED","object":' + b"[" * 50_000 + b"]" * 50_000 + b"}", b'{"type":7}', b"\xff"],
)  # fmt: skip
async def test_a_line_that_is_no_event_is_a_failure(api: FakeApi, client: Client, line: bytes) -> None:
    async def broken(request: web.Request) -> web.Response | None:
        return web.Response(body=line + b"\n") if "watch" in request.query else None

    put(api, "a")
    api.before = broken
    async with running(client, bounds=Bounds(3)) as cache:
        await until(lambda: cache.cut_short > 2)
        assert len(cache) == 1


async def test_a_watch_that_trickles_without_saying_anything_is_taken_for_dead(api: FakeApi, client: Client) -> None:
    async def trickle(request: web.Request) -> web.StreamResponse | None:
        if "watch" not in request.query:
            return None
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    api.before = trickle
    async with running(client, silence=0.2) as cache:
        await until(lambda: api.counts["WATCH"] > 2)
        assert cache.has_synced


async def test_a_server_that_ends_watches_at_once_is_asked_less_and_less(api: FakeApi, client: Client) -> None:
    """Also when each of them brings something: it must not be listed without a pause for ever."""

    async def end(request: web.Request) -> web.Response | None:
        if "watch" not in request.query:
            return None
        gone = b'{"type":"ERROR","object":{"status":"Failure","reason":"Expired","code":410}}\n'
        return web.Response(body=b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"101"}}}\n' + gone)

    api.before = end
    async with running(client, bounds=Bounds(3, steady=60), backoff=Backoff(0.01, cap=3600)) as cache:
        await until(lambda: cache.cut_short >= 4)
        asked = api.counts["GET"]
        await asyncio.sleep(0.1)
        assert api.counts["GET"] - asked <= 2, "by now it waits for longer than the test"


async def test_another_client_takes_over_and_only_differences_are_told(api: FakeApi, client: Client) -> None:
    put(api, "a", "b")
    told: list[str] = []
    other = FakeApi()
    await other.start()
    try:
        cache = Cache(client, CONFIGMAPS, backoff=Backoff(0.005, cap=0.02))
        cache.on_change(lambda change: told.append(f"{'-' if change.new is None else '+'}{change.key.name}"))
        task = asyncio.create_task(cache.run())
        await until(lambda: cache.has_synced)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        told.clear()
        other.objects = {f"{MAPS}/a": api.objects[f"{MAPS}/a"]}
        async with Client(Connection(other.url)) as second:
            cache.use(second)
            assert not cache.has_synced
            assert len(cache) == 2, "until the list is there, what was known stays"
            task = asyncio.create_task(cache.run())
            await until(lambda: cache.has_synced)
            assert told == ["-b"]
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
    finally:
        await other.stop()


async def test_caches_go_through_the_gate_one_after_the_other(api: FakeApi, client: Client) -> None:
    at_once = most = 0

    async def count(_: web.Request) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    api.before = count
    gate = Gate(places=2, hold=3600)
    caches = [Cache(client, CONFIGMAPS, gate=gate) for _ in range(10)]
    tasks = [asyncio.create_task(cache.run()) for cache in caches]
    await until(lambda: api.counts["WATCH"] == 10)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most <= 2


def test_an_allowance_lets_through_what_was_saved_and_then_so_much_a_second() -> None:
    allowance = Allowance(rate=10, advance=100)
    assert allowance.take(100, now=5) == 0
    assert allowance.take(50, now=5) == 5
    assert allowance.take(0, now=10) == 0
    assert allowance.take(10, now=1000) == 0
    assert allowance.left == 90, "no more is saved than the advance"


async def test_a_watch_that_talks_too_fast_is_read_more_slowly(api: FakeApi) -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"101"}}}\n'
        while True:
            await response.write(line * 1000)

    heard = 0

    async def listen(client: Client) -> None:
        nonlocal heard
        async for _ in client.watch(CONFIGMAPS, "default"):
            heard += 1

    api.before = flood
    async with Client(Connection(api.url), max_answer=64 * 1024, stream_rate=1024 * 1024) as client:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(listen(client), 1)
    assert 0 < heard < 20_000, "unbridled, it would be hundreds of thousands"
