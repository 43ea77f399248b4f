"""Blueprints of clusters on every provider, from the YAML-like data that people write.

`blueprint("proxmox")` is a cluster that can be built. `cluster` and `config` change the spec of the TenantCluster and
of the ProviderConfig: they are laid over what is there, key by key, and None takes a key away. Both go through the
API's own types, so a test cannot use a field that does not exist.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import parse_range
from butler.rules.tenant.blueprint import Blueprint, Endpoint, NodeNetwork, Versions
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from butler.api.objects import Json

ON_PREMISES = ("harvester", "nutanix", "proxmox")
CLOUDS = ("aws", "gcp", "azure")
PROVIDERS = (*ON_PREMISES, *CLOUDS)

UID = "5f0c9d1e-7a77-4c3f-9a51-0c2f5d8f2b10"
SSH_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDTo6sFOI/bM7USakjobmPgfRvekSilJcs3JQ4Znbg+q someone@example.com"
PE_CLUSTER = "0005a3b5-8c49-4c1b-9f0a-000000000001"
SUBNET = "0005a3b5-8c49-4c1b-9f0a-000000000002"
IMAGE = "0005a3b5-8c49-4c1b-9f0a-000000000003"
ENDPOINT = Endpoint("10.40.7.1", 6443)

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: main
contexts: [{name: main, context: {cluster: hv, user: admin}}, {name: other, context: {cluster: x, user: admin}}]
clusters: [{name: x, cluster: {server: "https://x:6443"}}, {name: hv, cluster: {server: "https://harvester:6443"}}]
users: [{name: admin, user: {token: not-a-secret}}]
"""

SETTINGS: dict[str, Json] = {
    "harvester": {"networkName": "default/vlan60", "imageName": "default/rocky-9.5-kube"},
    "nutanix": {
        "endpoint": "https://prism.example.com",
        "clusterUUID": PE_CLUSTER,
        "subnetUUID": SUBNET,
        "imageUUID": IMAGE,
    },
    "proxmox": {
        "endpoint": "https://pve.example.com:8006",
        "nodes": ["pve1", "pve2"],
        "storage": "ceph",
        "templateID": 9000,
    },
    "aws": {"region": "eu-central-1", "vpcID": "vpc-0a", "subnetIDs": ["subnet-0a"], "securityGroupIDs": ["sg-0a"]},
    "gcp": {"projectID": "tenants", "region": "europe-west3", "network": "shop", "image": "rocky-9"},
    "azure": {
        "subscriptionID": "00000000-0000-0000-0000-000000000001",
        "resourceGroup": "tenants",
        "location": "westeurope",
        "imageURN": "resf:rockylinux-x86_64:9-base:9.5.20241118",
    },
}

CREDENTIALS: dict[str, dict[str, str]] = {
    "harvester": {"kubeconfig": KUBECONFIG},
    "nutanix": {"username": "butler", "password": 'with "quotes" and \\'},
    "proxmox": {"username": "butler@pve!capi", "password": "00000000-0000-0000-0000-00000000000a"},
    "aws": {"accessKeyID": "AKIAEXAMPLE", "secretAccessKey": "not-a-secret"},
    "gcp": {"serviceAccountKey": '{"type": "service_account"}'},
    "azure": {"clientID": "c1", "clientSecret": "not-a-secret", "tenantID": "t1"},
}

IPAM: Json = {
    "mode": "ipam",
    "poolRefs": [{"name": "rack-12", "types": ["nodes"]}, {"name": "services", "types": ["loadbalancer"]}],
    "gateway": "10.40.0.1",
    "dnsServers": ["10.40.0.2", "10.40.0.3"],
}


def node_network(*ranges: str, dns_servers: tuple[str, ...] = ("10.40.0.2", "10.40.0.3")) -> NodeNetwork:
    """Addresses of 10.40.0.0/21, given as `first-last`."""
    texts = ranges or ("10.40.1.0-10.40.1.4",)
    return NodeNetwork(
        tuple(parse_range(*text.split("-"))[1] for text in texts),
        prefix_length=21,
        gateway="10.40.0.1",
        dns_servers=dns_servers,
    )


def blueprint(
    provider: str,
    cluster: Json | None = None,
    config: Json | None = None,
    *,
    nodes: NodeNetwork | None = None,
    endpoint: Endpoint | None = ENDPOINT,
    credentials: Mapping[str, str] | None = None,
    bootstrap_secret: str | None = None,
    versions: Versions | None = None,
    dhcp: bool = False,
) -> Blueprint:
    """A cluster on a provider, with some things changed; on premises with node addresses unless dhcp is asked for."""
    addressed = provider in ON_PREMISES and not dhcp
    spec: Json = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3}}
    provider_spec: Json = {
        "provider": provider,
        "credentialsRef": {"name": "login"},
        provider: dict(SETTINGS[provider]),
        **({"network": dict(IPAM)} if addressed else {}),
    }
    metadata = {"name": "payments", "namespace": "team-payments", "uid": UID}
    resource = from_json(TenantCluster, {"metadata": metadata, "spec": _over(spec, cluster or {})})
    return Blueprint(
        cluster=resource,
        provider=from_json(
            ProviderConfig,
            {
                "metadata": {"name": f"{provider}-main", "namespace": "butler-system"},
                "spec": _over(provider_spec, config or {}),
            },
        ),
        namespace=tenant_namespace(resource),
        versions=versions or Versions("v1.33.2", "v1.33.2"),
        credentials=CREDENTIALS[provider] if credentials is None else credentials,
        credentials_secret=("butler-system", "login"),
        nodes=nodes or (node_network() if addressed else None),
        endpoint=endpoint,
        bootstrap_secret=bootstrap_secret,
    )


def machine_os(**fields: Any) -> Json:
    """The part of a TenantCluster's spec that describes the workers' operating system."""
    return {"workers": {"machineTemplate": {"os": fields}}}


def contents(secret: Json) -> dict[str, str]:
    """What a Secret holds, decoded."""
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def _over(below: Json, above: Mapping[str, Any]) -> Json:
    laid: Json = dict(below)
    for key, value in above.items():
        if value is None:
            laid.pop(key, None)
        elif isinstance(value, dict) and isinstance(laid.get(key), dict):
            laid[key] = _over(laid[key], value)
        else:
            laid[key] = value
    return laid
