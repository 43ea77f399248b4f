"""The same history of Services and pools on a server with MetalLB's stand-in at work, and on its rules alone.

Both API servers take part: what a Service shows is written through its status, and servers differ there in defaults
and in what they clear by themselves. `make test-metallb` plays many more histories.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.metrics import Metrics
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SERVICES, Key
from butler.local.world.addon_kinds import definitions
from butler.local.world.metallb import HOME, IP_ADDRESS_POOLS, Balancer
from local.world_metallb.estate import Tenant, ensure_namespace
from local.world_metallb.history import NAMESPACE, Replay, Step, random_steps, scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

KEY = Key("tenant", "tenant")


class OnlyTenant:
    """The way into the one cluster that there is."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def is_current(self, key: Key, client: Client) -> bool:
        return True

    @asynccontextmanager
    async def borrow(self, key: Key) -> AsyncIterator[Client]:
        yield self.client


@pytest.fixture
async def tenant(control_plane: ControlPlane) -> AsyncIterator[Tenant]:
    """A server with MetalLB's kinds, without pools and without load balancers, and a MetalLB at work on it."""
    async with Client(config.load(control_plane.kubeconfig), field_manager="test") as client:
        await ensure_namespace(client, HOME)
        for definition in definitions("metallb"):
            await client.apply(CUSTOM_RESOURCE_DEFINITIONS, definition, force=True)
        control_plane.kubectl("wait", "--for=condition=Established", "crd/ipaddresspools.metallb.io", "--timeout=60s")
        found = Tenant(KEY, client)
        await sweep(client, disposable=control_plane.disposable)
        async with at_work(client):
            yield found
        await sweep(client, disposable=True)


async def sweep(client: Client, *, disposable: bool) -> None:
    for each in (await client.list(SERVICES)).items:
        if each["spec"].get("type") == "LoadBalancer" or each["metadata"]["name"].startswith("s0"):
            assert disposable, "a server that was lent has load balancers of its own, which this test would move"
            await client.delete(SERVICES, each["metadata"]["name"], each["metadata"]["namespace"])
    for each in (await client.list(IP_ADDRESS_POOLS, HOME)).items:
        await client.delete(IP_ADDRESS_POOLS, each["metadata"]["name"], HOME)


@asynccontextmanager
async def at_work(client: Client) -> AsyncIterator[None]:
    """One tenant's MetalLB, looking whenever it heard something."""
    heard = asyncio.Event()

    async def look() -> None:
        while True:
            await heard.wait()
            heard.clear()
            try:
                await balancer.look()
            except Exception:  # a conflict: look again, as a controller would
                await asyncio.sleep(0.01)
                heard.set()

    tenants: Any = OnlyTenant(client)
    balancer = Balancer(KEY, tenants, lambda _: heard.set(), Metrics())
    looking = asyncio.create_task(look())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        await balancer.stop()


async def play(tenant: Tenant, steps: list[Step]) -> None:
    replay = Replay()
    story = []
    for step in steps:
        wanted = replay.play(step)
        story.append(f"{step}\n    -> {json.dumps(wanted)}")
        await take(tenant.client, step)
        for _ in range(600):
            seen = await tenant.addresses()
            if seen == wanted:
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError("\n".join([*story, f"    but there is {json.dumps(seen)}"]))


async def take(client: Client, step: Step) -> None:
    resource, namespace = (SERVICES, NAMESPACE) if step.kind == "service" else (IP_ADDRESS_POOLS, HOME)
    if step.obj is None:
        try:
            await client.delete(resource, step.name, namespace)
        except NotFound:
            raise AssertionError(f"{step}: nothing there to remove") from None
        return
    obj = {**step.obj, "metadata": {**step.obj["metadata"], "namespace": namespace}}
    await client.apply(resource, obj, force=True, field_manager="test")


async def test_the_scripted_history_gives_the_same_addresses_as_the_rules(tenant: Tenant) -> None:
    await play(tenant, scripted())


async def test_a_random_history_gives_the_same_addresses_as_the_rules(tenant: Tenant) -> None:
    await play(tenant, random_steps(int(os.environ.get("BUTLER_SEED", "7")), 40))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
async def test_many_random_histories_give_the_same_addresses_as_the_rules(tenant: Tenant, seed: int) -> None:
    await play(tenant, random_steps(1000 + seed, 120))
