"""Which addresses a tenant uses, as its own API server tells: MetalLB's pools, its nodes, its load balancers.

For people who ask (who has this address, what hangs on these, adopt what runs), not for controllers, which follow.
Everything MetalLB may announce counts, in whichever IPAddressPool it stands. As everywhere, a tenant is not trusted:
lists are bounded, and what has not its shape is an error rather than passed over, or an address would look unused.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from butler.kube.errors import BadAnswer, NotFound
from butler.kube.resource import NODES
from butler.tenant.metallb import ADDRESS_POOLS
from butler.tenant.services import PAGE, address_in, load_balancers

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.kube.client import Client
    from butler.rules.loadbalancer.service import Balancer

MOST_NODES = 10_000
MOST_POOLS = 1_000
SECONDS = 20.0
"""For everything that one tenant is asked."""


class PoolEntry(NamedTuple):
    """One entry of an IPAddressPool, as it is written: `start-end` or a network."""

    pool: str
    text: str


class NodeAddress(NamedTuple):
    """An InternalIP of a Node."""

    node: str
    address: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """What a tenant uses."""

    entries: tuple[PoolEntry, ...] = ()
    nodes: tuple[NodeAddress, ...] = ()
    balancers: tuple[Balancer, ...] = ()
    has_metallb: bool = True


async def take_inventory(client: Client) -> Inventory:
    """Ask a tenant, all at once. Raises KubeError."""
    try:
        async with asyncio.timeout(SECONDS):
            entries, nodes, balancers = await asyncio.gather(_entries(client), _nodes(client), load_balancers(client))
    except TimeoutError:
        raise BadAnswer(f"it did not answer within {SECONDS:.0f} s") from None
    return Inventory(entries or (), nodes, tuple(balancers), entries is not None)


async def _entries(client: Client) -> tuple[PoolEntry, ...] | None:
    """All entries of all pools; None where MetalLB is not installed."""
    try:
        listed = await client.list(ADDRESS_POOLS, limit=PAGE, max_items=MOST_POOLS)
    except NotFound:
        return None
    return tuple(PoolEntry(_name(obj), text) for obj in listed.items for text in _texts(obj, "spec", "addresses"))


async def _nodes(client: Client) -> tuple[NodeAddress, ...]:
    listed = await client.list(NODES, limit=PAGE, max_items=MOST_NODES)
    return tuple(
        NodeAddress(_name(obj), address)
        for obj in listed.items
        for shown in _list(obj, "status", "addresses")
        if isinstance(shown, dict)
        and shown.get("type") == "InternalIP"
        and (address := address_in(str(shown.get("address", "")))) is not None
    )


def _name(obj: Json) -> str:
    name = obj.get("metadata", {}).get("name")
    if not isinstance(name, str) or not name:
        raise BadAnswer("an object of the tenant has no name")
    return name[:253]


def _list(obj: Json, *path: str) -> list[Any]:
    found: Any = obj
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadAnswer(f"{_name(obj)}: {'.'.join(path)} is no list")
    return found


def _texts(obj: Json, *path: str) -> list[str]:
    found = _list(obj, *path)
    if not all(isinstance(item, str) for item in found):
        raise BadAnswer(f"{_name(obj)}: {'.'.join(path)} has something that is no text")
    return found
