"""A town of tenants that come and go by the dozen, with each program that looks after them in a process of its own.

Two replicas of the controller (one leads), the world, and a witness that writes down every revision of pools,
allocations, clusters and machines. A test kills and freezes whom it likes; `settle` waits until every cluster is as it
should be and nothing is written any more, and `verdict` holds the whole record, the tenants themselves and what lies
about in the management cluster against the rules.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from control_planes import ControlPlane
from ipam import story
from ipam.estate import Api, named
from ipam.history import ALLOCATION, GROUP, POOL, Json, Witness
from ipam.invariants import at_rest, check, insist
from ipam.processes import ButlerProcess, Nursery
from tenants import rules
from tenants.leftovers import CLUSTER_API, Leftovers
from tenants.rules import MACHINE, TENANT, home_of
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ipam.estate import Scale

PATIENCE = 100.0
LEASE_SECONDS = "2"
REPLICAS = 2
NODES, BALANCERS = 2, 2
PER_TENANT = NODES + BALANCERS
"""Addresses that a cluster takes."""
QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
LOGIN = {"username": b"butler@pve!capi", "password": b"aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"}


class Town:
    """One scenario. Use as an async context manager."""

    def __init__(self, plane: ControlPlane, nursery: Nursery, folder: Path, scale: Scale) -> None:
        self.plane = plane
        self.scale = scale
        self.rng = random.Random(scale.seed)
        self.home = plane.fresh_namespace("home")
        self.team = plane.fresh_namespace("team")
        self.api = Api(plane, self.team)
        self.homes = Api(plane, self.home)
        self.wanted: set[str] = set()
        """The clusters that should be there in the end."""
        self.world = WorldProcess(plane.kubeconfig, folder, **QUICK)
        self.witness = Witness(
            plane.url,
            plane.tls,
            plane.headers,
            namespace=self.home,
            home_namespace=self.home,
            also={TENANT: f"{GROUP}/namespaces/{self.team}/tenantclusters", MACHINE: CLUSTER_API["machines"]},
        )
        scope = ("--namespace", self.home, "--home-namespace", self.home, "--retention", "1")
        options = (*scope, "--lease-seconds", LEASE_SECONDS, "--sweep-every", "1", "--sighting-gap", "1")
        self.replicas = [
            ButlerProcess(nursery, name, plane.kubeconfig, folder / f"{name}.log", options) for name in ("one", "two")
        ]
        self.highest: Counter[str] = Counter()
        self.began = time.monotonic()
        self._folder = folder
        self._ends = AsyncExitStack()

    async def __aenter__(self) -> Town:
        print(f"replay with BUTLER_SEED={self.scale.seed} (clusters in {self.team} on {self.plane.name})")
        async with AsyncExitStack() as begun:
            await asyncio.to_thread(self.world.start)
            begun.callback(self.world.kill)
            for api in (self.api, self.homes):
                await begun.enter_async_context(api)
            await begun.enter_async_context(self.witness.watching())
            self._ends = begun.pop_all()
        for replica in self.replicas:
            replica.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for replica in self.replicas:
            replica.kill()
            print(f"--- {replica.name}, {replica.lives} lives, the end of its log:\n{replica.tail(8)}")
        print(f"--- the world, the end of its log:\n{self.world.log()[-1500:]}")
        await self._ends.aclose()

    # What users do.

    async def pool(self, name: str, cidr: str, tenants: int) -> None:
        """A pool with room for so many tenants, and not one more."""
        network = cidr.split(".0/", maxsplit=1)[0].rsplit(".", 1)[0]
        last = 16 + tenants * PER_TENANT - 1
        spec = {
            "cidr": cidr,
            "tenantAllocation": {
                "start": f"{network}.0.16",
                "end": f"{network}.{last // 256}.{last % 256}",
                "defaults": {"nodesPerTenant": NODES, "lbPoolPerTenant": BALANCERS},
            },
        }
        await self.homes.create("networkpools", named("NetworkPool", {"name": name}, spec))

    async def provider(self, *pools: str) -> None:
        """A provider that takes addresses from pools, in this order."""
        data = {key: base64.b64encode(value).decode() for key, value in LOGIN.items()}
        secret = {"metadata": {"name": "login", "namespace": self.home}, "data": data}
        status, answer = await self.homes.send("POST", f"/api/v1/namespaces/{self.home}/secrets", secret)
        assert status == 201, answer
        spec = {
            "provider": "proxmox",
            "credentialsRef": {"name": "login"},
            "proxmox": {"endpoint": "https://127.0.0.1:9", "nodes": ["pve1"], "storage": "local", "templateID": 100},
            "network": {
                "mode": "ipam",
                "gateway": "10.40.0.1",
                "dnsServers": ["10.40.0.2"],
                "poolRefs": [{"name": name} for name in pools],
            },
        }
        await self.homes.create("providerconfigs", named("ProviderConfig", {"name": "lab"}, spec))

    async def create(self, names: Iterable[str]) -> None:
        """All at once."""
        chosen = list(names)
        self.wanted |= set(chosen)
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab", "namespace": self.home},
            "workers": {"replicas": NODES},
        }
        made = (self.api.create("tenantclusters", named("TenantCluster", {"name": name}, spec)) for name in chosen)
        await asyncio.gather(*made)

    async def delete(self, names: Iterable[str]) -> None:
        chosen = list(names)
        self.wanted -= set(chosen)
        await asyncio.gather(*(self.api.delete("tenantclusters", name) for name in chosen))

    # What happens to those who look after them.

    def _running(self) -> list[ButlerProcess]:
        return [replica for replica in self.replicas if replica.pid]

    async def leader(self) -> ButlerProcess:
        """The replica that holds the lease, once one of those that run does."""
        deadline = time.monotonic() + PATIENCE
        path = f"/apis/coordination.k8s.io/v1/namespaces/{self.home}/leases/butler-controller"
        while True:
            _, lease = await self.homes.send("GET", path)
            holder = str((lease.get("spec") or {}).get("holderIdentity") or "")
            for replica in self._running():
                if f"-{replica.pid}-" in holder:
                    return replica
            assert time.monotonic() < deadline, f"no process leads, the lease says {holder!r}"
            await asyncio.sleep(0.1)

    async def kill_leader(self) -> None:
        """`kill -9`, and a new life at once."""
        found = await self.leader()
        self.weigh()
        found.kill()
        found.start()

    async def freeze_leader(self) -> None:
        """Stopped until another leads, and woken in the belief that it still does."""
        found = await self.leader()
        found.freeze()
        try:
            while await self.leader() is found:  # noqa: ASYNC110  # it is a lease that is looked at
                await asyncio.sleep(0.1)
        finally:
            found.thaw()

    async def restart_world(self) -> None:
        self.weigh()
        await asyncio.to_thread(self.world.restart)

    # What can be seen.

    @property
    def clusters(self) -> dict[str, Json]:
        return {key[1]: obj for key, obj in self.witness.state(TENANT).items()}

    def phases(self) -> dict[str, str]:
        return {name: str((obj.get("status") or {}).get("phase")) for name, obj in self.clusters.items()}

    def condition(self, name: str, kind: str) -> Json:
        conditions = (self.clusters[name].get("status") or {}).get("conditions") or ()
        return next((item for item in conditions if item["type"] == kind), {})

    def revisions(self) -> int:
        return len(self.witness.history.revisions)

    async def until(self, condition: Callable[[], bool], what: Callable[[], str]) -> None:
        seconds = PATIENCE * self.scale.of(1, 6)
        deadline = time.monotonic() + seconds
        while not await self.witness.until(condition, 2.0):
            for replica in self.replicas:
                replica.insist_alive()
            if time.monotonic() > deadline:
                history = self.witness.history
                insist(check(history), history, f"seed {self.scale.seed}, not {what()}: ")
                insist(rules.machines_keep_their_addresses(history), history, f"not {what()}: ")
                began = history.revisions[0].seconds
                latest = "\n".join(story.line(revision, began) for revision in history.revisions[-20:])
                pytest.fail(f"seed {self.scale.seed}: not within {seconds} s: {what()}\n{latest}")

    def weigh(self) -> None:
        """Remember the most memory that each kind of process had."""
        server = self.plane.kubeconfig.parent
        for name, megabytes in (
            ("controller", max((_megabytes(replica.pid) for replica in self._running()), default=0)),
            ("world", _megabytes(self.world.pid)),
            ("API server", sum(map(_megabytes, _pids_of(server)))),
        ):
            self.highest[name] = max(self.highest[name], megabytes)

    def report(self, what: str) -> None:
        self.weigh()
        memory = ", ".join(f"{name} {megabytes} MB" for name, megabytes in self.highest.items())
        print(f"{what} on {self.plane.name}: {time.monotonic() - self.began:.1f} s; most memory: {memory}")

    # Judging.

    def why_unsettled(self) -> str:
        phases = self.phases()
        surplus, missing = phases.keys() - self.wanted, self.wanted - phases.keys()
        waiting = {name: phase for name, phase in phases.items() if phase != "Ready" and name in self.wanted}
        if not surplus and not missing and not waiting:
            return ""
        told = [f"{len(surplus)} to go {_stages(self.clusters, surplus)}, {len(missing)} missing"]
        told.append(f"to become Ready {dict(Counter(waiting.values()))}")
        some = sorted({*surplus, *waiting} & phases.keys())[:3]
        told += [f"{name}: {json.dumps(self.clusters[name].get('status'))[:1500]}" for name in some]
        return "\n".join(told)

    async def settle(self) -> None:
        """Until all clusters are Ready or gone."""
        await self.until(lambda: not self.why_unsettled(), self.why_unsettled)

    async def verdict(self) -> None:
        """All rules: of what is left over, that there is peace, over the record, and of the tenants as they are.

        In the end all clusters are deleted, and nothing may be left of them.
        """
        context = f"seed {self.scale.seed} on {self.plane.name}: "
        homes = {
            home_of(name, obj["metadata"]["uid"]): name for name, obj in self.clusters.items() if name in self.wanted
        }
        left = Leftovers(self.plane, self.world, self.team, self.home)
        await left.insist_nothing_but(homes)
        await left.insist_peace(self.scale.of(2, 10))
        history = await self.witness.finish()
        insist(check(history), history, context)
        insist(at_rest(history), history, context)
        insist(rules.machines_keep_their_addresses(history), history, context)
        allocations = list(self.witness.state(ALLOCATION).values())
        tenants = await asyncio.gather(*(self._ask(home, name) for home, name in homes.items()))
        wrong = rules.wrong_tenants(tenants, allocations)
        assert not wrong, f"{context}{len(wrong)} tenants have what is not theirs: {wrong[:5]}"
        self._accounted_for(homes, allocations)
        await self.delete(list(self.wanted))
        await self.settle()
        await left.insist_nothing_but(())
        history = await self.witness.finish()
        insist([*check(history), *at_rest(history)], history, context)
        insist(rules.machines_keep_their_addresses(history), history, context)
        self._accounted_for({}, list(self.witness.state(ALLOCATION).values()))

    def _accounted_for(self, homes: dict[str, str], allocations: list[Json]) -> None:
        """Every address that a pool calls taken is one of a cluster that is there, and each has all of its own."""
        held = [found for allocation in allocations if (found := rules.held_by(allocation)) is not None]
        sizes = Counter[tuple[str, str]]()
        for home, kind, (first, last) in held:
            sizes[home, kind] += last - first + 1
        expected = {(home, kind): size for home in homes for kind, size in _SIZES.items()}
        assert dict(sizes) == expected, f"held {sizes}, and should be {expected}"
        taken = sum(pool["status"]["allocatedIPs"] for pool in self.witness.state(POOL).values())
        assert taken == len(homes) * PER_TENANT, f"pools count {taken} for {len(homes)} clusters"

    async def _ask(self, home: str, name: str) -> rules.Tenant:
        """What a tenant says of itself, through the kubeconfig that its user has."""
        path = f"/api/v1/namespaces/{home}/secrets/{name}-admin-kubeconfig"
        status, secret = await self.homes.send("GET", path)
        assert status == 200, f"{home} has no kubeconfig: {secret}"
        kubeconfig = self._folder / f"{home}.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_bytes(base64.b64decode(secret["data"]["admin.conf"]))
        tenant = ControlPlane.from_kubeconfig(home, kubeconfig, self._folder / home)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1, ssl=tenant.tls)) as session:
            found = [await _items(session, tenant.url + path) for path in _INSIDE]
            await asyncio.sleep(0.02)  # for the transports to notice
        return rules.tenant_of(home, *found)


_SIZES = {"nodes": NODES, "loadbalancer": BALANCERS}
_INSIDE = (
    "/api/v1/nodes",
    "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools",
    "/api/v1/services",
)


async def _items(session: aiohttp.ClientSession, url: str) -> list[Any]:
    async with session.get(url) as answer:
        body = await answer.json()
        assert answer.status == 200, f"{url}: {body}"
        return list(body["items"])


def _stages(clusters: dict[str, Json], names: Iterable[str]) -> dict[str, int]:
    found = ((clusters[name].get("status") or {}).get("deletion") or {} for name in names)
    return dict(Counter(str(obj.get("stage")) for obj in found))


def _megabytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) // 1024 for line in lines if line.startswith("VmRSS:")), 0)


def _pids_of(folder: Path) -> list[int]:
    """Processes whose command line names a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if any(word.startswith((str(folder), f"--data-dir={folder}")) for word in words[1:] if word):
            found.append(int(entry.name))
    return found
