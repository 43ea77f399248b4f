"""The platform that a storm plays on: replicas of the controller, stand-ins, the real MetalLB, a real Kubernetes.

Here is what users, faults and the checker share: the processes, the clients, a way into each tenant, and the diary.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self

import aiohttp

from chaos.eras import Eras
from chaos.judge import Patience, granted_in_sight
from control_planes import ControlPlane
from ipam.estate import Api, named
from ipam.history import ALLOCATION, GROUP, Witness
from ipam.processes import ButlerProcess
from tenants.leftovers import CLUSTER_API
from tenants.rules import MACHINE, TENANT, home_of
from world_process import WorldProcess

if TYPE_CHECKING:
    from pathlib import Path

    from run_kubernetes import Kubernetes

    from ipam.history import Json
    from ipam.processes import Nursery
    from ipam.story import Violation
    from metallb_controller import MetallbController

HOME, TEAM = "butler-system", "team"
QUICK = {"machine_seconds": 0.2, "machine_deletion_seconds": 0.1, "control_plane_seconds": 0.1, "addon_seconds": 0.1}
LOGIN = {"username": b"butler@pve!capi", "password": b"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}
OPTIONS = (
    *("--retention", "1", "--sweep-every", "1", "--sighting-gap", "1", "--lease-seconds", "2"),
    *("--shrink-after", "5", "--drain-settle", "0.3", "--check-tenants-every", "2", "--clean-up-limit", "10"),
)


class Platform:
    """All that runs, and what is known of it. Use as an async context manager."""

    def __init__(self, server: Kubernetes, plane: ControlPlane, nursery: Nursery, folder: Path, seed: int) -> None:
        self.server, self.plane, self.seed = server, plane, seed
        self.rng = random.Random(seed)
        self.api, self.homes = Api(plane, TEAM), Api(plane, HOME)
        self.world = WorldProcess(plane.kubeconfig, folder, **QUICK)
        self.eras = Eras(self._new_witness)
        self.replicas = [
            ButlerProcess(nursery, name, plane.kubeconfig, folder / f"{name}.log", OPTIONS) for name in ("one", "two")
        ]
        self.webhooks, self.lease = True, True
        self.metallb: MetallbController | None = None
        self.done: Counter[str] = Counter()
        self.answers: Counter[str] = Counter()
        self.violations: list[Violation] = []
        self.patience = Patience()
        self.lost: set[tuple[str, int]] = set()
        self.shown: set[tuple[str, int]] = set()
        self._in_sight: set[str] = set()
        """Allocations that were granted since the last restore, at a time when Services could be seen."""
        self._restored: set[str] = set()
        """Allocations that held addresses when the last restore was over."""
        self._restored_at = 0.0
        self._restoring = False
        self._began = time.monotonic()
        self._diary = (folder / "storm.log").open("a", buffering=1)
        self._outages: list[tuple[float, float]] = []
        self._numbers = iter(range(1, 1 << 30))
        self._snapshots: list[Path] = []
        self._folder = folder
        self._tenants: dict[str, aiohttp.ClientSession] = {}
        self._urls: dict[str, str] = {}
        self._ends = AsyncExitStack()

    def _new_witness(self) -> Witness:
        also = {TENANT: f"{GROUP}/namespaces/{TEAM}/tenantclusters", MACHINE: CLUSTER_API["machines"]}
        return Witness(self.plane.url, self.plane.tls, self.plane.headers, namespace=HOME, also=also)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as begun:
            for name in (HOME, TEAM):
                status, answer = self.plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
                assert status in (201, 409), answer
            for api in (self.api, self.homes):
                await begun.enter_async_context(api)
            await asyncio.to_thread(self.world.start)
            begun.callback(self.world.kill)
            await self.eras.begin("start")
            self._ends = begun.pop_all()
        self._start_replicas()
        await self._set_up()
        return self

    async def __aexit__(self, *_: object) -> None:
        for replica in self.replicas:
            replica.kill()
        if self.metallb is not None:
            self.metallb.kill()
        await self._hang_up()
        with contextlib.suppress(Exception):
            await self.eras.end()
        await self._ends.aclose()
        self._diary.close()
        await asyncio.sleep(0.05)  # for the transports to notice

    def _note(self, what: str) -> None:
        """A line in `storm.log`, beside the logs of the processes: when each step was, and each broken rule."""
        self._diary.write(f"{time.monotonic() - self._began:8.2f} {time.strftime('%H:%M:%S')} {what}\n")

    # The platform.

    async def _set_up(self) -> None:
        data = {key: base64.b64encode(value).decode() for key, value in LOGIN.items()}
        secret = {"metadata": {"name": "login", "namespace": HOME}, "data": data}
        status, answer = await self.homes.send("POST", f"/api/v1/namespaces/{HOME}/secrets", secret)
        assert status == 201, answer
        for name, network, last in (("nodes", "10.40.0", 27), ("balancers", "10.41.0", 39), ("plain", "10.42.0", 39)):
            window = {"start": f"{network}.16", "end": f"{network}.{last}", "defaults": {"nodesPerTenant": 2}}
            spec = {"cidr": f"{network}.0/24", "tenantAllocation": window}
            await self._insist("POST", self.homes.path("networkpools"), named("NetworkPool", {"name": name}, spec))
        networking: Json = {
            "mode": "ipam",
            "gateway": "10.40.0.1",
            "dnsServers": ["10.40.0.2"],
            "poolRefs": [
                {"name": "balancers", "types": ["loadbalancer"]},
                {"name": "nodes", "types": ["nodes"], "gateway": "10.40.0.1"},
            ],
            "loadBalancer": {
                "allocationMode": "elastic", "initialPoolSize": 2, "defaultPoolSize": 2, "growthIncrement": 1,
            },
        }  # fmt: skip
        spec = {
            "provider": "proxmox",
            "credentialsRef": {"name": "login"},
            "proxmox": {"endpoint": "https://127.0.0.1:9", "nodes": ["pve1"], "storage": "local", "templateID": 100},
            "network": networking,
        }
        await self._insist("POST", self.homes.path("providerconfigs"), named("ProviderConfig", {"name": "lab"}, spec))

    async def _insist(self, method: str, path: str, body: Json) -> None:
        """Something that must succeed in the end: admission may not be served yet."""
        deadline = time.monotonic() + 60
        while True:
            status, answer = await self._send(self.homes, method, path, body)
            if status in (200, 201, 409):
                return
            assert time.monotonic() < deadline, answer
            await asyncio.sleep(0.5)

    async def _send(
        self, api: Api, method: str, path: str, body: object = None, kind: str = "application/json"
    ) -> tuple[int, Json]:
        """A user's request; a server that does not answer is part of the storm."""
        try:
            return await api.send(method, path, body, kind)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return 0, {"message": str(error)}

    def _start_replicas(self) -> None:
        extra = ("--webhook-port", "0") if self.webhooks else ()
        lease = () if self.lease else ("--no-lease",)
        for replica in self.replicas:
            if not replica.pid:
                replica.set_options([*OPTIONS, *extra, *lease])
                replica.start()

    async def _hang_up(self) -> None:
        """A tenant that was deleted and came back with the restore has new credentials."""
        for session in self._tenants.values():
            await session.close()
        self._tenants.clear()

    async def _new_era(self, why: str, broke_at: float | None = None) -> None:
        self.patience.read(self.eras.witness.history, "plain", self._outages)
        self._in_sight |= granted_in_sight(self.eras.witness.history, self._outages)
        deadline = time.monotonic() + 60
        while True:
            try:
                await self.eras.begin(why, broke_at)
            except (aiohttp.ClientError, AssertionError, OSError):
                assert time.monotonic() < deadline, "the server does not come back"
                await asyncio.sleep(0.3)
            else:
                return

    def _clusters(self) -> dict[str, Json]:
        return {key[1]: obj for key, obj in self.eras.witness.state(TENANT).items()}

    def _allocations(self) -> list[Json]:
        return list(self.eras.witness.state(ALLOCATION).values())

    async def _some_tenant(self) -> tuple[aiohttp.ClientSession, str] | None:
        ready = [obj for obj in self._clusters().values() if (obj.get("status") or {}).get("phase") == "Ready"]
        if not ready:
            return None
        return await self._inside(self.rng.choice(ready))

    async def _inside(self, cluster: Json) -> tuple[aiohttp.ClientSession, str] | None:
        meta = cluster["metadata"]
        home = home_of(meta["name"], meta["uid"])
        if home not in self._tenants:
            path = f"/api/v1/namespaces/{home}/secrets/{meta['name']}-admin-kubeconfig"
            status, secret = await self._send(self.homes, "GET", path)
            if status != 200:
                return None
            if home in self._tenants:  # by now
                return self._tenants[home], self._urls[home]
            kubeconfig = self._folder / f"{home}.kubeconfig"
            kubeconfig.touch(mode=0o600)
            kubeconfig.write_bytes(base64.b64decode(secret["data"]["admin.conf"]))
            tenant = ControlPlane.from_kubeconfig(home, kubeconfig, self._folder / home)
            connector = aiohttp.TCPConnector(limit=2, ssl=tenant.tls)
            self._tenants[home] = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(10))
            self._urls[home] = tenant.url
        return self._tenants[home], self._urls[home]


async def items(session: aiohttp.ClientSession, url: str) -> list[Json]:
    async with session.get(url) as answer:
        if answer.status == 404:
            return []  # a restore brought a deleted tenant back, whose new control plane has no MetalLB
        body = await answer.json()
        assert answer.status == 200, f"{url}: {body}"
        return list(body["items"])
