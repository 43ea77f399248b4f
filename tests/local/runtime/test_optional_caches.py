"""A kind that is installed after the process started, on both control planes."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

from butler.kube.controller import Controller
from butler.kube.operator import Operator
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, untyped
from butler.kube.retry import Backoff

if TYPE_CHECKING:
    from butler.api.objects import Json, Key
    from butler.kube.client import Client


def definition(group: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "metadata": {"name": f"gadgets.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "gadgets", "kind": "Gadget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_objects_of_a_kind_installed_later_reach_the_controller(client: Client, namespace: str) -> None:
    group = f"t{secrets.token_hex(4)}.example.com"
    gadgets = untyped(group, "v1", "gadgets", "Gadget")
    seen: set[str] = set()

    async def reconcile(key: Key) -> None:
        seen.add(key.name)

    operator = Operator(client)
    cache = operator.cache(gadgets, namespace=namespace, required=False, look_for_kind=Backoff(0.2, cap=0.5))
    operator.add(Controller("gadgets", reconcile).watches(cache))
    task = asyncio.create_task(operator.run(handle_signals=False))
    try:
        await until(lambda: cache.is_absent)
        assert (operator.why_unready(), operator.why_unhealthy()) == ([], [])
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, definition(group))
        await until(lambda: cache.has_synced)
        await client.create(gadgets, {"metadata": {"name": "one"}}, namespace)
        await until(lambda: "one" in seen)
        await client.delete(CUSTOM_RESOURCE_DEFINITIONS, f"gadgets.{group}")
        await until(lambda: cache.is_absent)
        assert operator.why_unhealthy() == []
    finally:
        operator.stop()
        await asyncio.wait_for(task, 30)
