"""Caches of kinds that may not be installed: no controller waits for them, and they fill when the kind appears."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from butler.api.objects import Key
from butler.kube.cache import LOOK_FOR_KIND
from butler.kube.client import Client
from butler.kube.controller import Controller
from butler.kube.operator import Operator
from butler.kube.resource import CONFIGMAPS, untyped
from butler.kube.retry import Backoff
from unit.kube.fake_api import FakeApi, status

GADGETS = untyped("example.com", "v1", "gadgets", "Gadget")
PATH = "/apis/example.com/v1/namespaces/default/gadgets"
QUICK = Backoff(0.005, cap=0.02)
OPTIONS: dict[str, Any] = {"required": False, "backoff": QUICK, "look_for_kind": QUICK}


class Kind:
    """Whether the server serves gadgets."""

    def __init__(self, api: FakeApi) -> None:
        self.code = 404
        self.asked = 0
        api.before = self._answer

    async def _answer(self, request: web.Request) -> web.Response | None:
        if "gadgets" not in request.path:
            return None
        self.asked += 1
        if self.code == 200:
            return None
        return web.json_response(status(self.code, "NotFound" if self.code == 404 else ""), status=self.code)


@asynccontextmanager
async def running(operator: Operator) -> AsyncIterator[None]:
    task = asyncio.create_task(operator.run(handle_signals=False))
    try:
        yield
    finally:
        operator.stop()
        await asyncio.wait_for(task, 10)


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_missing_kind_holds_no_reader_up_and_its_objects_are_told_once_it_is_there(
    api: FakeApi, client: Client
) -> None:
    kind, seen = Kind(api), list[Key]()

    async def reconcile(key: Key) -> None:
        seen.append(key)

    operator = Operator(client)
    maps, gadgets = operator.cache(CONFIGMAPS, backoff=QUICK), operator.cache(GADGETS, **OPTIONS)
    operator.add(Controller("test", reconcile).watches(maps).watches(gadgets))
    api.put("/api/v1/namespaces/default/configmaps/first")
    async with running(operator):
        await until(lambda: Key("default", "first") in seen)
        assert (operator.why_unready(), operator.why_unhealthy()) == ([], [])
        assert (gadgets.is_absent, gadgets.has_synced) == (True, False)
        api.put(f"{PATH}/early")
        kind.code = 200
        await until(lambda: Key("default", "early") in seen)
        assert (gadgets.is_absent, gadgets.has_synced, gadgets.last_error) == (False, True, "")
        api.put(f"{PATH}/late")
        await until(lambda: Key("default", "late") in seen)


async def test_a_kind_that_is_there_is_read_before_work_begins(api: FakeApi, client: Client) -> None:
    kind, known = Kind(api), list[int]()
    kind.code = 200
    api.put(f"{PATH}/a")
    api.put("/api/v1/namespaces/default/configmaps/first")

    async def reconcile(_: Key) -> None:
        known.append(len(gadgets))

    operator = Operator(client)
    gadgets = operator.cache(GADGETS, **OPTIONS)
    operator.add(Controller("test", reconcile).watches(operator.cache(CONFIGMAPS, backoff=QUICK)).watches(gadgets))
    async with running(operator):
        await until(lambda: known)
        assert known[0] == 1


async def test_a_kind_that_goes_leaves_what_is_known_and_health_alone(api: FakeApi, client: Client) -> None:
    kind = Kind(api)
    kind.code = 200
    api.put(f"{PATH}/kept")
    operator = Operator(client, blind_after=0.5)
    gadgets = operator.cache(GADGETS, **OPTIONS)
    async with running(operator):
        await until(lambda: gadgets.has_synced)
        kind.code = 404
        api.close_watches()
        await until(lambda: gadgets.is_absent)
        asked = kind.asked
        await until(lambda: kind.asked > asked + 3)
        assert Key("default", "kept") in gadgets
        assert operator.why_unhealthy() == []
        api.remove(f"{PATH}/kept")
        kind.code = 200
        await until(lambda: not gadgets.is_absent)
        assert Key("default", "kept") not in gadgets, "back again, it is listed anew"


async def test_a_missing_kind_is_told_once_and_asked_for_calmly(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    kind = Kind(api)
    operator = Operator(client)
    operator.cache(GADGETS, **OPTIONS)
    with caplog.at_level(logging.INFO, "butler.kube.cache"):
        async with running(operator):
            await until(lambda: kind.asked > 8)
    told = [record.getMessage() for record in caplog.records if "gadgets" in record.getMessage()]
    assert len(told) == 1
    assert "does not serve this kind" in told[0]
    assert (LOOK_FOR_KIND.first, LOOK_FOR_KIND.cap) == (1.0, 30.0)


async def test_an_optional_kind_that_cannot_be_read_holds_no_reader_up_either(api: FakeApi, client: Client) -> None:
    kind = Kind(api)
    kind.code = 403
    operator = Operator(client)
    gadgets = operator.cache(GADGETS, **OPTIONS)
    worked = asyncio.Event()

    async def work() -> None:
        worked.set()
        await asyncio.Event().wait()

    operator.add_task(work)
    async with running(operator):
        await asyncio.wait_for(worked.wait(), 10)
        assert operator.why_unready() == []
        assert (gadgets.is_absent, "403" in gadgets.last_error) == (False, True)


async def test_a_reader_that_needs_the_kind_makes_it_required_for_all(client: Client) -> None:
    operator = Operator(client)
    cache = operator.cache(GADGETS, required=False)
    assert operator.cache(GADGETS, required=False) is cache
    assert not cache.required
    assert operator.cache(GADGETS) is cache
    assert operator.cache(GADGETS, required=False).required
    assert operator.why_unready() == ["gadgets.example.com not read yet: listing"]
