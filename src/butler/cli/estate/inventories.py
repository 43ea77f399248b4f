"""Asking tenants which addresses they use: those that Butler keeps a kubeconfig of, or one by a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.objects import key_of
from butler.cli.toolkit.session import ClusterAccess, explained
from butler.kube.client import Client
from butler.kube.errors import KubeError
from butler.rules.tenant_namespace import tenant_namespace
from butler.tenant import usage_query
from butler.tenant.clusters import SHORT_TIMEOUTS
from butler.tenant.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession
    from butler.tenant.inventory import Inventory


async def inventories(session: CommandSession, clusters: Iterable[TenantCluster]) -> dict[Key, Inventory | str]:
    """What each of these tenants uses, or why it is not known."""
    whom = [
        usage_query.Whom(
            key_of(cluster), cluster.metadata.uid, tenant_namespace(cluster), cluster.status.control_plane_endpoint
        )
        for cluster in clusters
    ]
    return await usage_query.inventories(session.client, whom)


async def inventory_by(kubeconfig: str) -> Inventory:
    """What the cluster of a kubeconfig uses; Failure, in one sentence, when it cannot be asked."""
    connection = ClusterAccess(kubeconfig).connection()
    try:
        async with Client(connection, timeouts=SHORT_TIMEOUTS, attempts=2, user_agent="butler-cli") as client:
            return await take_inventory(client)
    except KubeError as error:
        raise explained(error, connection) from None
