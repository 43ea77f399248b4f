"""One server with a MetalLB at work on it: the stand-in in this process, or the real controller as a process beside it.

A test that takes the fixture `served` cannot tell which of them it got, and so says what both do. Both can be stopped
and started again on what the server remembers. The server is shared with other tests, so what they left of
load balancers, pools and events is swept away first.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from butler.api.objects import Key
from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.metrics import Metrics
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SERVICES
from butler.local.world.addon_kinds import definitions
from butler.local.world.metallb import HOME, IP_ADDRESS_POOLS, TenantMetallb
from butler.local.world.metallb_signs import CONFIGURATION_STATES
from local.world_metallb.estate import Tenant, ensure_namespace
from metallb_controller import MetallbController, install

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from control_planes import ControlPlane

KEY = Key("tenant", "tenant")
KINDS = ("stand-in", "real")
SETTLE_SECONDS = 0.05


class AtWork(Protocol):
    """A MetalLB, as far as a test handles it."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


class OnlyTenant:
    """The way into the one cluster that there is."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def is_current(self, key: Key, client: Client) -> bool:
        return True

    @asynccontextmanager
    async def borrow(self, key: Key) -> AsyncIterator[Client]:
        yield self.client


class StandIn:
    """One tenant's stand-in, looking whenever it heard something."""

    def __init__(self, client: Client) -> None:
        self._tenants: Any = OnlyTenant(client)
        self._heard = asyncio.Event()
        self._running: tuple[TenantMetallb, asyncio.Task[None]] | None = None

    async def start(self) -> None:
        balancer = TenantMetallb(KEY, self._tenants, lambda _: self._heard.set(), Metrics())
        self._running = balancer, asyncio.create_task(self._look(balancer))

    async def stop(self) -> None:
        if self._running is None:
            return
        (balancer, looking), self._running = self._running, None
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await balancer.stop()

    async def _look(self, balancer: TenantMetallb) -> None:
        while True:
            await self._heard.wait()
            self._heard.clear()
            try:
                await balancer.look()
            except Exception:  # a conflict: look again, as a controller would
                await asyncio.sleep(0.01)
                self._heard.set()


class Served:
    """A cluster whose Services are served."""

    def __init__(self, control_plane: ControlPlane, tenant: Tenant, metallb: AtWork, kind: str) -> None:
        self.control_plane = control_plane
        self.tenant = tenant
        self.metallb = metallb
        self.kind = kind

    @classmethod
    @asynccontextmanager
    async def open(cls, kind: str, control_plane: ControlPlane, directory: Path) -> AsyncIterator[Served]:
        async with Client(config.load(control_plane.kubeconfig), field_manager="test") as client:
            metallb: AtWork
            if kind == "real":
                await install(client)
                metallb = MetallbController(control_plane.kubeconfig, directory)
            else:
                await _declare(client, control_plane)
                metallb = StandIn(client)
            await sweep(client, control_plane)
            await metallb.start()
            try:
                yield cls(control_plane, Tenant(KEY, client), metallb, kind)
            finally:
                await metallb.stop()
                await sweep(client, control_plane, ours=True)
            if isinstance(metallb, MetallbController):
                assert not metallb.panics()

    async def settle(self) -> None:
        """Let the real one hear of its own last write: it takes back an address that it does not know it has shown.

        (It works from what it has heard; told to go through all Services in that moment, it gives such a Service
        another address, and its first one to another Service.)
        """
        if self.kind == "real":
            await asyncio.sleep(SETTLE_SECONDS)

    async def restart(self) -> None:
        await self.metallb.stop()
        await self.metallb.start()


async def _declare(client: Client, control_plane: ControlPlane) -> None:
    """MetalLB's kinds and namespace as the stand-in for its addon leaves them."""
    await ensure_namespace(client, HOME)
    for definition in definitions("metallb"):
        await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, force=True)
    kinds = ("crd/ipaddresspools.metallb.io", "crd/configurationstates.metallb.io")
    control_plane.kubectl("wait", "--for=condition=Established", *kinds, "--timeout=60s")


async def sweep(client: Client, control_plane: ControlPlane, *, ours: bool = False) -> None:
    for obj in (await client.list(SERVICES)).items:
        if obj["spec"].get("type") == "LoadBalancer" or obj["metadata"]["name"].startswith("s0"):
            lent = not ours and not control_plane.disposable
            assert not lent, "a server that was lent has load balancers of its own, which this test would move"
            with suppress(NotFound):
                await client.delete(SERVICES, obj["metadata"]["name"], obj["metadata"]["namespace"])
    for obj in (await client.list(IP_ADDRESS_POOLS, HOME)).items:
        await client.delete(IP_ADDRESS_POOLS, obj["metadata"]["name"], HOME)
    with suppress(NotFound):
        await client.delete(CONFIGURATION_STATES, "controller", HOME)
    status, answer = await asyncio.to_thread(control_plane.request, "DELETE", "/api/v1/namespaces/default/events")
    assert status == 200, answer
