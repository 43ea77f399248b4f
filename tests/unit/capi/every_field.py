"""All leaf fields of a spec, values to change them to, and one cluster on each provider to see what that does.

A leaf is what a person can type: text, a number, a switch, a list of texts. Its path has the names that the person
types, with `[]` after a list of blocks. Nothing here lists fields by hand: a field that is added to the API tomorrow
is found tomorrow.
"""

from __future__ import annotations

import copy
import enum
import json
import types
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig, ProviderConfigSpec
from butler.api.schema import Part
from butler.api.tenantcluster import TenantCluster, TenantClusterSpec
from butler.capi import talos
from butler.capi.objects import objects
from butler.capi.talos import Trust
from butler.ipam.addresses import parse_range
from butler.rules.tenant.blueprint import Blueprint, Endpoint, NodeNetwork, Unbuildable, Versions
from butler.rules.tenant_namespace import tenant_namespace
from unit.capi import clouds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.objects import Json

SPECS: dict[str, type[Part]] = {"TenantCluster": TenantClusterSpec, "ProviderConfig": ProviderConfigSpec}


@dataclass(frozen=True)
class Leaf:
    """A field that a person can set."""

    kind: str
    path: str
    type: Any
    default: Any

    @property
    def name(self) -> str:
        return f"{self.kind}.{self.path}"


def leaves() -> list[Leaf]:
    """Every leaf field of the two specs."""
    return [leaf for kind, spec in SPECS.items() for leaf in _leaves(kind, spec, "spec")]


def _leaves(kind: str, part: type[Part], path: str) -> Iterator[Leaf]:
    hints = typing.get_type_hints(part)
    for field_info in msgspec.structs.fields(part):
        where = f"{path}.{field_info.encode_name}"
        type_ = _plain(hints[field_info.name])
        if typing.get_origin(type_) is tuple and _is_part(_plain(typing.get_args(type_)[0])):
            yield from _leaves(kind, _plain(typing.get_args(type_)[0]), f"{where}[]")
        elif _is_part(type_):
            yield from _leaves(kind, type_, where)
        else:
            yield Leaf(kind, where, type_, field_info.default)


def _plain(type_: Any) -> Any:
    """A type without what is said about it, and without None."""
    if typing.get_origin(type_) is typing.Annotated:
        return _plain(typing.get_args(type_)[0])
    if typing.get_origin(type_) in (typing.Union, types.UnionType):
        rest = [get_arg for get_arg in typing.get_args(type_) if get_arg is not types.NoneType]
        return _plain(rest[0]) if len(rest) == 1 else str
    return type_


def _is_part(type_: Any) -> bool:
    return isinstance(type_, type) and issubclass(type_, Part)


VALUES: dict[str, list[Any]] = {
    "spec.kubernetesVersion": ["v1.32.0"],
    "spec.networking.podCIDR": ["10.200.0.0/16"],
    "spec.networking.serviceCIDR": ["10.80.0.0/12"],
    "spec.workers.machineTemplate.cpu": [8],
    "spec.workers.machineTemplate.memory": ["64Gi"],
    "spec.workers.machineTemplate.diskSize": ["200Gi"],
    "spec.workers.machineTemplate.os.version": ["9.6"],
    "spec.workers.machineTemplate.os.sshAuthorizedKey": [clouds.KEY],
    "spec.workers.machineTemplate.os.talos.version": ["v1.10.1"],
    "spec.infrastructureOverride.harvester.networkName": ["other/net"],
    "spec.infrastructureOverride.harvester.imageName": ["other/image"],
    "spec.infrastructureOverride.proxmox.templateID": [999],
    "spec.infrastructureOverride.proxmox.node": ["pve2"],
    "spec.infrastructureOverride.gcp.zone": ["europe-west3-b"],
    "spec.harvester.networkName": ["other/net"],
    "spec.harvester.endpoint": ["https://other.example.com"],
    "spec.nutanix.endpoint": ["https://other.example.com"],
    "spec.proxmox.endpoint": ["https://other.example.com:8006"],
    "spec.proxmox.nodes": [["pve2"]],
    "spec.azure.imageURN": ["a:b:c:d"],
    "spec.gcp.zone": ["europe-west3-c"],
    "spec.gcp.region": ["europe-west4"],
    "spec.network.gateway": ["10.60.0.254"],
    "spec.network.dnsServers": [["10.60.0.53"]],
}
"""Values for fields that take only some; all others get one by their type."""

OTHER_UUID = "00000000-0000-0000-0000-0000000000ff"


def changes(leaf: Leaf, present: Any) -> list[Any]:
    """Values of a field other than what it has."""
    if leaf.path in VALUES:
        return VALUES[leaf.path]
    now = leaf.default if present is None else present
    if isinstance(leaf.type, type) and issubclass(leaf.type, enum.Enum):
        return [item.value for item in leaf.type if item.value != now]
    if leaf.type is bool:
        return [not now]
    if leaf.type is int:
        return [(now if isinstance(now, int) else 100) + 1]
    if typing.get_origin(leaf.type) is tuple:
        return [["changed"]]
    if typing.get_origin(leaf.type) is dict:
        return [{"changed": True}]
    return [OTHER_UUID] if leaf.path.endswith("UUID") else ["changed"]


KUBECONFIG = json.dumps(
    {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "x",
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "clusters": [{"name": "x", "cluster": {"server": "https://harvester.example.com"}}],
        "users": [{"name": "x", "user": {"token": "not-a-secret"}}],
    }
)
LOGIN = {"username": "someone@pve!token", "password": "not-a-secret"}
CREDENTIALS = {**clouds.CREDENTIALS, "harvester": {"kubeconfig": KUBECONFIG}, "nutanix": LOGIN, "proxmox": LOGIN}
UUID = "00000000-0000-0000-0000-00000000000{}"
SETTINGS: dict[str, Json] = {
    **clouds.SETTINGS,
    "harvester": {"networkName": "default/vlan60", "imageName": "default/rocky"},
    "nutanix": {
        "endpoint": "https://prism.example.com",
        "clusterUUID": UUID.format(1),
        "subnetUUID": UUID.format(2),
        "imageUUID": UUID.format(3),
    },
    "proxmox": {
        "endpoint": "https://pve.example.com:8006",
        "nodes": ["pve1", "pve2"],
        "storage": "local-lvm",
        "templateID": 900,
        "vmidRange": {"start": 1000, "end": 1999},
    },
}


@dataclass(frozen=True)
class Case:
    """A cluster on a provider, as its two specs."""

    name: str
    provider: str
    cluster: Json = field(default_factory=dict)
    config: Json = field(default_factory=dict)
    addresses: bool = False

    def specs(self) -> dict[str, Json]:
        """The specs, to be changed at will."""
        base: Json = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3}}
        config: Json = {
            "provider": self.provider,
            "credentialsRef": {"name": "login"},
            self.provider: SETTINGS[self.provider],
        }
        return copy.deepcopy({"TenantCluster": base | self.cluster, "ProviderConfig": config | self.config})


def _system(**system: Any) -> Json:
    return {"workers": {"replicas": 3, "machineTemplate": {"os": system}}}


_TALOS = _system(type="talos", talos={"version": "v1.9.3"})
_ADDRESSES: Json = {
    "network": {
        "mode": "ipam",
        "poolRefs": [{"name": "rack", "types": ["nodes"]}],
        "gateway": "10.60.0.1",
        "dnsServers": ["10.60.0.2"],
    }
}

CASES = (
    *(Case(provider, provider) for provider in ("harvester", "nutanix", "aws", "gcp", "azure")),
    # An image would go before the family.
    Case("gcp by family", "gcp", config={"gcp": clouds.SETTINGS["gcp"] | {"image": None, "imageFamily": "rocky"}}),
    Case("aws flatcar", "aws", cluster=_system(type="flatcar", version="4081.2.0")),
    # Harvester refuses Talos.
    *(Case(f"{provider} talos", provider, cluster=_TALOS) for provider in ("nutanix", "aws", "gcp", "azure")),
    Case("proxmox talos", "proxmox", cluster=_TALOS, config=_ADDRESSES, addresses=True),
    Case("harvester with addresses", "harvester", config=_ADDRESSES, addresses=True),
    Case("nutanix with addresses", "nutanix", config=_ADDRESSES, addresses=True),
    Case("proxmox with addresses", "proxmox", config=_ADDRESSES, addresses=True),
)

TRUST = Trust(machine_token="m.token", machine_ca="ca", cluster_ca="ca", bootstrap_token="b.token")


def outcome(case: Case, specs: dict[str, Json]) -> str | Unbuildable:
    """Everything that is made of two specs, as text, or the refusal."""
    name = {"name": "payments", "uid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427", "namespace": "team-payments"}
    cluster = from_json(TenantCluster, {"metadata": name, "spec": specs["TenantCluster"]})
    home = {"name": "here", "namespace": "butler-system"}
    config = from_json(ProviderConfig, {"metadata": home, "spec": specs["ProviderConfig"]})
    plan = Blueprint(
        cluster=cluster,
        provider=config,
        namespace=tenant_namespace(cluster),
        versions=Versions(cluster.spec.kubernetes_version, cluster.spec.kubernetes_version),
        credentials=CREDENTIALS[case.provider],
        credentials_secret=("butler-system", "login"),
        nodes=_nodes(config) if case.addresses else None,
        endpoint=Endpoint("203.0.113.7", 6443),
        bootstrap_secret="payments-talos",
    )
    try:
        made = list(objects(plan))
        if cluster.spec.workers.machine_template.os.type == "talos":
            made.append(talos.bootstrap_secret(plan, TRUST))
    except Unbuildable as refusal:
        return refusal
    return json.dumps(made, sort_keys=True)


def _nodes(config: ProviderConfig) -> NodeNetwork:
    network = config.spec.network
    _, addresses = parse_range("10.60.0.10", "10.60.0.19")
    return NodeNetwork((addresses,), 24, network.gateway or "10.60.0.1", network.dns_servers)
