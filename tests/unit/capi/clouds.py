"""Blueprints on public clouds, from the JSON that a user would write, changed in one place at a time.

`build(CLOUD, {"spec.aws.vpcID": "vpc-1"})` changes the ProviderConfig, or the TenantCluster where the path begins with
one of its fields; a value of None takes the field away. Both go through the API's own types.
"""

from __future__ import annotations

import base64
import copy
from typing import TYPE_CHECKING, Any

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.capi import aws, azure, gcp
from butler.rules.tenant.blueprint import Blueprint, Endpoint, Versions
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Infrastructure

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDTo6sFOI/bM7USakjobmPgfRvekSilJcs3JQ4Znbg+q someone@example.com"

CREDENTIALS: dict[str, dict[str, str]] = {
    "aws": {"accessKeyID": "AKIAEXAMPLE", "secretAccessKey": "not-a-secret"},
    "gcp": {"serviceAccountKey": '{"type": "service_account"}'},
    "azure": {"clientID": "c1", "clientSecret": "not-a-secret", "tenantID": "t1"},
}

SETTINGS: dict[str, Json] = {
    "aws": {
        "region": "eu-central-1",
        "vpcID": "vpc-0a",
        "subnetIDs": ["subnet-0a", "subnet-0b", "subnet-0c"],
        "securityGroupIDs": ["sg-0a", "sg-0b"],
    },
    "gcp": {
        "projectID": "tenants",
        "region": "europe-west3",
        "network": "shop",
        "subnetwork": "shop-workers",
        "image": "rocky-9",
        "tags": ["shop", "workers"],
        "serviceAccount": "workers@tenants.iam.gserviceaccount.com",
    },
    "azure": {
        "subscriptionID": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "tenants",
        "location": "westeurope",
        "vnetName": "shop",
        "subnetName": "workers",
        "imageURN": "resf:rockylinux-x86_64:9-base:9.5.20241118",
    },
}

BUILDERS = {"aws": aws.infrastructure, "gcp": gcp.infrastructure, "azure": azure.infrastructure}

CLUSTER: Json = {
    "metadata": {"name": "payments", "namespace": "team-payments", "uid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427"},
    "spec": {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3, "machineTemplate": {"os": {}}}},
}

_OF_THE_CLUSTER = (
    "metadata",
    "spec.workers",
    "spec.networking",
    "spec.infrastructureOverride",
    "spec.timeServers",
    "spec.kubernetesVersion",
)


def blueprint(
    provider: str,
    changes: Mapping[str, Any] | None = None,
    *,
    credentials: Mapping[str, str] | None = None,
    endpoint: Endpoint | None = None,
) -> Blueprint:
    """A cluster on a cloud, with some fields changed."""
    cluster = copy.deepcopy(CLUSTER)
    config: Json = {
        "metadata": {"name": f"{provider}-main", "namespace": "butler-system"},
        "spec": {"provider": provider, "credentialsRef": {"name": "login"}, provider: dict(SETTINGS[provider])},
    }
    for path, value in (changes or {}).items():
        _set(cluster if path.startswith(_OF_THE_CLUSTER) else config, path.split("."), value)
    resource = from_json(TenantCluster, cluster)
    return Blueprint(
        cluster=resource,
        provider=from_json(ProviderConfig, config),
        namespace=tenant_namespace(resource),
        versions=Versions("v1.33.2", "v1.33.2"),
        credentials=CREDENTIALS[provider] if credentials is None else credentials,
        credentials_secret=("butler-system", "login"),
        endpoint=endpoint,
    )


def build(provider: str, changes: Mapping[str, Any] | None = None, **more: Any) -> Infrastructure:
    """What a cloud's builder makes of it."""
    return BUILDERS[provider](blueprint(provider, changes, **more))


def machine(made: Infrastructure) -> Json:
    """The part of a machine template that describes a machine."""
    spec: Json = made.machine_template["spec"]["template"]["spec"]
    return spec


def contents(secret: Json) -> dict[str, str]:
    """What a Secret holds, decoded."""
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def _set(target: Json, path: list[str], value: Any) -> None:
    *parents, last = path
    for parent in parents:
        target = target.setdefault(parent, {})
    if value is None:
        target.pop(last, None)
    else:
        target[last] = value
