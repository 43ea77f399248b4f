"""The demo on a real control plane: the worked example happens, what people made stays, and a restart goes on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube import config
from butler.kube.client import Client
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS
from butler.kube.resource import CONFIGMAPS, NAMESPACES
from butler.local.demo import objects
from butler.local.demo.cast import EIGHT
from butler.local.demo.demo import DemoSettings, running_demo
from butler.local.demo.player import Player
from butler.local.demo.story import Come, Publish
from butler.tenant.clusters import TenantClients
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from butler.kube.config import Connection

HOME = "butler-system"
PATIENCE = 240.0
FAST = DemoSettings(pace=0.1)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with LocalServer(tmp_path, controllers=True, options=("--shrink-after", "1")) as server:
        yield config.load(server.data_dir / "kubeconfig")
        assert "ERROR" not in server.log()


@dataclass
class Seen:
    """All that was true of the pool at some time."""

    client: Client
    told: list[str] = field(default_factory=list)
    states: set[tuple[int, int]] = field(default_factory=set)

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                pool = next((item for item in (await self.client.list(POOLS, HOME)).items if _is(item)), None)
                if pool is not None:
                    self.states.add((pool.status.allocated_ips or 0, pool.status.total_ips or 0))
                await asyncio.sleep(0.05)


def _is(pool: Any) -> bool:
    return bool(pool.metadata.name == objects.POOL)


def _pool(name: str, cidr: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": HOME}, "spec": {"cidr": cidr}}


async def test_the_worked_example_happens_and_what_people_made_stays(connection: Connection) -> None:
    async with Client(connection) as client:
        mine = await client.create(POOLS, _pool("mine", "10.77.0.0/24"))
        await client.create(NAMESPACES, {"metadata": {"name": "team-shop"}})
        spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}, "providerConfigRef": {"name": "unknown"}}
        cluster = await client.create(CLUSTERS, {"metadata": {"name": "mine", "namespace": "team-shop"}, "spec": spec})
        seen = Seen(client)
        async with running_demo(connection, FAST, seen.told.append):
            await seen.until("eight have come", lambda: (16, 32) in seen.states)
            await seen.until("one has grown", lambda: (17, 32) in seen.states)
        seen.states.clear()
        before = (await client.get(CONFIGMAPS, objects.CURSOR, HOME))["data"]
        async with running_demo(connection, FAST, seen.told.append):
            await seen.until("it says that it goes on", lambda: "The demo goes on where it was." in seen.told)
            await seen.until("the pool warns and is critical", lambda: {(24, 32), (28, 32)} <= seen.states)
            await seen.until("the pool is full", lambda: (32, 32) in seen.states)
            await seen.until("the pool has grown", lambda: any(total == 48 for _, total in seen.states))
            await seen.until("one that waited has got its addresses", lambda: any(n > 32 for n, _ in seen.states))
            seen.states.clear()
            await seen.until("the pool is as it was", lambda: any(total == 32 for _, total in seen.states))
        assert int(before["act"]) > 0

        now = await client.get(POOLS, "mine", HOME)
        assert (now.metadata.uid, now.metadata.generation) == (mine.metadata.uid, mine.metadata.generation)
        there = await client.get(CLUSTERS, "mine", "team-shop")
        assert (there.metadata.uid, there.metadata.deletion_timestamp) == (cluster.metadata.uid, None)
        assert there.metadata.labels == {}
        labels = (await client.get(NAMESPACES, "team-shop"))["metadata"]["labels"]
        assert objects.LABEL[0] not in labels
        listed = {(item.metadata.namespace, item.metadata.name) for item in (await client.list(CLUSTERS)).items}
        assert listed >= set(EIGHT)


async def test_where_the_stage_is_taken_it_says_so_and_touches_nothing(connection: Connection) -> None:
    async with Client(connection) as client:
        await client.create(POOLS, _pool(objects.POOL, "10.92.90.0/23"))
        seen = Seen(client)
        async with running_demo(connection, FAST, seen.told.append):
            await seen.until("it has spoken", lambda: bool(seen.told))
            await asyncio.sleep(1)
        (told,) = seen.told
        assert f"NetworkPool {HOME}/{objects.POOL} is there already and is not the demo's" in told
        assert [pool.metadata.name for pool in (await client.list(POOLS)).items] == [objects.POOL]
        assert (await client.list(CLUSTERS)).items == []
        assert (await client.list(ALLOCATIONS)).items == []


async def test_what_a_user_put_into_a_cluster_is_found(connection: Connection) -> None:
    """Such a cluster is known as lived in, and so never leaves."""
    async with Client(connection) as client, TenantClients() as tenants:
        player = Player(client, tenants, HOME, 1)
        await player.set_stage()
        for name in ("ledger", "reports"):
            await player.do(Come("team-finance", name))

        async def settled() -> dict[str, Any]:
            async with asyncio.timeout(PATIENCE):
                while True:
                    scene = await player.look()
                    assert scene is not None
                    found = {tenant.name: tenant for tenant in scene.tenants}
                    if len(found) == 2 and all(text.open for text in found.values()):
                        return found
                    await asyncio.sleep(0.1)

        found = await settled()
        assert not any(text.lived_in for text in found.values())
        await player.do(Publish(found["reports"], "api"))
        inside = await player._client_of(found["ledger"])
        assert inside is not None
        await inside.create(NAMESPACES, {"metadata": {"name": "of-a-person"}})
        found = await settled()
        assert found["ledger"].lived_in
        assert not found["reports"].lived_in
        assert [service.name for service in found["reports"].services] == ["api"]
