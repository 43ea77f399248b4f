"""Run as a program: users who create tenant clusters all at once, wait for them, and delete them all at once.

    python bench/tenant_load.py KUBECONFIG NAMESPACE HOME PROVIDER COUNT REPLICAS

Sixteen connections, and two watches that see when each cluster had its addresses, was Ready and was gone. A process of
its own, so that its processor time is not counted for another one. Writes "created", "ready" and "gone" to standard
output, a line of JSON each, as soon as it is so; it goes on when it reads a line. Clusters that do not get there are
counted, not waited for beyond PATIENCE.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

import aiohttp  # noqa: E402 - after the path is set
import msgspec  # noqa: E402

from control_planes import ControlPlane  # noqa: E402

CONNECTIONS = 16
PATIENCE = 1800.0
API = "butler.butlerlabs.dev/v1alpha1"
KINDS = ("nodes", "loadbalancer")


class Load:
    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession, namespace: str, home: str) -> None:
        self._plane = plane
        self._session = session
        self._clusters = f"/apis/{API}/namespaces/{namespace}/tenantclusters"
        self._allocations = f"/apis/{API}/namespaces/{home}/ipallocations"
        self.asked: dict[str, float] = {}
        self.allocated: dict[tuple[str, str], float] = {}
        self.ready: dict[str, float] = {}
        self.deleted: dict[str, float] = {}
        self.gone: dict[str, float] = {}

    async def watch(self, path: str, version: str) -> None:
        while True:
            query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
            async with self._session.get(self._plane.url + path, params=query) as answer:
                async for line in answer.content:
                    event = msgspec.json.decode(line)
                    assert event["type"] != "ERROR", event
                    version = event["object"]["metadata"]["resourceVersion"]
                    self._take(event["type"], event["object"])

    def _take(self, kind: str, obj: dict[str, Any]) -> None:
        now, phase = time.perf_counter(), (obj.get("status") or {}).get("phase")
        if "poolRef" in obj["spec"]:
            if phase == "Allocated":
                key = obj["spec"]["tenantClusterRef"]["name"], obj["spec"]["type"]
                self.allocated.setdefault(key, now)
            return
        name = obj["metadata"]["name"]
        if kind == "DELETED":
            self.gone[name] = now
        elif phase == "Ready":
            self.ready.setdefault(name, now)

    async def follow(self) -> list[asyncio.Task[None]]:
        tasks = []
        for path in (self._clusters, self._allocations):
            async with self._session.get(f"{self._plane.url}{path}?limit=1") as answer:
                version = (await answer.json())["metadata"]["resourceVersion"]
            tasks.append(asyncio.create_task(self.watch(path, version)))
        await asyncio.sleep(0.2)
        return tasks

    async def create(self, names: list[str], provider: str, home: str, replicas: int) -> None:
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": provider, "namespace": home},
            "workers": {"replicas": replicas},
        }
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                body = {"apiVersion": API, "kind": "TenantCluster", "metadata": {"name": name}, "spec": spec}
                self.asked[name] = time.perf_counter()
                async with self._session.post(self._plane.url + self._clusters, json=body) as answer:
                    assert answer.status == 201, await answer.text()

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))

    async def delete(self, names: list[str]) -> None:
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                self.deleted[name] = time.perf_counter()
                async with self._session.delete(f"{self._plane.url}{self._clusters}/{name}") as answer:
                    assert answer.status in (200, 202), await answer.text()

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))

    def addresses_after(self) -> list[float]:
        """Seconds from asking for a cluster to seeing both of its allocations."""
        both = {name for name, _ in self.allocated if all((name, kind) in self.allocated for kind in KINDS)}
        return [max(self.allocated[name, kind] for kind in KINDS) - self.asked[name] for name in both]


def say(event: str, **facts: Any) -> None:
    print(json.dumps({"event": event, **facts}), flush=True)


async def heard() -> None:
    await asyncio.to_thread(sys.stdin.readline)


async def until(done: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not done() and time.monotonic() < deadline:  # noqa: ASYNC110  # what is asked comes from two watches
        await asyncio.sleep(0.1)


async def main(kubeconfig: str, namespace: str, home: str, provider: str, count: int, replicas: int) -> None:
    with tempfile.TemporaryDirectory(prefix="butler-bench-load-") as scratch:
        plane = ControlPlane.from_kubeconfig("load", Path(kubeconfig), Path(scratch))
        connector = aiohttp.TCPConnector(limit=CONNECTIONS + 2, ssl=plane.tls)
        async with aiohttp.ClientSession(
            connector=connector,
            headers=dict(plane.headers),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            read_bufsize=1 << 22,
        ) as session:
            load = Load(plane, session, namespace, home)
            following = await load.follow()
            names = [f"c{number:04}" for number in range(count)]
            began = time.perf_counter()
            await load.create(names, provider, home, replicas)
            created = time.perf_counter() - began
            await until(lambda: len(load.addresses_after()) == count)
            say("allocated", created=created, after=load.addresses_after())
            await until(lambda: len(load.ready) == count)
            say("ready", after=[load.ready[name] - load.asked[name] for name in load.ready])
            await heard()
            await load.delete(names)
            await until(lambda: len(load.gone) == count)
            say("gone", after=[load.gone[name] - load.deleted[name] for name in load.gone])
            for task in following:
                task.cancel()
            await asyncio.gather(*following, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5], *map(int, sys.argv[5:7])))  # type: ignore[call-arg, arg-type]
