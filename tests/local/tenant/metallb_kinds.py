"""MetalLB's kinds and namespace on a tenant, without MetalLB: put there and taken away, and pools read and edited."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from butler.ipam.addresses import Range, parse_range
from butler.kube.errors import AlreadyExists, KubeError
from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES
from butler.rules.loadbalancer.service import POOL
from butler.tenant import metallb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.objects import Json
    from butler.kube.client import Client


A, B = "10.40.1.0-10.40.1.7", "10.40.1.8-10.40.1.8"


def ranges(*texts: str) -> list[Range]:
    return [parse_range(*text.split("-"))[1] for text in texts]


async def pool(client: Client) -> Json:
    return await client.get(metallb.ADDRESS_POOLS, POOL, metallb.NAMESPACE)


async def edit(client: Client, spec: Json) -> None:
    """As a person does it."""
    patch = {"spec": spec}
    await client.patch(metallb.ADDRESS_POOLS, POOL, patch, metallb.NAMESPACE, field_manager="kubectl-edit")


async def until(condition: Any) -> None:
    """Wait for what an awaitable function says."""
    async with asyncio.timeout(60):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def is_gone(client: Client, resource: Any, name: str) -> bool:
    listed = await client.list(resource)
    return all(item["metadata"]["name"] != name for item in listed.items)


def definition(plural: str, kind: str, spec: Json) -> Json:
    """As strict as MetalLB's own about the fields that are used here; it prunes all others."""
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": spec}}
    return {
        "metadata": {"name": f"{plural}.metallb.io"},
        "spec": {
            "group": "metallb.io",
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


STRINGS: Json = {"type": "array", "items": {"type": "string"}}
DEFINITIONS = [
    definition(
        "ipaddresspools",
        "IPAddressPool",
        {
            "type": "object",
            "required": ["addresses"],
            "properties": {
                "addresses": {
                    **STRINGS,
                    # In place of the webhook, which refuses the same.
                    "x-kubernetes-validations": [
                        {"rule": "size(self) > 0", "message": "pool has no prefixes defined"},
                        {"rule": "!self.exists(a, a.startsWith('10.99.'))", "message": "overlaps with another pool"},
                    ],
                    "maxItems": 100,
                },
                "autoAssign": {"type": "boolean", "default": True},
                "avoidBuggyIPs": {"type": "boolean", "default": False},
                "serviceAllocation": {"type": "object", "properties": {"priority": {"type": "integer"}}},
            },
        },
    ),
    definition(
        "l2advertisements",
        "L2Advertisement",
        {"type": "object", "properties": {"ipAddressPools": STRINGS, "interfaces": STRINGS}},
    ),
]


async def remove_kinds(client: Client) -> None:
    for obj in DEFINITIONS:
        name = obj["metadata"]["name"]
        if not await is_gone(client, CUSTOM_RESOURCE_DEFINITIONS, name):
            await client.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        await until(lambda name=name: is_gone(client, CUSTOM_RESOURCE_DEFINITIONS, name))


async def remove_metallb(client: Client) -> None:
    await remove_kinds(client)
    if not await is_gone(client, NAMESPACES, metallb.NAMESPACE):
        await client.delete(NAMESPACES, metallb.NAMESPACE)
    await until(lambda: is_gone(client, NAMESPACES, metallb.NAMESPACE))


async def install_metallb_kinds(client: Client, definitions: Sequence[Json] = DEFINITIONS) -> None:
    for obj in definitions:
        with contextlib.suppress(AlreadyExists):
            await client.create(CUSTOM_RESOURCE_DEFINITIONS, obj)
    for resource in (metallb.ADDRESS_POOLS, metallb.ADVERTISEMENTS):

        async def served(resource: Any = resource) -> bool:
            try:
                await client.list(resource)
            except KubeError:
                return False
            return True

        await until(served)
