"""A client whose connection is cut again and again, between two replicas, ends up knowing what the server knows."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from server.eventually import eventually
from server.follower import KINDS, Follower, load, serving
from server.objects import GROUP, HOME, Json, allocation, create, pool
from server.rights import namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.server.process import Running
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
CHANGES = 250
OURS = f"/apis/{GROUP}/namespaces"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def replicas(plane: ControlPlane) -> AsyncIterator[list[Running]]:
    """Two servers of one control plane, as behind a balancer."""
    async with serving(plane) as one, serving(plane) as other:
        yield [one, other]


class History:
    """Random changes to pools, allocations, tenants and providers, one at a time."""

    def __init__(self, plane: ControlPlane, rng: random.Random, network: str) -> None:
        self._plane = plane
        self._rng = rng
        self._tag = network.replace(".", "-")
        self._pools = [f"cuts-{self._tag}-{number}" for number in range(3)]
        self._team = namespace(plane, f"team-{self._tag}")
        for number, name in enumerate(self._pools):
            create(plane, pool(name, f"{network}.{number}.0/24"))
        create(plane, self._provider())
        self._alive: list[tuple[str, str]] = []
        self._made = 0

    def _provider(self) -> Json:
        """A provider for tenants of some of the pools; its Secret does not exist, and the provider is never called."""
        some = self._rng.sample(self._pools, 2)
        spec = {
            "provider": "harvester",
            "credentialsRef": {"name": "never-made"},
            "harvester": {"namespace": "default", "networkName": "default/workloads"},
            "network": {"mode": "ipam", "poolRefs": [{"name": text} for text in some]},
        }
        meta = {"name": f"cuts-{self._tag}", "namespace": HOME}
        return {"apiVersion": GROUP, "kind": "ProviderConfig", "metadata": meta, "spec": spec}

    def step(self) -> None:
        """One change; refusals are part of life."""
        moves: list[Callable[[], object]] = [
            self._ask,
            self._ask,
            self._ask,
            self._touch_pool,
            self._move,
            self._tenant,
        ]
        if self._alive:
            moves += [self._drop, self._drop, self._annotate]
        self._rng.choice(moves)()

    def _path(self, plural: str, name: str = "", where: str = HOME) -> str:
        return f"{OURS}/{where}/{plural}{f'/{name}' if name else ''}"

    def _ask(self) -> None:
        self._made += 1
        name = f"cuts-{self._tag}-a{self._made}"
        asked = allocation(name, self._rng.choice(self._pools), self._rng.randint(1, 9), namespace=self._team)
        self._plane.request("POST", self._path("ipallocations"), asked)
        self._alive.append(("ipallocations", name))

    def _tenant(self) -> None:
        self._made += 1
        name = f"t{self._made}"
        spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": self._rng.randint(1, 3)}}
        meta = {"name": name, "namespace": self._team}
        tenant = {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": spec}
        status, _ = self._plane.request("POST", self._path("tenantclusters", where=self._team), tenant)
        if status == 201:
            self._alive.append(("tenantclusters", name))

    def _move(self) -> None:
        path = self._path("providerconfigs", f"cuts-{self._tag}")
        status, found = self._plane.request("GET", path)
        if status == 200:
            self._plane.request("PUT", path, {**found, "spec": self._provider()["spec"]})

    def _drop(self) -> None:
        plural, name = self._alive.pop(self._rng.randrange(len(self._alive)))
        self._plane.request("DELETE", self._path(plural, name, self._where(plural)))

    def _where(self, plural: str) -> str:
        return HOME if plural == "ipallocations" else self._team

    def _annotate(self) -> None:
        plural, name = self._rng.choice(self._alive)
        path = self._path(plural, name, self._where(plural))
        status, found = self._plane.request("GET", path)
        if status == 200:
            found["metadata"].setdefault("annotations", {})["mood"] = str(self._rng.random())
            self._plane.request("PUT", path, found)

    def _touch_pool(self) -> None:
        path = self._path("networkpools", self._rng.choice(self._pools))
        status, found = self._plane.request("GET", path)
        if status == 200:
            cidr = f"{found['spec']['cidr'].rsplit('.', 1)[0]}.{self._rng.choice((192, 208, 224, 240))}/28"
            found["spec"]["reserved"] = [{"cidr": cidr, "description": "routers"}]
            self._plane.request("PUT", path, found)


async def follow_through_cuts(follower: Follower, replicas: list[Running], rng: random.Random) -> None:
    """Stay with one of the replicas until the connection is cut; then go to one of them again."""
    while True:
        task = asyncio.create_task(follower.run(rng.choice(replicas).url))
        try:
            await asyncio.sleep(rng.expovariate(4))
            follower.cut()
            async with asyncio.timeout(20):
                await task
        finally:
            task.cancel()


async def known(url: str, session: aiohttp.ClientSession) -> dict[str, dict[str, Json]]:
    return {kind: await load(session, url, kind) for kind in KINDS}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 12))])
async def test_cuts_lose_nothing(replicas: list[Running], plane: ControlPlane, network: str, seed: int) -> None:
    rng = random.Random(seed)
    # Before any client listens: so both replicas have seen every kind change, and know it from then on.
    history = await asyncio.to_thread(History, plane, rng, network)
    await asyncio.sleep(1)
    async with aiohttp.ClientSession() as session:
        followers = [Follower(session) for _ in range(3)]
        tasks = [
            asyncio.create_task(follow_through_cuts(item, replicas, random.Random(rng.random()))) for item in followers
        ]
        for _ in range(CHANGES):
            await asyncio.to_thread(history.step)
            if rng.random() < 0.1:
                await asyncio.sleep(rng.expovariate(20))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _all_know_the_same(followers, replicas, session, rng)
        hellos = sum(frame["type"] == "hello" for follower in followers for frame in follower.frames)
        resets = sum(len(follower.resets) for follower in followers)
        print(f"seed {seed}: {CHANGES} changes, {hellos} connections, {resets} times told to load again")
        assert hellos > 10
        assert resets <= hellos / 10


async def _all_know_the_same(
    followers: list[Follower], replicas: list[Running], session: aiohttp.ClientSession, rng: random.Random
) -> None:
    last = [asyncio.create_task(item.run(rng.choice(replicas).url)) for item in followers]

    async def same() -> None:
        truth = [await known(replica.url, session) for replica in replicas]
        for kind in KINDS:
            assert truth[0][kind] == truth[1][kind]
            for follower in followers:
                assert _differences(follower.state[kind], truth[0][kind]) == {}

    try:
        await eventually(same, seconds=60)
    finally:
        for task in last:
            task.cancel()
        await asyncio.gather(*last, return_exceptions=True)


def _differences(here: dict[str, Json], there: dict[str, Json]) -> dict[str, tuple[Json | None, Json | None]]:
    keys = {*here, *there}
    return {key: (here.get(key), there.get(key)) for key in keys if here.get(key) != there.get(key)}
