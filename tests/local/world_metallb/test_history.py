"""The same history of Services and pools on a server with a MetalLB at work, and on MetalLB's rules alone.

The MetalLB is the stand-in and then the real one: the rules are the stand-in's own, so where the two agree with them
they agree with each other: in the addresses of Services, the counts of pools, and why pools are refused. Both API
servers take part: what a Service shows is written through its status, and servers differ there in defaults and in what
they clear by themselves. `make test-metallb` plays many more histories.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from butler.kube.errors import NotFound
from butler.kube.resource import SERVICES
from butler.local.world.metallb import HOME, IP_ADDRESS_POOLS
from local.world_metallb.history import NAMESPACE, Replay, Step, random_steps, scripted

if TYPE_CHECKING:
    from butler.kube.client import Client
    from butler.local.world.metallb_allocator import Counts
    from local.world_metallb.estate import Tenant
    from local.world_metallb.served import Served


async def play(served: Served, steps: list[Step]) -> None:
    replay = Replay()
    story = []
    for step in steps:
        wanted = replay.play(step), replay.counts(), replay.refusal
        story.append(f"{step}\n    -> {wanted}")
        await served.settle()
        await take(served.tenant.client, step)
        for _ in range(1500):
            seen = await shown(served.tenant)
            if seen == wanted:
                break
            await asyncio.sleep(0.02)
        else:
            raise AssertionError("\n".join([*story, f"    but there is {seen}"]))
    await asyncio.sleep(0.2)  # nothing changes any more
    assert await shown(served.tenant) == wanted, "\n".join(story)


async def shown(tenant: Tenant) -> tuple[dict[str, list[str]], dict[str, Counts], str]:
    """What Services, pools and MetalLB itself show."""
    return await tenant.addresses(), await tenant.counts(), await tenant.refusal()


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


async def test_the_scripted_history_gives_the_same_addresses_as_the_rules(served: Served) -> None:
    await play(served, scripted())


async def test_a_random_history_gives_the_same_addresses_as_the_rules(served: Served) -> None:
    await play(served, random_steps(int(os.environ.get("BUTLER_SEED", "7")), 40))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(25))
async def test_many_random_histories_give_the_same_addresses_as_the_rules(served: Served, seed: int) -> None:
    await play(served, random_steps(1000 + seed, 120))
