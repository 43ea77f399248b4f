"""One process of controllers: its probes, its signals, its orderly end."""

import asyncio
import logging
import os
import signal
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from butler.api.objects import Key
from butler.kube.client import Client
from butler.kube.controller import Controller
from butler.kube.lease import LeaderLease, LeaseTerms
from butler.kube.operator import Operator
from butler.kube.resource import CONFIGMAPS
from butler.kube.retry import Backoff
from unit.kube.fake_api import FakeApi

MAPS = "/api/v1/namespaces/default/configmaps"
QUICK = Backoff(0.005, cap=0.02)


async def ask(operator: Operator, path: str) -> tuple[int, str]:
    assert operator.address is not None
    host, port = operator.address
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}") as answer:
        return answer.status, await answer.text()


async def until(condition: Any) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_caches_are_shared_by_kind_and_scope(client: Client) -> None:
    operator = Operator(client)
    assert operator.cache(CONFIGMAPS) is operator.cache(CONFIGMAPS)
    assert operator.cache(CONFIGMAPS) is not operator.cache(CONFIGMAPS, namespace="default")


async def test_options_that_a_shared_cache_cannot_honour_are_refused(client: Client) -> None:
    operator = Operator(client)
    cache = operator.cache(CONFIGMAPS, page_size=7)
    assert operator.cache(CONFIGMAPS) is operator.cache(CONFIGMAPS, page_size=7) is cache
    with pytest.raises(ValueError, match="configmaps is there already, with other options"):
        operator.cache(CONFIGMAPS, page_size=8)


async def test_an_operator_works_shows_it_and_stops_on_a_signal(api: FakeApi, client: Client) -> None:
    looks: list[Key] = []

    async def reconcile(key: Key) -> None:
        looks.append(key)

    operator = Operator(client, "test", port=0)
    cache = operator.cache(CONFIGMAPS, backoff=QUICK)
    operator.add(Controller("maps", reconcile, metrics=operator.metrics).watches(cache))
    task = asyncio.create_task(operator.run())
    await until(lambda: operator.address)
    assert operator.address is not None
    assert operator.address[0] == "127.0.0.1"
    api.put(f"{MAPS}/a")
    await until(lambda: looks)
    assert await ask(operator, "/healthz") == (200, "ok")
    assert await ask(operator, "/readyz") == (200, "ok")
    _, text = await ask(operator, "/metrics")
    assert 'controller_runtime_reconcile_total{controller="maps",result="success"}' in text
    assert "butler_event_loop_lag_seconds" in text
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(task, 5)


async def test_it_is_not_ready_before_its_caches_are(api: FakeApi, client: Client) -> None:
    hold = asyncio.Event()

    async def wait(_: web.Request) -> None:
        await hold.wait()

    api.before = wait
    operator = Operator(client, port=0)
    operator.cache(CONFIGMAPS, backoff=QUICK)
    task = asyncio.create_task(operator.run(handle_signals=False))
    await until(lambda: operator.address)
    code, text = await ask(operator, "/readyz")
    assert (code, "configmaps not read yet" in text) == (503, True)
    assert (await ask(operator, "/healthz"))[0] == 200, "slow is not dead"
    assert 'butler_cache_silent_seconds{resource="configmaps"} +Inf' in (await ask(operator, "/metrics"))[1]
    hold.set()
    await until(lambda: not operator.why_unready())
    operator.stop()
    await asyncio.wait_for(task, 5)


async def test_a_blind_operator_is_unhealthy_and_recovers(api: FakeApi, client: Client) -> None:
    operator = Operator(client, port=0, blind_after=0.3)
    operator.cache(CONFIGMAPS, backoff=QUICK, silence=0.1)
    task = asyncio.create_task(operator.run(handle_signals=False))
    await until(lambda: operator.address and not operator.why_unready())

    async def stall(_: web.Request) -> None:
        await asyncio.sleep(3600)

    api.before = stall
    api.close_watches()
    await until(operator.why_unhealthy)
    code, text = await ask(operator, "/healthz")
    assert (code, "nothing heard about configmaps" in text) == (503, True)
    _, text = await ask(operator, "/metrics")
    silent = next(line for line in text.splitlines() if line.startswith("butler_cache_silent_seconds{"))
    assert float(silent.split()[-1]) > 0.3
    api.before = None
    await until(lambda: not operator.why_unhealthy())
    operator.stop()
    await asyncio.wait_for(task, 5)


async def test_the_end_comes_in_order(api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture) -> None:
    """Reconciles finish, then the lease is handed on, then events are flushed; unready all the while."""
    story: list[str] = []
    started = asyncio.Event()
    lease = LeaderLease(client, "test", "default", "me", terms=LeaseTerms(3, 2, 0.5))
    operator = Operator(client, "test", lease=lease, port=0)
    cache = operator.cache(CONFIGMAPS, backoff=QUICK)
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases/test"

    async def reconcile(_: Key) -> None:
        started.set()
        await asyncio.sleep(0.4)
        story.append("reconciled")
        operator.events.record(cache.values()[0], CONFIGMAPS, "Stopped", "in good order")

    async def look(request: web.Request) -> None:
        if request.method == "PATCH" and "/leases/" in request.path:
            story.append("released")
        if "/events" in request.path:
            story.append("event")

    api.before = look
    api.put(f"{MAPS}/a")
    operator.add(Controller("maps", reconcile).watches(cache))
    with caplog.at_level(logging.CRITICAL):
        task = asyncio.create_task(operator.run(handle_signals=False))
        await asyncio.wait_for(started.wait(), 5)
        assert api.objects[leases]["spec"]["holderIdentity"] == "me"
        operator.stop()
        await asyncio.sleep(0.05)
        assert (await ask(operator, "/readyz")) == (503, "stopping")
        await asyncio.wait_for(task, 5)
    assert story[0] == "reconciled"
    assert set(story) == {"reconciled", "released", "event"}
    assert api.objects[leases]["spec"]["holderIdentity"] == ""


async def test_work_stops_at_once_when_the_lease_is_lost_and_starts_afresh_when_won(
    api: FakeApi, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    looks: list[Key] = []
    cut_off = asyncio.Event()

    async def reconcile(key: Key) -> None:
        looks.append(key)
        if len(looks) == 1:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                cut_off.set()
                raise

    lease = LeaderLease(client, "test", "default", "me", terms=LeaseTerms(0.6, 0.4, 0.1))
    operator = Operator(client, "test", lease=lease)
    cache = operator.cache(CONFIGMAPS, backoff=QUICK)
    operator.add(Controller("maps", reconcile).watches(cache))
    api.put(f"{MAPS}/a")
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/test"
    with caplog.at_level(logging.CRITICAL):
        task = asyncio.create_task(operator.run(handle_signals=False))
        await until(lambda: looks)
        stolen = api.objects[path]
        api.put(path, {**stolen, "spec": {**stolen["spec"], "holderIdentity": "thief"}})
        await asyncio.wait_for(cut_off.wait(), 2)
        await until(lambda: len(looks) == 2)
        assert api.objects[path]["spec"]["holderIdentity"] == "me"
        operator.stop()
        await asyncio.wait_for(task, 5)


async def test_a_side_task_that_breaks_ends_the_process_loudly(client: Client) -> None:
    operator = Operator(client, "test")

    async def broken() -> None:
        raise KeyError("a bug")

    operator.add_task(broken)
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(operator.run(handle_signals=False), 5)


async def test_a_service_runs_from_start_to_stop_leading_or_not(api: FakeApi, client: Client) -> None:
    """Beside controllers that wait for a lease another process holds; it ends after them and before the caches."""
    story: list[str] = []
    busy = ["starting"]
    api.put("/apis/coordination.k8s.io/v1/namespaces/default/leases/test", held_by("another"))
    lease = LeaderLease(client, "test", "default", "me", terms=LeaseTerms(3, 2, 0.5))
    operator = Operator(client, "test", lease=lease)
    cache = operator.cache(CONFIGMAPS, backoff=QUICK)

    async def serve() -> None:
        story.append("serving")
        try:
            await asyncio.Event().wait()
        finally:
            api.put(f"{MAPS}/last")
            await until(lambda: Key("default", "last") in cache)
            story.append("ended while the caches still followed")

    async def lead() -> None:
        story.append("leading")

    operator.add_service(serve, why_unready=lambda: busy[0])
    operator.add_task(lead)
    task = asyncio.create_task(operator.run(handle_signals=False))
    await until(lambda: story and cache.has_synced)
    assert operator.why_unready() == ["starting"]
    busy[0] = ""
    assert operator.why_unready() == []
    operator.stop()
    await asyncio.wait_for(task, 5)
    assert story == ["serving", "ended while the caches still followed"]


async def test_a_service_that_breaks_ends_the_process_loudly(client: Client) -> None:
    operator = Operator(client, "test")

    async def broken() -> None:
        raise KeyError("a bug")

    operator.add_service(broken)
    with pytest.raises(KeyError, match="a bug"):
        await asyncio.wait_for(operator.run(handle_signals=False), 5)


def held_by(name: str) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {"spec": {"holderIdentity": name, "leaseDurationSeconds": 60, "acquireTime": now, "renewTime": now}}
