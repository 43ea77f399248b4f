"""Passes of the allocator over pools, against a small API server over HTTP that misbehaves when a test says so."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from butler.api.codec import from_json, to_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.controllers.networkpool.controller import NetworkPoolController
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.kube import timeline
from butler.kube.cache import Cache
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.resource import CONFIGMAPS, resource_of
from butler.kube.retry import Backoff
from butler.rules.pool import outcomes
from butler.rules.pool.claims import CLAIMS, NetworkClaim, entry
from butler.rules.pool.settings import IpamSettings
from unit.controllers.networkpool.values import NAMESPACE, POOL, allocation, intent, pool
from unit.kube.fake_api import FakeApi, status

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.api.objects import Json

API = "/apis/butler.butlerlabs.dev/v1alpha1"
POOL_PATH = f"{API}/namespaces/{NAMESPACE}/networkpools/{POOL.name}"
ALLOCATION_PATHS = f"{API}/namespaces/{NAMESPACE}/ipallocations"
REQUEST_PATH = f"{ALLOCATION_PATHS}/web"
CLAIMS_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CLAIMS}"


class Events:
    """The test does not read them."""

    def record(self, *_: object) -> None:
        pass


class Desk:
    """The allocator at work, and the server that it works on."""

    def __init__(self, api: FakeApi) -> None:
        self.api = api
        self.caches: dict[str, Cache[Any]] = {}
        self.looks: Any = None

    def put(self, path: str, obj: Any) -> None:
        body = to_json(obj)
        body["metadata"].pop("resourceVersion")
        self.api.put(path, body)

    def status(self, path: str = REQUEST_PATH) -> Json:
        found: Json = self.api.objects[path].get("status", {})
        return found

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(20):
                while not holds():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail(f"never came true: {what}")

    async def granted(self, path: str = REQUEST_PATH) -> None:
        await self.until(lambda: self.status(path).get("phase") == "Allocated", "the request is granted")

    @asynccontextmanager
    async def at_work(self, namespace: str = "") -> AsyncIterator[None]:
        async with Client(Connection(self.api.url), backoff=Backoff(0.005, cap=0.02)) as client:
            home = f"metadata.name={CLAIMS}"
            pools = Cache(client, resource_of(NetworkPool), namespace=namespace)
            allocations = Cache(client, resource_of(IPAllocation), namespace=namespace)
            tenants = Cache(client, resource_of(TenantCluster))
            claims = Cache(client, CONFIGMAPS, namespace=NAMESPACE, field_selector=home)
            self.caches = {"pools": pools, "allocations": allocations}
            settings = IpamSettings(namespace=namespace, home_namespace=NAMESPACE)
            metrics, events = IpamMetrics(CollectorRegistry()), cast("Any", Events())
            providers = Cache(client, resource_of(ProviderConfig))
            caches = (pools, allocations, tenants, providers, claims)
            controller = NetworkPoolController(
                client, *caches, events, metrics, settings, lambda: datetime.now(UTC).replace(microsecond=0), self.looks
            ).controller()
            tasks = [asyncio.create_task(cache.run()) for cache in caches]
            tasks.append(asyncio.create_task(controller.run(lambda: 0.0)))
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    api = FakeApi()
    await api.start()
    yield Desk(api)
    await api.stop()


def refusing(times: int, part: str, text: str = "") -> Callable[[web.Request], Any]:
    """Answer so many writes of a path with a conflict that is none, and count down."""
    left = [times]

    async def before(request: web.Request) -> web.Response | None:
        if request.method == "PATCH" and part in request.path and left[0] and text in await request.text():
            left[0] -= 1
            return web.json_response(status(409, "Conflict"), status=409)
        return None

    return before


async def test_a_grant_that_met_conflicts_without_cause_is_carried_out_all_the_same(desk: Desk) -> None:
    desk.put(POOL_PATH, pool())
    desk.put(REQUEST_PATH, allocation("web"))
    desk.api.before = refusing(3, "/ipallocations/")
    async with desk.at_work():
        await desk.granted()


async def test_a_refusal_that_met_conflicts_without_cause_is_written_all_the_same(desk: Desk) -> None:
    desk.put(POOL_PATH, pool())
    desk.put(REQUEST_PATH, allocation("web", 500))
    desk.api.before = refusing(3, "/ipallocations/")
    async with desk.at_work():
        await desk.until(lambda: desk.status().get("phase") == "Failed", "the request is refused")


async def test_a_reserve_that_met_conflicts_without_cause_is_made_again_but_not_in_a_frenzy(desk: Desk) -> None:
    desk.put(POOL_PATH, pool())
    desk.put(REQUEST_PATH, allocation("web"))
    desk.api.before = refusing(6, "/networkpools/")
    async with desk.at_work():
        began = asyncio.get_running_loop().time()
        await desk.granted()
        assert asyncio.get_running_loop().time() - began > 0.2, "each attempt waits longer than the last"


async def test_a_grant_that_cannot_be_written_keeps_no_refusal_waiting(desk: Desk) -> None:
    async def before(request: web.Request) -> web.Response | None:
        mine = request.method == "PATCH" and "/ipallocations/cursed" in request.path
        return web.json_response(status(422, "Invalid", "some policy minds"), status=422) if mine else None

    desk.put(POOL_PATH, pool())
    desk.put(REQUEST_PATH, allocation("web", 500))
    desk.put(f"{ALLOCATION_PATHS}/cursed", allocation("cursed"))
    desk.api.before = before
    async with desk.at_work():
        await desk.until(lambda: desk.status().get("phase") == "Failed", "the request is refused")
        assert [item["name"] for item in desk.status(POOL_PATH)["intents"]] == ["cursed"], "its range is kept"


async def test_pools_of_other_namespaces_are_left_to_those_who_look_after_them(desk: Desk) -> None:
    foreign = Key("elsewhere", "theirs")
    desk.put(f"{API}/namespaces/elsewhere/networkpools/theirs", pool(name="theirs", cidr="10.9.0.0/24"))
    desk.api.put(CLAIMS_PATH, {"data": dict([entry(foreign, NetworkClaim("10.9.0.0/24", "p9", 1))])})
    desk.put(POOL_PATH, pool())
    desk.put(REQUEST_PATH, allocation("web"))
    async with desk.at_work(NAMESPACE):
        await desk.granted()
        await asyncio.sleep(0.5)
    assert not [path for verb, path in desk.api.requests if verb == "GET" and "/networkpools/theirs" in path]


async def test_beside_an_allocation_that_cannot_be_read_nothing_is_granted_or_forgotten(desk: Desk) -> None:
    """As after going back to an older Butler, which does not know a phase that the newer one wrote."""
    strange = to_json(allocation("strange", holds="10.0.0.1-10.0.0.4"))
    strange["status"]["phase"] = "Resting"
    promised = intent("strange", "10.0.0.1-10.0.0.4", uid="uid-101")
    desk.api.put(f"{ALLOCATION_PATHS}/strange", strange)
    desk.put(POOL_PATH, pool(claimed_cidr="10.0.0.0/24", intents=(promised,)))
    desk.put(REQUEST_PATH, allocation("web"))
    async with desk.at_work():
        await desk.until(lambda: desk.status().get("phase") == "Failed", "the request is refused")
        found = desk.status(POOL_PATH)
        (ready,) = (condition for condition in found["conditions"] if condition["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "AllocationUnreadable")
        assert "IPAllocation strange cannot be read" in ready["message"]
        assert [item["name"] for item in found["intents"]] == ["strange"]
        strange["status"]["phase"] = "Allocated"
        desk.api.put(f"{ALLOCATION_PATHS}/strange", strange)
        await desk.granted()
        assert desk.status()["startAddress"] == "10.0.0.5"


@pytest.mark.parametrize("start", ["10.0.0.1O", None], ids=["a letter", "none"])
async def test_after_a_restart_nothing_is_granted_beside_a_status_that_makes_no_sense(
    desk: Desk, start: str | None
) -> None:
    """The object can be decoded, and what it holds cannot be read: a new process must not take that for nothing."""
    strange = to_json(allocation("strange", holds="10.0.0.1-10.0.0.4"))
    strange["status"] |= {"startAddress": start}
    desk.api.put(f"{ALLOCATION_PATHS}/strange", strange)
    desk.put(POOL_PATH, pool(claimed_cidr="10.0.0.0/24"))
    desk.put(REQUEST_PATH, allocation("web"))
    async with desk.at_work():
        await desk.until(lambda: desk.status().get("phase") == "Failed", "the request is refused")
        (ready,) = (condition for condition in desk.status(POOL_PATH)["conditions"] if condition["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "AllocationUnreadable")
        assert "IPAllocation strange cannot be read" in ready["message"]
        strange["status"]["startAddress"] = "10.0.0.1"
        desk.api.put(f"{ALLOCATION_PATHS}/strange", strange)
        await desk.granted()
        assert desk.status()["startAddress"] == "10.0.0.5"


@pytest.mark.parametrize("exists", [True, False])
async def test_an_object_that_does_not_fit_stops_the_pool_that_it_names_and_no_other(desk: Desk, exists: bool) -> None:
    """Unless there is no such pool: then it is unknown which pool its addresses belong to."""
    strange = to_json(allocation("strange", holds="10.0.0.1-10.0.0.4"))
    strange["spec"]["poolRef"]["name"] = "another"
    strange["status"]["allocatedAt"] = "2026-02-15T10:00:30+24:00"
    desk.api.put(f"{ALLOCATION_PATHS}/strange", strange)
    desk.put(POOL_PATH, pool(claimed_cidr="10.0.0.0/24"))
    desk.put(REQUEST_PATH, allocation("web"))
    if exists:
        path = POOL_PATH.removesuffix(POOL.name) + "another"
        desk.put(path, pool(name="another", uid="p2", cidr="10.9.0.0/24"))
    async with desk.at_work():
        if exists:
            await desk.granted()
        else:
            await desk.until(lambda: desk.status().get("phase") == "Failed", "the request is refused")


async def test_what_a_pool_promised_in_a_version_that_was_lost_is_not_carried_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is restored between a reserve and its commit, and the allocations are listed before the pools are."""
    down, restored, listed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def before(request: web.Request) -> web.Response | None:
        commits = request.method == "PATCH" and "/ipallocations/" in request.path
        if (commits or down.is_set()) and not restored.is_set():
            return web.json_response(status(403, "Forbidden"), status=403)  # which no client repeats
        if request.method == "GET" and "/networkpools" in request.path and restored.is_set():
            await listed.wait()
        return None

    desk.api.before = before
    desk.put(POOL_PATH, pool())
    async with desk.at_work():
        await desk.until(lambda: bool(desk.status(POOL_PATH).get("totalIPs")), "the pool is ready")
        desk.put(REQUEST_PATH, allocation("web"))
        restore = desk.api.snapshot()
        await desk.until(lambda: bool(desk.status(POOL_PATH).get("intents")), "the range is reserved")
        monkeypatch.setattr(timeline, "LONGEST_BLIND", 0.0)
        caches = desk.caches.values()
        down.set()
        desk.api.close_watches()
        await desk.until(lambda: not any(cache.is_followed for cache in caches), "all watches are lost")
        await asyncio.sleep(0.3)  # no request outlives the server that it was sent to
        restore()
        restored.set()
        for _ in range(50):  # the server passes all that was seen of it
            desk.api.put(CLAIMS_PATH.replace(CLAIMS, "another"), {})
        lists = desk.caches["allocations"].lists
        await desk.until(lambda: desk.caches["allocations"].lists > lists, "the allocations are listed")
        await asyncio.sleep(1.5)
        assert not desk.status(POOL_PATH).get("intents")
        assert desk.status().get("phase") != "Allocated", "granted what the pool has not reserved"
        listed.set()
        monkeypatch.undo()
        await desk.granted()


# What it costs, counted.


@pytest.mark.parametrize("count", [16, 96])
async def test_pools_that_come_at_once_share_their_claims_and_wake_no_other_pool(desk: Desk, count: int) -> None:
    """Requests grow with the pools, and not faster: each pool is read and written once, the register by many."""
    paths = [f"{API}/namespaces/{NAMESPACE}/networkpools/p{number}" for number in range(count)]
    for number, path in enumerate(paths):
        desk.put(path, pool(name=f"p{number}", uid=f"p{number}", cidr=f"10.1.{number}.0/24"))

    def is_ready(path: str) -> bool:
        conditions = desk.status(path).get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    async with desk.at_work():
        await desk.until(lambda: all(is_ready(path) for path in paths), "all pools are ready")
        await asyncio.sleep(0.3)
    asked = Counter((verb, path.partition("?")[0].rpartition("/")[0]) for verb, path in desk.api.requests)
    of_pools = sum(number for (_, path), number in asked.items() if "/networkpools" in path)
    of_claims = sum(number for (_, path), number in asked.items() if path.endswith("/configmaps"))
    assert of_pools <= 2 * count + 4
    assert of_claims <= count / 4 + 8


async def test_requests_that_wait_are_not_refused_anew_with_every_change_of_their_pool(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding the words again is most of what a request that cannot be met costs."""
    desk.put(POOL_PATH, pool())
    paths = [f"{ALLOCATION_PATHS}/big-{number}" for number in range(30)]
    for number, path in enumerate(paths):
        desk.put(path, allocation(f"big-{number}", 500))
    refused: list[str] = []
    put = outcomes.refused

    def counted(asking: IPAllocation, *more: Any) -> Any:
        refused.append(asking.metadata.name)
        return put(asking, *more)

    monkeypatch.setattr(outcomes, "refused", counted)
    async with desk.at_work():
        await desk.until(lambda: all(desk.status(path).get("phase") == "Failed" for path in paths), "all are refused")
        before = len(refused)
        for number in range(5):
            path = f"{ALLOCATION_PATHS}/small-{number}"
            desk.put(path, allocation(f"small-{number}"))
            await desk.granted(path)
    assert len(refused) - before <= len(paths)


class Looks:
    """Whether the Services of all tenants have been looked at."""

    done = False

    def seconds_left(self) -> float:
        return 0.0 if self.done else 0.02


async def test_load_balancers_get_nothing_before_the_services_were_looked_at(desk: Desk) -> None:
    """What a restore took off the record may be in use; other pools do not wait for that."""
    desk.looks = Looks()
    other = POOL_PATH.replace(POOL.name, "other")
    desk.put(POOL_PATH, pool())
    desk.put(other, pool("10.9.0.0-10.9.0.15", cidr="10.9.0.0/24", name="other", uid="p2"))
    desk.put(REQUEST_PATH, allocation("web", type="loadbalancer"))
    node = f"{ALLOCATION_PATHS}/node"
    desk.put(node, allocation("node", of="other", type="nodes"))
    async with desk.at_work():
        await desk.granted(node)
        await asyncio.sleep(0.3)
        assert desk.status().get("phase", "Pending") == "Pending"
        assert not desk.api.objects[POOL_PATH]["status"].get("intents")
        desk.looks.done = True
        await desk.granted()


async def test_nor_does_a_pool_that_load_balancers_are_served_from_though_none_is_on_record(desk: Desk) -> None:
    """A restore may have lost the records of all that a pool granted to load balancers."""
    desk.looks = Looks()
    desk.put(POOL_PATH, pool())
    spec = {"provider": "local", "network": {"mode": "ipam", "poolRefs": [{"name": POOL.name}]}}
    desk.put(
        f"{API}/namespaces/{NAMESPACE}/providerconfigs/local",
        from_json(
            ProviderConfig,
            {"metadata": {"name": "local", "namespace": NAMESPACE, "resourceVersion": "1"}, "spec": spec},
        ),
    )
    desk.put(REQUEST_PATH, allocation("web", type="nodes"))
    async with desk.at_work():
        await desk.until(lambda: bool(desk.api.objects[POOL_PATH].get("status")), "the pool was looked at")
        await asyncio.sleep(0.3)
        assert desk.status().get("phase", "Pending") == "Pending"
        desk.looks.done = True
        await desk.granted()
