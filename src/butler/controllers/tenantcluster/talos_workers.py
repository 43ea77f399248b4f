"""The configuration of Talos machines, put together from what Steward and the tenant provide.

The Secret's name follows its content, because machines that were made from another configuration have to be replaced.
The token for joining is left out of that: it is renewed every day, and only machines to come need the new one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from butler.capi.talos import Trust, bootstrap_secret
from butler.controllers.tenantcluster.credentials import decoded
from butler.kube.errors import KubeError
from butler.kube.resource import SECRETS
from butler.tenant.bootstrap_token import bootstrap_token

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from butler.api.objects import Json
    from butler.controllers.tenantcluster.tenant_side import TenantAccess
    from butler.kube.client import Client
    from butler.rules.tenant.blueprint import Blueprint

ANY_TOKEN = "abcdef.0123456789abcdef"  # noqa: S105  # stands for the real one in what the name is made from


async def worker_secret(client: Client, tenants: TenantAccess, blueprint: Blueprint, now: datetime) -> Json | None:
    """The Secret that machines start with; None until the control plane can let them in."""
    if blueprint.endpoint is None:
        return None
    try:
        trustd = await _read(client, blueprint, "trustd-creds")
        authority = await _read(client, blueprint, "ca")
        async with tenants.talk_to(blueprint.cluster) as tenant:
            token = await bootstrap_token(tenant, blueprint.name, now=now)
    except KubeError:
        return None
    trust = Trust.read(trustd, authority, token)
    if trust is None:
        return None
    name = bootstrap_secret(blueprint, replace(trust, bootstrap_token=ANY_TOKEN))["metadata"]["name"]
    secret = bootstrap_secret(blueprint, trust)
    return {**secret, "metadata": {**secret["metadata"], "name": name}}


async def _read(client: Client, blueprint: Blueprint, suffix: str) -> Mapping[str, str]:
    secret = await client.get(SECRETS, f"{blueprint.name}-{suffix}", blueprint.namespace)
    return decoded(secret.get("data") or {})
