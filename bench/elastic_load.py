"""Run as a program: users of elastic tenants who create Services and see when each has its address.

    python bench/elastic_load.py KUBECONFIG HOME TEAM RATE SECONDS BATCH

First every tenant uses up what it has. Then Services that need more come at a steady rate over all tenants, then one
in each tenant at once, then many at once in one tenant, and at the end those of the last two waves go again, so that
Butler takes back what it gave. Watches alone tell what happened and when: on the management side one of the
allocations, and on each tenant one of its Services and one of MetalLB's pools. All are in this process, so that one
clock compares them and their processor time is not counted for another process.

Writes a line of JSON to standard output for each wave, and goes on when it reads a line. What does not get there
within PATIENCE is counted, not waited for.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import aiohttp  # noqa: E402 - after the path is set
import msgspec  # noqa: E402

from control_planes import ControlPlane  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Json = dict[str, Any]
PATIENCE = 120.0
OWN = "/apis/butler.butlerlabs.dev/v1alpha1"
POOLS = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools"
NAMESPACE = "default"


@dataclass(eq=False)
class Service:
    """One Service, and when what happened to it."""

    tenant: str
    name: str
    sent: float = 0.0
    acknowledged: float = 0.0
    shown: float | None = None
    address: str = ""
    deleted: float = 0.0


@dataclass(eq=False)
class Allocation:
    """One allocation of load-balancer addresses, and when it was first seen in which state."""

    tenant: str
    seen: dict[str, float] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    grown: bool = False


class Seen:
    """What the watches told."""

    def __init__(self) -> None:
        self.services: dict[tuple[str, str, str], Service] = {}
        self.allocations: dict[str, Allocation] = {}
        self.holder: dict[str, Allocation] = {}
        """By address: who was granted it last."""
        self.pooled: dict[str, set[str]] = {}
        self.published: dict[tuple[str, str], float] = {}
        self.withdrawn: dict[tuple[str, str], float] = {}
        self.moved: list[str] = []
        self.gaps = 0

    def take_service(self, tenant: str, kind: str, obj: Json, now: float) -> None:
        meta = obj["metadata"]
        if obj["spec"].get("type") != "LoadBalancer" or kind == "DELETED":
            return
        key = tenant, meta["namespace"], meta["name"]
        service = self.services.setdefault(key, Service(tenant, meta["name"]))
        ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
        address = ",".join(item["ip"] for item in ingress if item.get("ip"))
        if service.address and address != service.address:
            self.moved.append(f"{'/'.join(key)}: {service.address} to {address or 'none'}")
        if address and service.shown is None:
            service.shown = now
        service.address = address or service.address

    def take_pool(self, tenant: str, kind: str, obj: Json, now: float) -> None:
        if obj["metadata"]["name"] != "default-pool":
            return
        before = self.pooled.get(tenant, set())
        entries = () if kind == "DELETED" else obj["spec"].get("addresses") or ()
        after = {address for entry in entries for address in spelled_out(entry)}
        self.pooled[tenant] = after
        self.published.update({(tenant, text): now for text in after - before})
        self.withdrawn.update({(tenant, text): now for text in before - after})

    def take_allocation(self, _: str, kind: str, obj: Json, now: float) -> None:
        spec, status, meta = obj["spec"], obj.get("status") or {}, obj["metadata"]
        if spec["type"] != "loadbalancer" or kind == "DELETED":
            return
        found = self.allocations.setdefault(meta["uid"], Allocation(spec["tenantClusterRef"]["name"]))
        found.grown = (meta.get("labels") or {}).get("butler.butlerlabs.dev/allocation-role") == "growth"
        found.seen.setdefault("asked", now)
        if status.get("phase") == "Allocated":
            found.seen.setdefault("granted", now)
            found.addresses = tuple(status.get("addresses") or ())
            self.holder.update(dict.fromkeys(found.addresses, found))
        if status.get("phase") == "Released":
            found.seen.setdefault("released", now)
            return
        for mark, name in (("idleSince", "idle"), ("drainingSince", "draining")):
            if status.get(mark):
                found.seen.setdefault(name, now)
            else:
                found.seen.pop(name, None)  # it was needed after all


def spelled_out(entry: str) -> list[str]:
    """The addresses of `10.0.0.250-10.0.1.3`, as they are written; a pool of this benchmark has no other entries."""
    first, last = (int.from_bytes(map(int, part.split("."))) for part in entry.split("-"))
    return [".".join(map(str, number.to_bytes(4))) for number in range(first, last + 1)]


class Users:
    """All clients of the API servers, through one pool of connections."""

    def __init__(self, management: ControlPlane, session: aiohttp.ClientSession, scratch: Path) -> None:
        self._management = management
        self._session = session
        self._scratch = scratch
        self.tenants: dict[str, ControlPlane] = {}
        self.seen = Seen()
        self._watching: list[asyncio.Task[None]] = []

    async def send(self, plane: ControlPlane, method: str, path: str, body: Json | None = None) -> Json:
        async with self._session.request(
            method, plane.url + path, json=body, headers=plane.headers, ssl=plane.tls
        ) as answer:
            content = await answer.read()
            assert answer.status < 300, f"{method} {path}: {answer.status} {content[:300]!r}"
            return dict(msgspec.json.decode(content))

    async def find_tenants(self, team: str) -> None:
        """The way into each tenant that is Ready: the kubeconfig that Butler's status names."""
        listed = await self.send(self._management, "GET", f"{OWN}/namespaces/{team}/tenantclusters")
        for item in listed["items"]:
            status, name = item["status"], item["metadata"]["name"]
            if status.get("phase") != "Ready":
                continue
            path = f"/api/v1/namespaces/{status['tenantNamespace']}/secrets/{status['kubeconfigSecretRef']['name']}"
            secret = await self.send(self._management, "GET", path)
            folder = self._scratch / name
            folder.mkdir(mode=0o700)
            kubeconfig = folder / "kubeconfig"
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_bytes(base64.b64decode(secret["data"]["admin.conf"]))
            self.tenants[name] = ControlPlane.from_kubeconfig(name, kubeconfig, folder)

    async def follow(self, home: str) -> None:
        """Begin all watches; returns when everything that is there was seen."""
        begun: list[Awaitable[Any]] = []
        self._watch(begun, self._management, f"{OWN}/namespaces/{home}/ipallocations", self.seen.take_allocation)
        for plane in self.tenants.values():
            self._watch(begun, plane, "/api/v1/services", self.seen.take_service)
            self._watch(begun, plane, POOLS, self.seen.take_pool)
        await asyncio.gather(*begun)

    def _watch(
        self, begun: list[Awaitable[Any]], plane: ControlPlane, path: str, take: Callable[[str, str, Json, float], None]
    ) -> None:
        listed = asyncio.Event()
        self._watching.append(asyncio.create_task(self._keep_watching(plane, path, take, listed)))
        begun.append(listed.wait())

    async def _keep_watching(
        self, plane: ControlPlane, path: str, take: Callable[[str, str, Json, float], None], listed: asyncio.Event
    ) -> None:
        """List, watch, and list again when the watch ends: what is missed in between comes late, and is counted."""
        while True:
            try:
                found = await self.send(plane, "GET", path)
                for item in found["items"]:
                    take(plane.name, "ADDED", item, time.perf_counter())
                listed.set()
                query = {
                    "watch": "true", "resourceVersion": found["metadata"]["resourceVersion"], "timeoutSeconds": "3600",
                }  # fmt: skip
                async with self._session.get(
                    plane.url + path, params=query, headers=plane.headers, ssl=plane.tls
                ) as answer:
                    async for line in answer.content:
                        event = msgspec.json.decode(line)
                        if event["type"] == "ERROR":
                            break
                        take(plane.name, event["type"], event["object"], time.perf_counter())
            except (aiohttp.ClientError, TimeoutError, AssertionError):
                await asyncio.sleep(0.5)
            self.seen.gaps += 1

    async def leave(self) -> None:
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)

    # Services.

    async def create(self, tenant: str, name: str) -> Service:
        service = Service(tenant, name, sent=time.perf_counter())
        self.seen.services[tenant, NAMESPACE, name] = service
        spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 80, "protocol": "TCP"}]}
        body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}
        await self.send(self.tenants[tenant], "POST", f"/api/v1/namespaces/{NAMESPACE}/services", body)
        service.acknowledged = time.perf_counter()
        return service

    async def delete(self, service: Service) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/services/{service.name}"
        await self.send(self.tenants[service.tenant], "DELETE", path)
        service.deleted = time.perf_counter()

    async def compare(self) -> None:
        """Read all Services once more: the watches might have missed one that moved."""
        for plane in self.tenants.values():
            listed = await self.send(plane, "GET", "/api/v1/services")
            for item in listed["items"]:
                self.seen.take_service(plane.name, "MODIFIED", item, time.perf_counter())

    # Waves.

    async def steady(self, rate: float, seconds: float) -> list[Service]:
        began, names, coming = time.perf_counter(), list(self.tenants), []
        for number in range(int(rate * seconds)):
            await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
            turn, place = divmod(number, len(names))
            coming.append(asyncio.create_task(self.create(names[place], f"steady-{turn}")))
        return await asyncio.gather(*coming)

    async def all_at_once(self, wanted: Iterable[tuple[str, str]]) -> list[Service]:
        return await asyncio.gather(*(self.create(tenant, name) for tenant, name in wanted))


# Telling.


def told(seen: Seen, services: list[Service]) -> Json:
    """How long each Service waited, and for what, in seconds."""
    rows = []
    for service in services:
        if service.shown is None:
            continue
        start, allocation = service.acknowledged, seen.holder.get(service.address)
        moments = {
            "asked": allocation.seen["asked"] if allocation else None,
            "granted": allocation.seen["granted"] if allocation else None,
            "published": seen.published.get((service.tenant, service.address)),
        }
        # What was there before the Service took none of its time; the watch may also be ahead of the acknowledgement.
        steps, last = {}, start
        for name, moment in [*moments.items(), ("shown", service.shown)]:
            reached = max(last, moment or last)
            steps[name], last = reached - last, reached
        grew = allocation is not None and allocation.grown and allocation.seen["asked"] >= service.sent
        rows.append({"waited": service.shown - start, "answered": start - service.sent, "grew": grew, **steps})
    return {"services": rows, "wanted": len(services)}


def given_back(seen: Seen, services: list[Service]) -> Json:
    """For each allocation of which Services went: from the last of them to each step of giving back."""
    last: dict[int, float] = {}
    found: dict[int, Allocation] = {}
    for service in services:
        allocation = seen.holder.get(service.address)
        if allocation is not None and allocation.grown:
            found[id(allocation)] = allocation
            last[id(allocation)] = max(last.get(id(allocation), 0.0), service.deleted)
    rows = []
    for key, allocation in found.items():
        if "released" not in allocation.seen:
            continue
        gone = [seen.withdrawn.get((allocation.tenant, address), 0.0) for address in allocation.addresses]
        moments = {**allocation.seen, "withdrawn": max(gone, default=0.0)}
        rows.append(
            {name: moments.get(name, last[key]) - last[key] for name in ("idle", "draining", "withdrawn", "released")}
        )
    return {"allocations": rows, "wanted": len(found)}


def say(event: str, facts: Json) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


async def heard() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:  # noqa: ASYNC110  # what is asked comes from many watches
        await asyncio.sleep(0.05)


async def play(users: Users, home: str, team: str, rate: float, seconds: float, batch: int) -> None:
    seen = users.seen

    async def wave(event: str, coming: Awaitable[list[Service]]) -> list[Service]:
        services = await coming
        await until(lambda: all(service.shown is not None for service in services))
        say(event, told(seen, services))
        await heard()
        return services

    await users.find_tenants(team)
    await users.follow(home)
    names = list(users.tenants)
    await wave("filled", users.all_at_once((name, "second") for name in names))
    await wave("steady", users.steady(rate, seconds))
    going = await wave("burst", users.all_at_once((name, "burst") for name in names))
    going += await wave("batch", users.all_at_once((names[0], f"batch-{number}") for number in range(batch)))
    await asyncio.gather(*map(users.delete, going))
    allocations = {id(found): found for service in going if (found := seen.holder.get(service.address)) and found.grown}
    await until(lambda: all("released" in allocation.seen for allocation in allocations.values()))
    await users.compare()
    say("shrunk", given_back(seen, going) | {"moved": seen.moved, "gaps": seen.gaps, "tenants": len(names)})
    await heard()


async def main(kubeconfig: str, home: str, team: str, rate: str, seconds: str, batch: str) -> None:
    with tempfile.TemporaryDirectory(prefix="butler-bench-load-") as folder:
        scratch = Path(folder)
        management = ControlPlane.from_kubeconfig("management", Path(kubeconfig), scratch / "management")
        # No limit: three watches and some requests to each tenant, all to the same host and port.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=600)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None, sock_connect=30), read_bufsize=1 << 22
        ) as session:
            users = Users(management, session, scratch)
            try:
                await play(users, home, team, float(rate), float(seconds), int(batch))
            finally:
                await users.leave()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:7]))
