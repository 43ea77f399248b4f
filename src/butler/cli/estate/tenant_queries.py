"""Asking tenants what is on them, many at once, for a check: MetalLB's pools, Services and nodes. Nothing is written.

A few tenants at a time, each with its own time limit: one that hangs, refuses or sends garbage is told of, and keeps
no other from being asked.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from butler.api.objects import key_of, name_of
from butler.kube.errors import ApiError, BadAnswer, KubeError, NotFound
from butler.kube.resource import NODES, SECRETS
from butler.reports.fsck import NodeAddresses, TenantAnswers
from butler.rules.tenant_namespace import tenant_namespace
from butler.tenant.clusters import TenantClients, kubeconfig_secret
from butler.tenant.metallb import ADDRESS_POOLS, ADVERTISEMENT, ADVERTISEMENTS, NAMESPACE
from butler.tenant.services import PAGE, address_in, load_balancers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from butler.api.objects import Json, Key
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession
    from butler.kube.client import Client

AT_ONCE: Final = 16
PATIENCE: Final = 15.0
"""Seconds for all that one tenant is asked."""
MOST: Final = 10_000
LONGEST: Final = 300


async def ask_tenants(
    session: CommandSession, clusters: Sequence[TenantCluster], tell: Callable[[int], None]
) -> dict[Key, TenantAnswers]:
    """What is on each of these; `tell` hears how many have been asked."""
    sides: dict[Key, TenantAnswers] = {}
    left = iter(clusters)

    async def work(clients: TenantClients) -> None:
        for cluster in left:
            sides[key_of(cluster)] = await _ask(session, clients, cluster)
            tell(len(sides))

    endpoints = {cluster.metadata.uid: cluster.status.control_plane_endpoint for cluster in clusters}
    async with TenantClients(endpoints.get) as clients, asyncio.TaskGroup() as group:
        for _ in range(min(AT_ONCE, len(clusters))):
            group.create_task(work(clients))
    return sides


async def _ask(session: CommandSession, clients: TenantClients, cluster: TenantCluster) -> TenantAnswers:
    key, uid = key_of(cluster), cluster.metadata.uid
    try:
        async with asyncio.timeout(PATIENCE):
            secret = await session.client.get(SECRETS, kubeconfig_secret(key.name), tenant_namespace(cluster))
            client = await clients.client(key, uid, secret)
            pools, announced, services, nodes = await asyncio.gather(
                _pools(client), _advertisement(client), load_balancers(client), _nodes(client)
            )
    except TimeoutError:
        return TenantAnswers(trouble=f"it did not answer within {PATIENCE:.0f} s")
    except KubeError as error:
        said = error.message if isinstance(error, ApiError) and error.message else str(error)
        return TenantAnswers(trouble=said[:LONGEST] or type(error).__name__)
    finally:
        await clients.forget(uid)
    return TenantAnswers("", pools, announced, tuple(services), nodes)


async def _pools(client: Client) -> tuple[Json, ...] | None:
    try:
        listed = await client.list(ADDRESS_POOLS, NAMESPACE, limit=PAGE, max_items=MOST)
    except NotFound:
        return None
    return tuple(_named(pool) for pool in listed.items)


async def _advertisement(client: Client) -> Json | None:
    try:
        return await client.get(ADVERTISEMENTS, ADVERTISEMENT, NAMESPACE)
    except NotFound:
        return None


async def _nodes(client: Client) -> tuple[NodeAddresses, ...]:
    listed = await client.list(NODES, limit=PAGE, max_items=MOST)
    return tuple(NodeAddresses(name_of(_named(node)), _internal(node)) for node in listed.items)


def _internal(node: Json) -> tuple[str, ...]:
    status: Any = node.get("status")
    shown = status.get("addresses") if isinstance(status, dict) else None
    return tuple(
        found
        for item in (shown if isinstance(shown, list) else ())
        if isinstance(item, dict) and item.get("type") == "InternalIP"
        if (found := address_in(str(item.get("address", "")))) is not None
    )


def _named(obj: Json) -> Json:
    """A tenant's object that has at least a name; tenants are not trusted to send one."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
        raise BadAnswer("an object of the tenant has no name")
    return obj
