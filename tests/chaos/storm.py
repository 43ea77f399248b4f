"""A platform in a storm: users, faults and a checker, on a real Kubernetes whose etcd may go back in time.

Two replicas of the controller, the world of stand-ins, the real MetalLB on one tenant, and a management cluster that is
killed and restored under them. A round is a storm of so many seconds, then calm: faults end, all processes run, and
when nothing moves any more the rules of rest are asked. All chance comes from the seed, so a seed replays the plan;
what happens between the steps is up to the machine.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import math
import os
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import aiohttp

from chaos.eras import Eras, holdings
from chaos.judge import Look, Patience, granted_in_sight, rest, sampled, still_lost
from control_planes import ControlPlane
from ipam.estate import Api, named
from ipam.history import ALLOCATION, GROUP, POOL, Witness
from ipam.oracle import number, text
from ipam.processes import ButlerProcess
from ipam.story import Violation
from metallb_controller import MetallbController
from tenants.leftovers import CLUSTER_API
from tenants.rules import MACHINE, TENANT, Tenant, home_of, tenant_of
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from run_kubernetes import Kubernetes

    from ipam.history import Json
    from ipam.processes import Nursery

HOME, TEAM = "butler-system", "team"
QUICK = {"machine_seconds": 0.2, "machine_deletion_seconds": 0.1, "control_plane_seconds": 0.1, "addon_seconds": 0.1}
LOGIN = {"username": b"butler@pve!capi", "password": b"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}
OPTIONS = (
    *("--retention", "1", "--sweep-every", "1", "--sighting-gap", "1", "--lease-seconds", "2"),
    *("--shrink-after", "5", "--drain-settle", "0.3", "--check-tenants-every", "2", "--clean-up-limit", "10"),
)
MOST_TENANTS = 7
REAL = "real"
"""The tenant whose Services the real MetalLB serves."""
SETTLE_SECONDS = 240.0
QUIET_SECONDS = 12.0
"""Longer than a replica takes to start and to lead on a busy machine: until then nothing moves either."""
PUT_RIGHT_SECONDS = 10.0
"""After a restore, for what `--check-tenants-every` finds, with a start of the world in between."""
TENANT_UID = "butler.butlerlabs.dev/tenant-uid"
NO_METALLB = "MetalLB is not installed"
"""Said rightly of a tenant that a restore brought back after its control plane was gone: its addons are on record as
installed, and the stand-in that installs them believes the record."""
LEFT_OUT = os.environ.get("CHAOS_WITHOUT", "").split(",")
"""Steps that are not played, by name, to find out which one a fault needs."""
OUR_METALLB = {"metadata": {"annotations": {"local.butlerlabs.dev/served-by": "another"}}}
"""Tells the world to leave the Services of a tenant to another MetalLB."""


class Storm:
    """One seeded run. Use as an async context manager."""

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

    async def __aenter__(self) -> Storm:
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
        networking: dict[str, Any] = {
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

    # Faults. Each says when controllers could not work because of it.

    @contextlib.asynccontextmanager
    async def _outage(self, after: float = 6.0) -> Any:
        """`after`: seconds that a replica gets to lead again, which a lease and a start take."""
        since, position = time.monotonic(), len(self._outages)
        self._outages.append((since, math.inf))
        try:
            yield
        finally:
            self._outages[position] = (since, time.monotonic() + after)

    def _chosen(self) -> ButlerProcess:
        return self.rng.choice(self.replicas)

    async def kill_replica(self) -> None:
        async with self._outage():
            replica = self._chosen()
            replica.kill()
            await asyncio.sleep(self.rng.uniform(0, 1))
            self._start_replicas()

    async def kill_both(self) -> None:
        async with self._outage():
            for replica in self.replicas:
                replica.kill()
            await asyncio.sleep(self.rng.uniform(0, 2))
            self._start_replicas()

    async def freeze_replica(self) -> None:
        """Longer than its lease: it wakes in the belief that it still leads."""
        async with self._outage():
            replica = self._chosen()
            replica.freeze()
            await asyncio.sleep(self.rng.uniform(0.5, 6))
            replica.thaw()

    async def toggle_lease(self) -> None:
        """Both work at once, or one at a time."""
        async with self._outage():
            self.lease = not self.lease
            for replica in self.replicas:
                replica.kill()
            self._start_replicas()

    async def toggle_webhooks(self) -> None:
        async with self._outage():
            self.webhooks = not self.webhooks
            for replica in self.replicas:
                replica.kill()
            if not self.webhooks:
                path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
                await self._send(self.homes, "DELETE", path)
            self._start_replicas()

    async def restart_world(self) -> None:
        await asyncio.to_thread(self.world.restart)

    async def kill_metallb(self) -> None:
        if self.metallb is not None and self.metallb.is_running:
            self.metallb.kill()
            await asyncio.sleep(self.rng.uniform(0, 2))
            await self.metallb.start()

    async def kill_apiserver(self) -> None:
        async with self._outage(10):
            broke_at = time.monotonic()
            await asyncio.to_thread(self.server.restart_apiserver)
            await self._new_era("restart", broke_at)

    async def snapshot(self) -> None:
        folder = self._folder / f"snapshot-{next(self._numbers)}"
        await asyncio.to_thread(self.server.snapshot, folder)
        self._snapshots.append(folder)

    async def restore(self) -> None:
        """Etcd goes back; the controllers live on. Sometimes one of them is frozen meanwhile."""
        if not self._snapshots:
            return
        sleeper = self._chosen() if self.rng.random() < 0.5 else None
        async with self._outage(15):
            if sleeper is not None:
                sleeper.freeze()
            broke_at = time.monotonic()
            self._restoring = True  # until it is known what the restore took, nothing can be judged
            await asyncio.to_thread(self.server.restore, self.rng.choice(self._snapshots[-3:]))
            await asyncio.to_thread(self.world.restart)
            await self._hang_up()
            ever = [
                each.after for each in self.eras.witness.history.revisions if each.kind == ALLOCATION and each.after
            ]
            before = [held for allocation in ever for held in holdings([allocation]).values()]
            await self._new_era("restore", broke_at)
            self._in_sight.clear()  # what is held now came with the snapshot, or was granted before tenants answered
            self._restored_at = time.monotonic()
            now = holdings(self.eras.witness.state(ALLOCATION).values())
            self._restored = set(now)
            after = {(held.owner, held.span) for held in now.values()}
            for held in before:
                if (held.owner, held.span) not in after:
                    self._note(f"the restore takes {text(held.span)} from {held.name}")
                    self.lost |= {(held.owner, address) for address in range(held.span[0], held.span[1] + 1)}
            self._restoring = False
            if sleeper is not None:
                await asyncio.sleep(self.rng.uniform(0, 4))
                sleeper.thaw()

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

    # Users.

    def _clusters(self) -> dict[str, Json]:
        return {key[1]: obj for key, obj in self.eras.witness.state(TENANT).items()}

    def _allocations(self) -> list[Json]:
        return list(self.eras.witness.state(ALLOCATION).values())

    async def _ask(self, what: str, method: str, path: str, body: object = None, kind: str = "application/json") -> int:
        status, _ = await self._send(self.homes, method, path, body, kind)
        self.answers[f"{what} {status}"] += 1
        return status

    async def _merge(self, what: str, path: str, patch: Json) -> int:
        return await self._ask(what, "PATCH", path, patch, "application/merge-patch+json")

    async def create_tenant(self, name: str = "") -> None:
        if len(self._clusters()) >= MOST_TENANTS:
            return
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab", "namespace": HOME},
            "workers": {"replicas": self.rng.choice([1, 2, 2])},
        }
        body = named("TenantCluster", {"name": name or f"t{next(self._numbers)}"}, spec)
        await self._ask("create tenant", "POST", self.api.path("tenantclusters"), body)

    async def delete_tenant(self) -> None:
        names = [name for name in self._clusters() if name != REAL]
        if names:
            await self._ask("delete tenant", "DELETE", self.api.path("tenantclusters", self.rng.choice(names)))

    async def scale_tenant(self) -> None:
        if names := list(self._clusters()):
            path = self.api.path("tenantclusters", self.rng.choice(names))
            await self._merge("scale tenant", path, {"spec": {"workers": {"replicas": self.rng.choice([1, 2, 3])}}})

    async def request(self) -> None:
        """A plain request, by hand; sometimes for a range of its own."""
        spec: Json = {
            "poolRef": {"name": "plain"},
            "tenantClusterRef": {"name": "elsewhere", "namespace": TEAM},
            "type": "nodes",
            "count": self.rng.choice([1, 2, 3, 5, 8]),
        }
        if self.rng.random() < 0.2:
            first = number("10.42.0.16") + self.rng.randrange(20)
            spec["pinnedRange"] = {"startAddress": text((first, first)), "endAddress": text((first + 1, first + 1))}
        body = named("IPAllocation", {"name": f"hand-{next(self._numbers)}"}, spec)
        await self._ask("request", "POST", self.homes.path("ipallocations"), body)

    async def release_plain(self) -> None:
        await self._delete_one("plain delete", lambda obj: obj["spec"]["poolRef"]["name"] == "plain")

    async def delete_by_hand(self) -> None:
        """Of a tenant that lives: admission refuses it, or the finalizer holds it while it is used."""
        await self._delete_one("delete by hand", lambda obj: obj["spec"]["poolRef"]["name"] != "plain")

    async def _delete_one(self, what: str, wanted: Callable[[Json], bool]) -> None:
        names = [obj["metadata"]["name"] for obj in self._allocations() if wanted(obj)]
        if names:
            await self._ask(what, "DELETE", self.homes.path("ipallocations", self.rng.choice(names)))

    async def clean_up_by_label(self) -> None:
        """The clean-up command of the manual, for a tenant that may well live."""
        if names := list(self._clusters()):
            selector = f"butler.butlerlabs.dev%2Ftenant%3D{self.rng.choice(names)}"
            path = f"{self.homes.path('ipallocations')}?labelSelector={selector}"
            await self._ask("clean up by label", "DELETE", path)

    async def edit_status(self) -> None:
        """What a person with an editor may try."""
        held = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Allocated"]
        gone = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Released"]
        edits: list[tuple[list[Json], Json]] = [
            (held, {"phase": "Pending"}),
            (held, {"phase": "Failed"}),
            (gone, {"phase": "Allocated"}),
            (held, {"startAddress": "10.42.0.15"}),
            (held, {"endAddress": "10.40.0.1O"}),
        ]
        among, status = self.rng.choice(edits)
        if among:
            found = self.rng.choice(among)["metadata"]
            path = self.homes.path("ipallocations", found["name"], "status")
            # Only for the version that is wrong to edit so: it may have moved on.
            patch = {"metadata": {"resourceVersion": found["resourceVersion"]}, "status": status}
            if await self._merge("edit status", path, patch) == 200:
                self.violations.append(Violation("status rules", f"{found['name']} was edited to {status}"))

    async def edit_pool(self) -> None:
        """Windows that grow and shrink, blocks that are kept back and given again."""
        name, network = self.rng.choice([("nodes", "10.40.0"), ("balancers", "10.41.0"), ("plain", "10.42.0")])
        spec: Json
        if self.rng.random() < 0.6:
            spec = {"tenantAllocation": {"end": f"{network}.{self.rng.choice([27, 33, 39, 45])}"}}
        else:
            spec = {"reserved": self.rng.choice([[], [{"cidr": f"{network}.{self.rng.choice([20, 24, 28])}/31"}]])}
        await self._merge("edit pool", self.homes.path("networkpools", name), {"spec": spec})

    async def add_service(self) -> None:
        if (found := await self._some_tenant()) is not None:
            session, url = found
            meta = {"name": f"s{next(self._numbers)}"}
            spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "x"}}
            body = {"metadata": meta, "spec": spec}
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with session.post(f"{url}/api/v1/namespaces/default/services", json=body) as answer:
                    self.answers[f"add service {answer.status}"] += 1

    async def remove_service(self) -> None:
        if (found := await self._some_tenant()) is None:
            return
        session, url = found
        # AssertionError: the credentials are of a tenant that a restore has taken away.
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError, AssertionError):
            services = [each for each in await _items(session, f"{url}/api/v1/namespaces/default/services")
                        if each["spec"].get("type") == "LoadBalancer"]  # fmt: skip
            if services:
                name = self.rng.choice(services)["metadata"]["name"]
                async with session.delete(f"{url}/api/v1/namespaces/default/services/{name}") as answer:
                    self.answers[f"remove service {answer.status}"] += 1

    # Tenants, seen from inside.

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

    async def serve_really(self) -> None:
        """Let the real MetalLB serve one tenant, in place of its stand-in."""
        await self.create_tenant(REAL)
        deadline = time.monotonic() + 120
        while not (cluster := self._clusters().get(REAL)) or (cluster.get("status") or {}).get("phase") != "Ready":
            assert time.monotonic() < deadline, f"tenant {REAL} is not Ready: {cluster}"
            await asyncio.sleep(0.2)
        await self._insist_patch(self.api.path("tenantaddons", f"{REAL}-metallb"), OUR_METALLB)
        found = await self._inside(cluster)
        assert found is not None
        kubeconfig = self._folder / f"{home_of(REAL, cluster['metadata']['uid'])}.kubeconfig"
        self.metallb = MetallbController(kubeconfig, self._folder)
        await self.metallb.__aenter__()

    async def _insist_patch(self, path: str, patch: Json) -> None:
        status, answer = await self.api.send("PATCH", path, patch, "application/merge-patch+json")
        assert status == 200, answer

    async def _look(self, cluster: Json) -> Look | None:
        try:
            found = await self._inside(cluster)
            if found is None:
                return None
            session, url = found
            services = await _items(session, f"{url}/api/v1/services")
            pools = await _items(session, f"{url}/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools")
        except (aiohttp.ClientError, TimeoutError, OSError, AssertionError, ValueError):
            return None
        seen = tenant_of("", (), [each for each in pools if each["metadata"]["name"] == "default-pool"], ())
        shown = {each["metadata"]["name"]: tenant_of("", (), (), [each]).balancers for each in services}
        return Look(cluster["metadata"]["uid"], cluster["metadata"]["name"], shown, seen.announced)

    async def sample(self) -> None:
        """One look at all tenants between two consistent lists of the allocations."""
        era, restored = self.eras.count, set(self.lost)
        one, before = await self._send(self.homes, "GET", self.homes.path("ipallocations"))
        found = await asyncio.gather(*(self._look(cluster) for cluster in self._clusters().values()))
        two, after = await self._send(self.homes, "GET", self.homes.path("ipallocations"))
        if one != 200 or two != 200 or self._restoring or self.eras.count != era or restored != self.lost:
            return
        looks = [look for look in found if look is not None]
        self.shown |= {
            (look.name, address) for look in looks for addresses in look.shown.values() for address in addresses
        }
        self.done["looks at a tenant"] += len(looks)
        held = holdings(before["items"]), holdings(after["items"])
        in_sight = self._in_sight | granted_in_sight(self.eras.witness.history, self._outages)
        wrong = list(sampled(looks, *held, self.lost, in_sight))
        from_snapshot = {uid: found for uid, found in held[0].items() if uid in self._restored}
        known = list(sampled(looks, from_snapshot, held[1], ()))
        for violation in sampled(looks, *held, ()):
            if violation.rule == "S4" and violation not in wrong:
                why = "the snapshot says so" if violation in known else "granted before the Service could be seen"
                self.done[f"S4 excused, {why}"] += 1
                self._note(f"excused, {why}: {violation.told()}")
        # What was published while etcd went back is put right when the tenant is next compared with its allocations.
        recent = time.monotonic() - self._restored_at < PUT_RIGHT_SECONDS
        for violation in [violation for violation in wrong if not (recent and violation.rule == "S5")][:5]:
            self._note(f"BROKEN {violation.told()}")
            self.violations.append(violation)

    # The storm.

    def _steps(self) -> list[tuple[float, Callable[[], Awaitable[None]]]]:
        return [
            *((6, self.create_tenant), (2, self.delete_tenant), (2, self.scale_tenant)),
            *((10, self.add_service), (8, self.remove_service)),
            *((8, self.request), (6, self.release_plain)),
            *((3, self.delete_by_hand), (1, self.clean_up_by_label), (3, self.edit_status), (2, self.edit_pool)),
            *((2, self.kill_replica), (0.7, self.kill_both), (1, self.freeze_replica), (0.5, self.restart_world)),
            *((0.7, self.kill_metallb), (0.4, self.kill_apiserver), (1, self.snapshot), (1.2, self.restore)),
            *((0.3, self.toggle_webhooks), (0.3, self.toggle_lease)),
        ]

    async def rage(self, seconds: float) -> None:
        """Users and faults, by chance."""
        steps = [(weight, step) for weight, step in self._steps() if step.__name__ not in LEFT_OUT]
        until = time.monotonic() + seconds
        sampling = asyncio.create_task(self._keep_sampling())
        try:
            while time.monotonic() < until:
                ((_, step),) = self.rng.choices(steps, [weight for weight, _ in steps])
                self.done[step.__name__] += 1
                self._note(step.__name__)
                await step()
                for replica in self.replicas:
                    replica.insist_alive()
                await asyncio.sleep(self.rng.uniform(0.02, 0.5))
        finally:
            sampling.cancel()
            await asyncio.gather(sampling, return_exceptions=True)

    async def _keep_sampling(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            await self.sample()

    async def calm(self) -> None:
        """All processes run until nothing changes any more; then check the rules of rest."""
        self._note("calm")
        if self.metallb is not None and not self.metallb.is_running:
            await self.metallb.start()
        self._start_replicas()
        await self._until_settled()
        self._note("settled")
        self.lost = still_lost(self.lost, [cluster["metadata"]["uid"] for cluster in self._clusters().values()])
        await asyncio.sleep(3)
        await self.sample()
        history = await self.eras.finish()
        tenants, services = [], {}
        for cluster in self._clusters().values():
            if (cluster.get("status") or {}).get("phase") == "Ready":
                home = home_of(cluster["metadata"]["name"], cluster["metadata"]["uid"])
                inside = await self._read_inside(cluster)
                tenants.append(Tenant(*tenant_of(home, *inside)))
                services[home] = inside[2]
        self.violations += list(rest(history, tenants, services, self.shown))
        self.done["rests"] += 1
        await self._new_era("rest")

    async def _read_inside(self, cluster: Json) -> list[list[Json]]:
        """What a tenant at rest says of itself; its credentials may have changed with a restore."""
        deadline = time.monotonic() + 30
        while True:
            try:
                found = await self._inside(cluster)
                assert found is not None, f"{cluster['metadata']['name']} is Ready and has no kubeconfig"
                session, url = found
                return [await _items(session, url + path) for path in _INSIDE]
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
                await self._hang_up()
                await asyncio.sleep(1)

    async def _until_settled(self) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        while (why := self._why_unsettled()) or time.monotonic() - self.eras.witness.last_change < QUIET_SECONDS:
            if time.monotonic() > deadline:
                latest = self.eras.witness.history.revisions[-5:]
                told = [f"{each.kind} {each.name} by {each.writer}" for each in latest]
                rule = "L1" if why else "L3"
                self.violations.append(Violation(rule, f"not at rest after {SETTLE_SECONDS:.0f} s: {why} {told}"))
                return
            await asyncio.sleep(0.2)

    def _why_unsettled(self) -> str:
        for name, cluster in self._clusters().items():
            status = cluster.get("status") or {}
            if cluster["metadata"].get("deletionTimestamp"):
                return f"tenant {name} has to go: {status.get('deletion')}"
            network = next((c for c in status.get("conditions") or () if c["type"] == "NetworkReady"), {})
            if self._restored_at and NO_METALLB in _unready(status):
                continue
            if status.get("phase") != "Ready" and network.get("status") != "False":
                return f"tenant {name} is {status.get('phase')}: {_unready(status)}"
            if status.get("phase") != "Ready" and self._holds_half(cluster):
                return f"tenant {name} holds one of its blocks"
        for (_, name), pool in self.eras.witness.state(POOL).items():
            if (pool.get("status") or {}).get("intents"):
                return f"pool {name} has intents"
        for allocation in self._allocations():
            if (allocation.get("status") or {}).get("phase", "Pending") == "Pending":
                return f"{allocation['metadata']['name']} is not answered"
        return ""

    def _holds_half(self, cluster: Json) -> bool:
        """Whether a tenant without machines holds addresses of one kind: it gives them back after some seconds."""
        uid, home = cluster["metadata"]["uid"], home_of(cluster["metadata"]["name"], cluster["metadata"]["uid"])
        if any(namespace == home for namespace, _ in self.eras.witness.state(MACHINE)):
            return False
        live = [obj for obj in self._allocations() if (obj.get("status") or {}).get("phase") == "Allocated"]
        mine = [obj for obj in live if (obj["metadata"].get("labels") or {}).get(TENANT_UID) == uid]
        return len({obj["spec"]["type"] for obj in mine}) == 1

    def report(self) -> str:
        """What was played, and what came of it."""
        played = ", ".join(f"{name} {count}" for name, count in sorted(self.done.items()))
        answered = ", ".join(f"{name}: {count}" for name, count in sorted(self.answers.items()))
        lines = [
            f"seed {self.seed}: {self.eras.count} eras, {self.eras.revisions} revisions judged",
            f"  played: {played}",
            f"  answers: {answered}",
            f"  L1 under faults: {self.patience.told()}",
        ]
        return "\n".join(lines)

    def broken(self) -> list[Violation]:
        return [*self.eras.violations, *self.violations, *self.patience.violations]


def _unready(status: Json) -> str:
    unmet = [c for c in status.get("conditions") or () if c["status"] != "True"]
    return "; ".join(f"{c['type']}: {c['message']}" for c in unmet)[:500]


_INSIDE = (
    "/api/v1/nodes",
    "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools",
    "/api/v1/services",
)


async def _items(session: aiohttp.ClientSession, url: str) -> list[Json]:
    async with session.get(url) as answer:
        if answer.status == 404:
            return []  # a restore brought a deleted tenant back, whose new control plane has no MetalLB
        body = await answer.json()
        assert answer.status == 200, f"{url}: {body}"
        return list(body["items"])
