"""Asking tenants which addresses they use, through the kubeconfigs that Butler keeps of them.

A tenant may be down, and whoever asks may not be allowed to read its kubeconfig. Neither is an error of the question
that was asked: what could not be learned is said in a sentence, beside what could.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from butler.capi.naming import tenant_namespace
from butler.cli.frame.session import Access, explained
from butler.kube.client import Client
from butler.kube.errors import ConfigError, Forbidden, KubeError, NotFound, Unreachable
from butler.kube.objects import key_of
from butler.kube.resource import SECRETS
from butler.tenant.clusters import SHORT_TIMEOUTS, TenantClients, kubeconfig_secret
from butler.tenant.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.tenantcluster import TenantCluster
    from butler.cli.frame.session import Session
    from butler.kube.resource import Json, Key
    from butler.tenant.inventory import Inventory

AT_ONCE = 16
LONGEST = 200


async def inventories(session: Session, clusters: Iterable[TenantCluster]) -> dict[Key, Inventory | str]:
    """What each of these tenants uses, or why it is not known."""
    turns = asyncio.Semaphore(AT_ONCE)
    async with TenantClients() as tenants:

        async def ask(cluster: TenantCluster) -> Inventory | str:
            async with turns:
                try:
                    secret = await _kubeconfig(session, cluster)
                    client = await tenants.client(key_of(cluster), cluster.metadata.uid, secret)
                    return await take_inventory(client)
                except KubeError as error:
                    return why_silent(cluster, error)

        asked = list(clusters)
        answers = await asyncio.gather(*map(ask, asked))
    return {key_of(cluster): answer for cluster, answer in zip(asked, answers, strict=True)}


async def _kubeconfig(session: Session, cluster: TenantCluster) -> Json:
    return await session.client.get(SECRETS, kubeconfig_secret(cluster.metadata.name), tenant_namespace(cluster))


def why_silent(cluster: TenantCluster, error: KubeError) -> str:
    """Why a tenant could not be asked, in words that follow `not asked: `."""
    secret = f"{tenant_namespace(cluster)}/{kubeconfig_secret(cluster.metadata.name)}"
    if isinstance(error, NotFound):
        return "it has no kubeconfig yet"
    if isinstance(error, Forbidden) and "secrets" in str(error):
        return f"you may not read Secret {secret}"
    if isinstance(error, ConfigError):
        return f"its kubeconfig is no use ({_short(error)})"
    if isinstance(error, Unreachable):
        return f"its API server cannot be reached ({_short(error)})"
    return _short(error)


def _short(error: KubeError) -> str:
    said = " ".join(str(error).split())
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"


async def inventory_by(kubeconfig: str) -> Inventory:
    """What the cluster of a kubeconfig uses; Failure, in one sentence, when it cannot be asked."""
    connection = Access(kubeconfig).connection()
    try:
        async with Client(connection, timeouts=SHORT_TIMEOUTS, attempts=2, user_agent="butler-cli") as client:
            return await take_inventory(client)
    except KubeError as error:
        raise explained(error, connection) from None
