"""Butler's address management running in the test's own process, on whichever control plane a test got.

Everything happens in one namespace that no other test uses, so that many may share a server. `Estate` is the
outsider's view: it creates, deletes and reads through a client of its own, and counts what Butler writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from butler.api.ipallocation import IPAllocation
from butler.api.labels import Finalizer, Label
from butler.api.networkpool import NetworkPool
from butler.api.tenantcluster import TenantCluster
from butler.controllers.networkpool.setup import add_ipam
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.operator import Operator
from butler.kube.resource import EVENTS, resource_of
from butler.rules.pool.settings import IpamSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from butler.api.objects import Json
    from butler.kube.config import Connection
    from control_planes import ControlPlane

T = TypeVar("T")
PATIENCE = 60.0
POOLS = resource_of(NetworkPool)
ALLOCATIONS = resource_of(IPAllocation)
TENANTS = resource_of(TenantCluster)
OURS = str(Finalizer.IP_ALLOCATION)
WRITES = ("create", "patch", "update", "apply", "delete")


class Estate:
    """One namespace, seen from outside."""

    def __init__(self, client: Client, connection: Connection, namespace: str) -> None:
        self.client = client
        self.connection = connection
        self.namespace = namespace
        self.writes: Counter[str] = Counter()
        """What Butler wrote with success, by kind."""

    @asynccontextmanager
    async def butler(
        self, *, client: type[Client] = Client, connection: Connection | None = None, **settings: Any
    ) -> AsyncIterator[Operator]:
        """Address management at work, until the end of the block."""
        async with client(connection or self.connection, observe=self._count) as own:
            operator = Operator(own, "butler-test", stop_within=4.0)
            settings.setdefault("note_after", timedelta(hours=1))  # writes are counted, and this one comes late
            add_ipam(operator, IpamSettings(namespace=self.namespace, home_namespace=self.namespace, **settings))
            running = asyncio.create_task(operator.run(handle_signals=False))
            try:
                yield operator
            finally:
                operator.stop()
                await running

    def _count(self, verb: str, resource: str, code: str, _seconds: float) -> None:
        if verb in WRITES and code.startswith("2"):
            self.writes[resource.partition(".")[0]] += 1

    async def pool(self, name: str = "pool", cidr: str = "10.40.0.0/24") -> NetworkPool:
        body = {"metadata": {"name": name}, "spec": {"cidr": cidr}}
        return await self.client.create(POOLS, body, self.namespace)

    async def tenant(self, name: str = "web") -> TenantCluster:
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab"},
            "workers": {"replicas": 1, "machineTemplate": {"os": {"type": "flatcar"}}},
        }
        return await self.client.create(TENANTS, {"metadata": {"name": name}, "spec": spec}, self.namespace)

    async def request(
        self,
        name: str,
        count: int = 2,
        *,
        tenant: str = "web",
        owner: str | None = None,
        pool: str = "pool",
        finalizers: tuple[str, ...] = (),
    ) -> IPAllocation:
        body: Json = {
            "metadata": {
                "name": name,
                "finalizers": list(finalizers),
                "labels": {Label.TENANT_UID: owner} if owner else {},
            },
            "spec": {
                "poolRef": {"name": pool},
                "tenantClusterRef": {"name": tenant, "namespace": self.namespace},
                "type": "loadbalancer",
                "count": count,
            },
        }
        return await self.client.create(ALLOCATIONS, body, self.namespace)

    async def read(self, name: str) -> IPAllocation | None:
        with suppress(NotFound):
            return await self.client.get(ALLOCATIONS, name, self.namespace)
        return None

    async def all(self) -> list[IPAllocation]:
        return (await self.client.list(ALLOCATIONS, self.namespace)).items

    async def read_pool(self, name: str = "pool") -> NetworkPool:
        return await self.client.get(POOLS, name, self.namespace)

    async def delete(self, name: str) -> None:
        await self.client.delete(ALLOCATIONS, name, self.namespace)

    async def until(self, name: str, is_so: Callable[[IPAllocation], bool], what: str) -> IPAllocation:
        """Wait for a state of one allocation, and give it."""
        found = await eventually(
            lambda: self.read(name), lambda item: item is not None and is_so(item), f"{name} is {what}"
        )
        assert found is not None
        return found

    async def phase(self, name: str, phase: str) -> IPAllocation:
        return await self.until(name, lambda item: item.status.phase == phase, phase)

    async def gone(self, *names: str) -> None:
        for name in names:
            await eventually(lambda name=name: self.read(name), lambda item: item is None, f"{name} is gone")  # type: ignore[misc]

    async def allocated_ips(self, wanted: int) -> None:
        """Wait until the pool counts so many addresses as held."""
        held = f"the pool holds {wanted} addresses"
        await eventually(self.read_pool, lambda pool: pool.status.allocated_ips == wanted, held)

    async def events(self, reason: str, at_least: int = 1) -> list[str]:
        """Messages of the events with this reason, once there are enough."""

        async def told() -> list[str]:
            listed = (await self.client.list(EVENTS, self.namespace)).items
            return [obj["message"] for obj in listed if obj["reason"] == reason]

        return await eventually(told, lambda found: len(found) >= at_least, f"{at_least} events {reason}")

    async def at_rest(self, seconds: float = 1.0) -> bool:
        """Whether nothing is written for a while, once the pool has been tidied up."""
        await eventually(self.read_pool, lambda pool: not pool.status.intents, "all grants are carried out")
        await asyncio.sleep(0.5)
        before = self.writes.copy()
        await asyncio.sleep(seconds)
        return self.writes == before


async def eventually(read: Callable[[], Awaitable[T]], is_so: Callable[[T], bool], what: str) -> T:
    """Read until it is so; fails with the last that was read."""
    last: T | None = None
    try:
        async with asyncio.timeout(PATIENCE):
            while not is_so(last := await read()):  # noqa: ASYNC110  # the state of another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"not within {PATIENCE:.0f} s: {what}, but {last}")
    return cast("T", last)


@asynccontextmanager
async def an_estate(control_plane: ControlPlane) -> AsyncIterator[Estate]:
    connection = config.load(control_plane.kubeconfig)
    async with Client(connection) as client:
        yield Estate(client, connection, control_plane.fresh_namespace("ipam"))
