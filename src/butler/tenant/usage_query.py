"""Asking tenants which addresses they use, through the kubeconfigs that Butler keeps of them.

A tenant may be down, and the user may not be allowed to read its kubeconfig. Neither is an error of the question that
was asked: what could not be learned is said in a sentence, beside what could.

The kubeconfigs are read with the client of the user: only users who may read them learn what the tenant says.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from butler.kube.errors import ApiError, ConfigError, Forbidden, KubeError, NotFound, Unreachable
from butler.kube.resource import SECRETS
from butler.tenant.clusters import TenantClients, kubeconfig_secret
from butler.tenant.inventory import take_inventory

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.objects import Key
    from butler.kube.client import Client
    from butler.tenant.inventory import Inventory

AT_ONCE = 16
LONGEST = 200


class Whom(NamedTuple):
    """A TenantCluster, and the namespace in the management cluster that has its kubeconfig."""

    key: Key
    uid: str
    namespace: str
    endpoint: str | None
    """Where its API server is, by the TenantCluster's status."""

    @property
    def secret(self) -> str:
        return kubeconfig_secret(self.key.name)


async def inventories(client: Client, whom: Iterable[Whom]) -> dict[Key, Inventory | str]:
    """What each of these tenants uses, or why it is not known. `client` reads the kubeconfigs."""
    turns = asyncio.Semaphore(AT_ONCE)
    asked = list(whom)
    endpoints = {one.uid: one.endpoint for one in asked}
    async with TenantClients(endpoints.get) as tenants:

        async def ask(one: Whom) -> Inventory | str:
            async with turns:
                try:
                    secret = await client.get(SECRETS, one.secret, one.namespace)
                    return await take_inventory(await tenants.client(one.key, one.uid, secret))
                except KubeError as error:
                    return why_silent(one, error)

        answers = await asyncio.gather(*map(ask, asked))
    return {one.key: answer for one, answer in zip(asked, answers, strict=True)}


def why_silent(one: Whom, error: KubeError) -> str:
    """Why a tenant could not be asked, in words that follow `not asked: `."""
    if isinstance(error, NotFound):
        return "it has no kubeconfig yet"
    if isinstance(error, Forbidden) and "secrets" in str(error):
        return f"you may not read Secret {one.namespace}/{one.secret}"
    if isinstance(error, ConfigError):
        return f"its kubeconfig is no use ({_short(error)})"
    if isinstance(error, Unreachable):
        return f"its API server cannot be reached ({_short(error)})"
    if isinstance(error, ApiError):
        # What it says is not repeated: the text may come from any server.
        return f"its API server answers {error.code}"
    return _short(error)


def _short(error: KubeError) -> str:
    said = " ".join(str(error).split())
    return said if len(said) <= LONGEST else f"{said[: LONGEST - 1]}…"
