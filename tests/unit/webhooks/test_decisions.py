"""What admission reads before it decides: as old as it may be, as new as it must be, and no when it cannot."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from butler.api.codec import to_json
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.retry import Backoff
from butler.rules.allocation import holders
from butler.webhooks import review
from butler.webhooks.admission import ALLOCATIONS, POOLS, AdmissionWebhook
from unit.kube.fake_api import FakeApi
from unit.webhooks.given import allocation, body, granted, intents, pool, question

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.webhooks.review import AdmissionAnswer

HOME = "/apis/butler.butlerlabs.dev/v1alpha1/namespaces/home"
QUICK = Backoff(0.005, cap=0.02)
SMALLER = pool(cidr="10.40.0.0/25")
HIGH = granted("web", "10.40.0.200", "10.40.0.204")


class Desk:
    """Admission with caches that follow a small API server."""

    def __init__(self, api: FakeApi, client: Client, pools: Any, allocations: Any) -> None:
        self.api = api
        self.allocations = allocations
        self.tasks: list[asyncio.Task[None]] = []
        self.admission = AdmissionWebhook(client, pools, allocations, cache_patience=0.2, read_patience=1.0)

    async def ask(self, operation: str, new: Any = None, old: Any = None, **more: Any) -> AdmissionAnswer:
        return await self.admission.decide(review.read(body(question(operation, new, old, **more))))

    def deaf(self) -> None:
        """From now on the caches hear nothing."""
        for task in self.tasks:
            task.cancel()

    def lists(self, plural: str) -> int:
        return sum(1 for verb, path in self.api.requests if verb == "GET" and f"/{plural}?" in path)


@asynccontextmanager
async def desk(api: FakeApi, *, following: bool = True) -> AsyncIterator[Desk]:
    async with Client(Connection(api.url), attempts=1) as client:
        caches: list[Cache[Any]] = [Cache(client, POOLS, backoff=QUICK), Cache(client, ALLOCATIONS, backoff=QUICK)]
        tasks = [asyncio.create_task(cache.run()) for cache in caches if following]
        if following:
            for cache in caches:
                await cache.wait_synced()
        api.requests.clear()
        found = Desk(api, client, *caches)
        found.tasks = tasks
        yield found
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    server = FakeApi()
    await server.start()
    yield server
    await server.stop()


def stored(api: FakeApi, obj: Any) -> dict[str, Any]:
    path = f"{HOME}/{obj.definition.plural}/{obj.metadata.name}"
    api.put(path, to_json(obj))
    return api.objects[path]


def said(answer: AdmissionAnswer) -> str:
    return "" if answer.status is None else f"{answer.status['code']} {answer.status['message']}"


async def test_the_cache_decides_when_it_has_come_far_enough(api: FakeApi) -> None:
    seen = stored(api, HIGH)["metadata"]["resourceVersion"]
    async with desk(api) as at:
        answer = await at.ask(
            "UPDATE",
            pool(cidr="10.40.0.0/24", reserved=[{"cidr": "10.40.0.192/28"}]),
            pool(status={"allocationsSeen": seen}),
        )
        assert "web (10.40.0.200-10.40.0.204)" in said(answer)
        assert at.api.requests == [], "neither other pools nor allocations had to be read"


async def test_a_cache_that_lags_is_not_trusted(api: FakeApi) -> None:
    """The pool says that the allocations were seen at a version which the cache never heard of."""
    async with desk(api) as at:
        api.history.clear()

        async def mute(request: web.Request) -> web.Response | None:
            return web.Response(status=503) if "watch" in request.query else None

        api.before = mute
        api.close_watches()
        seen = stored(api, HIGH)["metadata"]["resourceVersion"]
        assert len(at.allocations) == 0
        answer = await at.ask("DELETE", old=pool(status={"allocationsSeen": seen}))
        assert "web (10.40.0.200-10.40.0.204)" in said(answer)
        assert at.lists("ipallocations") >= 1


async def test_a_cache_that_catches_up_in_time_is_waited_for(api: FakeApi) -> None:
    async with desk(api) as at:
        asked = asyncio.create_task(at.ask("DELETE", old=pool(status={"allocationsSeen": str(api.version + 1)})))
        await asyncio.sleep(0.02)
        stored(api, HIGH)
        assert "403 NetworkPool rack" in said(await asked)
        assert at.lists("ipallocations") == 0


async def test_before_the_caches_are_there_everything_is_read_afresh(api: FakeApi) -> None:
    stored(api, HIGH)
    async with desk(api, following=False) as at:
        assert "403 NetworkPool rack" in said(await at.ask("DELETE", old=pool()))


async def test_other_pools_are_always_read_afresh(api: FakeApi) -> None:
    async with desk(api, following=False) as at:
        assert (await at.ask("CREATE", pool())).allowed
        stored(api, pool("first"))
        assert "overlaps 10.40.0.0/24 of NetworkPool home/first" in said(await at.ask("CREATE", pool()))


async def test_what_cannot_be_read_is_refused_with_the_advice_to_try_again(api: FakeApi) -> None:
    async def down(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": "etcd is away", "code": 500}, status=500)

    async with desk(api, following=False) as at:
        api.before = down
        for answer in (
            await at.ask("CREATE", pool()),
            await at.ask("UPDATE", SMALLER, pool()),
            await at.ask("DELETE", old=pool()),
        ):
            assert said(answer).startswith("503 nothing was changed, because it could not be checked: ")
            assert "etcd is away" in said(answer)
            assert said(answer).endswith("; try again in a moment")
        assert (await at.ask("CREATE", allocation())).allowed, "a warning is not worth a failed write"


async def test_intents_of_the_stored_pool_count(api: FakeApi) -> None:
    old = pool(status=intents(("new", "10.40.0.200", "10.40.0.204")))
    async with desk(api) as at:
        assert "new (10.40.0.200-10.40.0.204, being granted)" in said(await at.ask("UPDATE", SMALLER, old))
        assert "new (10.40.0.200-10.40.0.204, being granted)" in said(await at.ask("DELETE", old=old))


async def test_what_is_on_its_way_out_or_unchanged_is_never_refused(api: FakeApi) -> None:
    """Also when it makes no sense at all, and without reading anything."""
    stored(api, HIGH)
    leaving = to_json(pool(cidr="x"))
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    broken = {"kind": "NetworkPool", "metadata": {"name": "rack", "namespace": "home"}, "spec": {"cidr": 5}}
    labelled = {**broken, "metadata": {"name": "rack", "namespace": "home", "labels": {"a": "b"}}}
    async with desk(api) as at:
        assert (await at.ask("UPDATE", leaving, pool())).allowed
        assert (await at.ask("UPDATE", labelled, broken)).allowed
        assert (await at.ask("DELETE", old=leaving)).allowed
        assert (await at.ask("UPDATE", SMALLER, pool(), subResource="status")).allowed
        assert at.api.requests == []


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"operation": "CREATE", "new": pool(), "object": None}, "came without its object"),
        ({"operation": "UPDATE", "new": pool(), "oldObject": None}, "came without its oldObject"),
        ({"operation": "DELETE", "new": pool(), "oldObject": None}, "came without its oldObject"),
        (
            {"operation": "CREATE", "new": pool(), "object": {"kind": "NetworkPool"}},
            "missing required field `metadata`",
        ),
        ({"operation": "CREATE", "new": pool(), "object": []}, "Expected `object`, got `array`"),
        ({"operation": "CREATE", "new": allocation(), "object": {"spec": 5}}, "cannot be read as a IPAllocation"),
        ({"operation": "CREATE", "new": pool(), "resource": {"resource": "pods"}}, "asked about pods, which it has no"),
    ],
)
async def test_what_cannot_be_understood_is_refused(api: FakeApi, asked: dict[str, Any], why: str) -> None:
    async with desk(api, following=False) as at:
        answer = await at.ask(**asked)
        assert said(answer).startswith("400 ")
        assert why in said(answer)


async def test_operations_without_rules_are_let_pass(api: FakeApi) -> None:
    async with desk(api, following=False) as at:
        assert (await at.ask("CONNECT", pool())).allowed
        assert (await at.ask("UPDATE", allocation(), allocation())).allowed
        assert (await at.ask("DELETE", old=allocation())).allowed


async def test_a_pool_that_the_cache_does_not_know_yet_is_looked_up_before_anyone_is_warned(api: FakeApi) -> None:
    async with desk(api, following=False) as at:
        (warning,) = (await at.ask("CREATE", allocation())).warnings
        assert warning.startswith("there is no NetworkPool rack in namespace home")
        stored(api, pool())
        assert (await at.ask("CREATE", allocation())).warnings == ()


async def test_a_pool_may_go_once_nothing_of_it_is_in_use(api: FakeApi) -> None:
    async with desk(api) as at:
        assert (await at.ask("DELETE", old=pool())).allowed


# Pools that overlap.


async def test_a_pool_that_overlaps_one_in_the_cache_is_refused_only_if_that_one_is_still_there(api: FakeApi) -> None:
    stored(api, pool("first"))
    wide = pool("wide", "10.40.0.0/16")
    async with desk(api) as at:
        assert "overlaps 10.40.0.0/24 of NetworkPool home/first" in said(await at.ask("CREATE", wide))
        at.deaf()
        api.remove(f"{HOME}/networkpools/first")
        assert (await at.ask("CREATE", wide)).allowed


async def test_a_pool_that_was_admitted_a_moment_ago_counts_before_the_cache_shows_it(api: FakeApi) -> None:
    async with desk(api) as at:
        at.deaf()
        assert (await at.ask("CREATE", pool("first"))).allowed
        stored(api, pool("first"))
        assert "overlaps 10.40.0.0/24 of NetworkPool home/first" in said(await at.ask("CREATE", pool("second")))


async def test_an_edit_that_was_admitted_a_moment_ago_counts_before_the_cache_shows_it(api: FakeApi) -> None:
    stored(api, pool("first", "10.50.0.0/24"))
    async with desk(api) as at:
        at.deaf()
        assert (await at.ask("UPDATE", pool("first"), pool("first", "10.50.0.0/24"))).allowed
        stored(api, pool("first"))
        assert "overlaps 10.40.0.0/24 of NetworkPool home/first" in said(await at.ask("CREATE", pool("second")))


async def test_a_pool_that_was_admitted_and_never_stored_is_in_no_others_way(api: FakeApi) -> None:
    """A dry run, or another webhook refused it."""
    async with desk(api) as at:
        assert (await at.ask("CREATE", pool("first"))).allowed
        assert (await at.ask("CREATE", pool("second"))).allowed


async def test_many_pools_in_the_way_are_listed_once(api: FakeApi) -> None:
    for number in range(20):
        stored(api, pool(f"p{number:02}", f"10.40.{number}.0/24"))
    async with desk(api) as at:
        answer = said(await at.ask("CREATE", pool("wide", "10.40.0.0/16")))
        assert "10.40.0.0/24 of NetworkPool home/p00" in answer
        assert "and 17 more pools" in answer
        assert len(at.api.requests) == 1


# What it costs, counted.


@pytest.mark.parametrize("count", [10, 200])
async def test_a_new_pool_costs_no_read_however_many_there_are(api: FakeApi, count: int) -> None:
    for number in range(count):
        stored(api, pool(f"p{number}", f"10.41.{number}.0/24"))
    async with desk(api) as at:
        assert (await at.ask("CREATE", pool())).allowed
        assert at.api.requests == []


@pytest.mark.parametrize("count", [10, 200])
async def test_a_pinned_request_looks_at_those_who_hold_its_addresses_only(
    api: FakeApi, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its warning is worth an index, not a look at every allocation there is."""
    stored(api, pool())
    for number in range(count):
        stored(api, granted(f"a{number}", f"10.40.0.{number}", f"10.40.0.{number}"))
    looked: list[str] = []
    held = holders._held

    def counted(name: str, *more: Any) -> Any:
        looked.append(name)
        return held(name, *more)

    pinned = allocation("web", pinnedRange={"startAddress": "10.40.0.8", "endAddress": "10.40.0.9"})
    async with desk(api) as at:
        monkeypatch.setattr(holders, "_held", counted)
        (warning,) = (await at.ask("CREATE", pinned)).warnings
        assert "10.40.0.8 is held by a8 and more of it by a9" in warning
        assert looked == ["a8", "a9"]
        assert (await at.ask("CREATE", allocation("big", count=1000))).warnings
        assert looked == ["a8", "a9"]


async def test_an_edit_looks_at_the_allocations_of_its_pool_only(api: FakeApi) -> None:
    seen = stored(api, HIGH)["metadata"]["resourceVersion"]
    stored(api, granted("other", "10.40.0.201", "10.40.0.201", of="other"))
    async with desk(api) as at:
        found = await at.admission._allocations_for(pool(status={"allocationsSeen": seen}))
        assert [item.metadata.name for item in found] == ["web"]
