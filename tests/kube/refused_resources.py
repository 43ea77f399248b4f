"""Custom resources that the API server must refuse: one line per rule, with the field it blames and what it says.

Each case changes one accepted resource. `None` removes a field; a path such as `spec.reserved.0.cidr` reaches into
lists. `test_custom_resources.py` sends them to both servers, and checks that no rule goes without a case.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butler.api import API_VERSION
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster

if TYPE_CHECKING:
    from butler.api.resource import CustomResource

INVALID, REQUIRED, FORBIDDEN = "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"

ACCEPTED: dict[type[CustomResource], dict[str, Any]] = {
    NetworkPool: {
        "cidr": "10.40.0.0/21",
        "reserved": [{"cidr": "10.40.0.0/28"}],
        "tenantAllocation": {"start": "10.40.1.0", "end": "10.40.7.254"},
    },
    IPAllocation: {
        "poolRef": {"name": "pool"},
        "tenantClusterRef": {"name": "cluster", "namespace": "team"},
        "type": "nodes",
        "pinnedRange": {"startAddress": "10.40.1.10", "endAddress": "10.40.1.19"},
    },
    ProviderConfig: {
        "provider": "harvester",
        "credentialsRef": {"name": "secret"},
        "harvester": {"networkName": "default/vlan40"},
        "network": {"mode": "ipam", "poolRefs": [{"name": "pool"}]},
    },
    TenantCluster: {
        "kubernetesVersion": "v1.33.2",
        "workers": {"replicas": 3},
        "providerConfigRef": {"name": "provider"},
        "teamRef": {"name": "team"},
        "networking": {"loadBalancerPool": {"start": "10.40.1.0", "end": "10.40.1.7"}},
    },
    TenantAddon: {"clusterRef": {"name": "cluster"}, "addon": "traefik"},
}

SETTINGS: dict[str, dict[str, Any]] = {
    "harvester": {"networkName": "default/vlan40"},
    "nutanix": {"endpoint": "https://prism", "clusterUUID": "c", "subnetUUID": "s"},
    "proxmox": {"endpoint": "https://pve", "nodes": ["a"], "storage": "s"},
    "azure": {"subscriptionID": "s", "resourceGroup": "g"},
    "aws": {"region": "eu-central-1"},
    "gcp": {"projectID": "p", "region": "europe-west3"},
    "local": {},
}


def accepted(kind: type[CustomResource], name: str = "accepted") -> dict[str, Any]:
    """A resource that every server takes."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind.__name__,
        "metadata": {"name": name},
        "spec": copy.deepcopy(ACCEPTED[kind]),
    }


def changed(resource: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The resource with these paths set."""
    resource = copy.deepcopy(resource)
    for path, value in changes.items():
        *parents, last = path.split(".")
        part: Any = resource
        for step in parents:
            part = part[int(step)] if isinstance(part, list) else part.setdefault(step, {})
        if value is None:
            part.pop(last, None)
        elif isinstance(part, list):
            part[int(last)] = value
        else:
            part[last] = value
    return resource


@dataclass(frozen=True)
class Refused:
    """What is changed, which field is blamed, and what the person is told."""

    kind: type[CustomResource]
    changes: dict[str, Any]
    field: str
    says: str
    reason: str = INVALID

    def __str__(self) -> str:
        return f"{self.kind.__name__} {self.field}: {self.says[:40]}"


NETWORK = "must be a network in CIDR notation, such as 10.40.0.0/21"
ADDRESS = "must be an IPv4 address, such as 10.40.1.0"
ANY_ADDRESS = "must be an IP address, such as 10.40.0.1"
WINDOW = "spec.tenantAllocation"


def _host_bits(network: str) -> str:
    return f"{network} has bits set after its prefix: give the first address of the network"


def _windows(*windows: tuple[str, str]) -> dict[str, Any]:
    return {WINDOW: {"ranges": [{"start": start, "end": end} for start, end in windows]}}


POOLS = [
    Refused(NetworkPool, {"metadata.name": "p" * 64}, "metadata.name",
            "the name must have at most 63 characters, as it becomes the value of a label on every allocation"),
    Refused(NetworkPool, {"spec.cidr": "10.40.0.256/21"}, "spec.cidr", NETWORK),
    Refused(NetworkPool, {"spec.cidr": "10.40.0.1/21"}, "spec.cidr", _host_bits("10.40.0.1/21")),
    Refused(NetworkPool, {"spec.cidr": "10.0.0.0/7"}, "spec.cidr", "the prefix must be /8 or longer"),
    Refused(NetworkPool, {"spec.cidr": "fd00::/64"}, "spec.cidr",
            r"spec.cidr in body should match '^(\d{1,3}\.){3}\d{1,3}/\d{1,2}$'"),
    Refused(NetworkPool, {"spec.reserved.0.cidr": "10.40.0.0/33"}, "spec.reserved[0].cidr", NETWORK),
    Refused(NetworkPool, {"spec.reserved.0.cidr": "10.40.0.8/28"}, "spec.reserved[0].cidr",
            _host_bits("10.40.0.8/28")),
    Refused(NetworkPool, {"spec.reserved": [{"cidr": "10.40.0.0/28"}, {"cidr": "10.40.8.0/28"}]}, "spec.reserved",
            "reserved block 10.40.8.0/28 is outside the pool's cidr 10.40.0.0/21"),
    Refused(NetworkPool, {"spec.reserved.0.cidr": "10.40.0.0/20"}, "spec.reserved",
            "reserved block 10.40.0.0/20 is outside the pool's cidr 10.40.0.0/21"),
    Refused(NetworkPool, {f"{WINDOW}.start": "10.40.1"}, f"{WINDOW}.start", ADDRESS),
    Refused(NetworkPool, {f"{WINDOW}.end": "10.40.7.999"}, f"{WINDOW}.end", ADDRESS),
    Refused(NetworkPool, {f"{WINDOW}.start": "10.39.255.255"}, f"{WINDOW}.start",
            "start 10.39.255.255 is outside the pool's cidr 10.40.0.0/21"),
    Refused(NetworkPool, {f"{WINDOW}.end": "10.40.8.0"}, f"{WINDOW}.end",
            "end 10.40.8.0 is outside the pool's cidr 10.40.0.0/21"),
    Refused(NetworkPool, {f"{WINDOW}.start": None}, f"{WINDOW}.start", "a window with an end needs a start",
            REQUIRED),
    Refused(NetworkPool, {f"{WINDOW}.end": None}, f"{WINDOW}.end", "a window with a start needs an end", REQUIRED),
    # As text "10.40.7.9" comes after "10.40.7.10"; as addresses it does not.
    Refused(NetworkPool, {f"{WINDOW}.start": "10.40.7.10", f"{WINDOW}.end": "10.40.7.9"}, f"{WINDOW}.end",
            "end 10.40.7.9 comes before start 10.40.7.10"),
    Refused(NetworkPool, {f"{WINDOW}.ranges": [{"start": "10.40.1.0", "end": "10.40.1.9"}]}, f"{WINDOW}.ranges",
            "give either start and end (one window) or ranges (several), not both", FORBIDDEN),
    Refused(NetworkPool, _windows(("10.40.1.0", "10.40.1.9"), ("10.40.0.16", "10.40.1.0")), f"{WINDOW}.ranges",
            "the windows must not overlap"),
    Refused(NetworkPool, _windows(("10.40.1.0", "10.40.1.9"), ("10.40.2.0", "10.40.9.0")), f"{WINDOW}.ranges",
            "window address 10.40.9.0 is outside the pool's cidr 10.40.0.0/21"),
    Refused(NetworkPool, _windows(("10.40.1.0", "10.40.1.9"), ("10.40.2.9", "10.40.2.0")),
            f"{WINDOW}.ranges[1].end", "end 10.40.2.0 comes before start 10.40.2.9"),
    Refused(NetworkPool, _windows(("10.40.1.300", "10.40.1.9")), f"{WINDOW}.ranges[0].start", ADDRESS),
    Refused(NetworkPool, _windows(("10.40.1.0", "010.40.1.9")), f"{WINDOW}.ranges[0].end", ADDRESS),
    Refused(NetworkPool, _windows(), f"{WINDOW}.ranges",
            "spec.tenantAllocation.ranges in body should have at least 1 items"),
    Refused(NetworkPool, {f"{WINDOW}.defaults": {"nodesPerTenant": 0}}, f"{WINDOW}.defaults.nodesPerTenant",
            "spec.tenantAllocation.defaults.nodesPerTenant in body should be greater than or equal to 1"),
]  # fmt: skip

PINNED = "spec.pinnedRange"
ALLOCATIONS = [
    Refused(IPAllocation, {f"{PINNED}.startAddress": "10.40.1.256"}, f"{PINNED}.startAddress", ADDRESS),
    Refused(IPAllocation, {f"{PINNED}.endAddress": "10.40.1.256"}, f"{PINNED}.endAddress", ADDRESS),
    Refused(IPAllocation, {f"{PINNED}.endAddress": "10.40.1.9"}, f"{PINNED}.endAddress",
            "endAddress 10.40.1.9 comes before startAddress 10.40.1.10"),
    Refused(IPAllocation, {PINNED: {"startAddress": "10.40.0.0", "endAddress": "10.41.0.0"}}, PINNED,
            "one allocation may hold at most 65536 addresses"),
    Refused(IPAllocation, {"spec.count": 0}, "spec.count",
            "spec.count in body should be greater than or equal to 1"),
    Refused(IPAllocation, {"spec.type": "router"}, "spec.type", 'supported values: "nodes", "loadbalancer"',
            "FieldValueNotSupported"),
]  # fmt: skip

PROVIDERS = [
    Refused(ProviderConfig, {"spec.credentialsRef": None}, "spec.credentialsRef",
            "every provider except local needs the Secret with its credentials", REQUIRED),
    *(
        Refused(ProviderConfig, {"spec.provider": provider, "spec.harvester": None}, f"spec.{provider}",
                f"provider {provider} needs its settings here", REQUIRED)
        for provider in SETTINGS if provider != "local"
    ),
    *(
        Refused(ProviderConfig, {f"spec.{provider}": settings}, f"spec.{provider}",
                f"settings for {provider} mean nothing here: provider is harvester", FORBIDDEN)
        for provider, settings in SETTINGS.items() if provider != "harvester"
    ),
    Refused(ProviderConfig, {"spec.provider": "local", "spec.credentialsRef": None}, "spec.harvester",
            "settings for harvester mean nothing here: provider is local", FORBIDDEN),
    *(
        Refused(ProviderConfig,
                {"spec.provider": cloud, "spec.harvester": None, f"spec.{cloud}": SETTINGS[cloud]},
                "spec.network.mode", f"provider {cloud} manages addresses itself: use mode cloud", FORBIDDEN)
        for cloud in ("aws", "azure", "gcp")
    ),
    Refused(ProviderConfig, {"spec.network.poolRefs": None}, "spec.network.poolRefs",
            "ipam mode takes addresses from NetworkPools: name at least one", REQUIRED),
    Refused(ProviderConfig, {"spec.network.mode": None}, "spec.network.poolRefs",
            "poolRefs has a meaning in ipam mode only: set mode to ipam, or remove it", FORBIDDEN),
    Refused(ProviderConfig, {"spec.network": {"loadBalancer": {}}}, "spec.network.loadBalancer",
            "loadBalancer has a meaning in ipam mode only: set mode to ipam, or remove it", FORBIDDEN),
    Refused(ProviderConfig, {"spec.network": {"quotaPerTenant": {}}}, "spec.network.quotaPerTenant",
            "quotaPerTenant has a meaning in ipam mode only: set mode to ipam, or remove it", FORBIDDEN),
    Refused(ProviderConfig, {"spec.network.poolRefs": [{"name": "pool"}, {"name": "pool"}]},
            "spec.network.poolRefs[1]", '{"name":"pool"}', "FieldValueDuplicate"),
    Refused(ProviderConfig, {"spec.network.gateway": "10.40.0"}, "spec.network.gateway", ANY_ADDRESS),
    Refused(ProviderConfig, {"spec.network.poolRefs.0.gateway": "10.40.0"}, "spec.network.poolRefs[0].gateway",
            ANY_ADDRESS),
    Refused(ProviderConfig, {"spec.network.dnsServers": ["10.40.0.1", "dns"]}, "spec.network.dnsServers[1]",
            ANY_ADDRESS),
    Refused(ProviderConfig, {"spec.network.loadBalancer": {"initialPoolSize": -1}},
            "spec.network.loadBalancer.initialPoolSize",
            "spec.network.loadBalancer.initialPoolSize in body should be greater than or equal to 0"),
    Refused(ProviderConfig, {"spec.scope": {"type": "team"}}, "spec.scope.teamRef",
            "scope team needs the team that may use this provider", REQUIRED),
    Refused(ProviderConfig, {"spec.scope": {"teamRef": {"name": "t"}}}, "spec.scope.teamRef",
            "scope platform is for all teams: set type to team, or remove teamRef", FORBIDDEN),
    Refused(ProviderConfig,
            {"spec.provider": "proxmox", "spec.harvester": None,
             "spec.proxmox": {**SETTINGS["proxmox"], "vmidRange": {"start": 200, "end": 100}}},
            "spec.proxmox.vmidRange.end", "end must not be less than start"),
]  # fmt: skip

NETWORKING = "spec.networking"
CLUSTERS = [
    *(
        Refused(TenantCluster, {"metadata.name": name}, "metadata.name",
                "the name becomes that of a namespace and of machines: it must start with a lower-case letter,"
                " hold only lower-case letters, digits and hyphens, and have at most 54 characters")
        for name in ("c" * 55, "a.b", "9lives")
    ),
    Refused(TenantCluster, {f"{NETWORKING}.podCIDR": "10.244.0.0"}, f"{NETWORKING}.podCIDR", NETWORK),
    Refused(TenantCluster, {f"{NETWORKING}.podCIDR": "10.244.0.1/16"}, f"{NETWORKING}.podCIDR",
            _host_bits("10.244.0.1/16")),
    Refused(TenantCluster, {f"{NETWORKING}.serviceCIDR": "10.0.0.0/40"}, f"{NETWORKING}.serviceCIDR", NETWORK),
    Refused(TenantCluster, {f"{NETWORKING}.serviceCIDR": "172.16.0.9/16"}, f"{NETWORKING}.serviceCIDR",
            _host_bits("172.16.0.9/16")),
    Refused(TenantCluster, {f"{NETWORKING}.podCIDR": "10.96.4.0/22"}, f"{NETWORKING}.serviceCIDR",
            "podCIDR 10.96.4.0/22 and serviceCIDR 10.96.0.0/12 overlap"),
    Refused(TenantCluster, {f"{NETWORKING}.podCIDR": "10.0.0.0/8"}, f"{NETWORKING}.serviceCIDR",
            "podCIDR 10.0.0.0/8 and serviceCIDR 10.96.0.0/12 overlap"),
    Refused(TenantCluster, {f"{NETWORKING}.loadBalancerPool": {"start": "10.0.0.9", "end": "10.0.0.8"}},
            f"{NETWORKING}.loadBalancerPool.end", "end 10.0.0.8 comes before start 10.0.0.9"),
    Refused(TenantCluster, {f"{NETWORKING}.loadBalancerPool": {"start": "10.0.0", "end": "10.0.0.8"}},
            f"{NETWORKING}.loadBalancerPool.start", ADDRESS),
    Refused(TenantCluster, {f"{NETWORKING}.loadBalancerPool": {"start": "10.0.0.1", "end": "10.0.0.300"}},
            f"{NETWORKING}.loadBalancerPool.end", ADDRESS),
    Refused(TenantCluster, {f"{NETWORKING}.lbPoolSize": 2}, f"{NETWORKING}.lbPoolSize",
            "loadBalancerPool already says how many addresses there are: give one of the two", FORBIDDEN),
    *(
        Refused(TenantCluster, {"spec.workers.machineTemplate.os.type": system},
                "spec.workers.machineTemplate.os.type",
                "Butler cannot bootstrap this operating system yet: use rocky, flatcar or talos", FORBIDDEN)
        for system in ("kairos", "bottlerocket")
    ),
    Refused(TenantCluster, {"spec.workers.machineTemplate.os.schematicID": "abc"},
            "spec.workers.machineTemplate.os.schematicID",
            "Butler has no image factory yet: put the image's name into imageRef", FORBIDDEN),
    Refused(TenantCluster, {"spec.workspaces.enabled": True}, "spec.workspaces.enabled",
            "Butler has no developer workspaces yet: leave them disabled", FORBIDDEN),
    Refused(TenantCluster, {"spec.workers.machineTemplate.os.talos": {}}, "spec.workers.machineTemplate.os.talos",
            "talos settings need type talos", FORBIDDEN),
    Refused(TenantCluster, {"spec.workers.machineTemplate.memory": "-1Gi"}, "spec.workers.machineTemplate.memory",
            "spec.workers.machineTemplate.memory in body should match"
            r" '^[0-9]+(\.[0-9]+)?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$'"),
    Refused(TenantCluster, {"spec.kubernetesVersion": "1.33"}, "spec.kubernetesVersion",
            r"spec.kubernetesVersion in body should match '^v\d+\.\d+\.\d+$'"),
    Refused(TenantCluster, {"spec.workers.replicas": 0}, "spec.workers.replicas",
            "spec.workers.replicas in body should be greater than or equal to 1"),
]  # fmt: skip

REFUSED_AT_CREATION = [*POOLS, *ALLOCATIONS, *PROVIDERS, *CLUSTERS]

FIXED = "cannot be changed once the cluster exists"
REQUEST_FIXED = "the request cannot be changed: delete this IPAllocation and create a new one"
ADDON_FIXED = "clusterRef and addon cannot be changed: delete this TenantAddon and create another"
REFUSED_AS_CHANGE = [
    Refused(IPAllocation, {"spec.poolRef.name": "other"}, "spec", REQUEST_FIXED, FORBIDDEN),
    Refused(IPAllocation, {"spec.count": 4}, "spec", REQUEST_FIXED, FORBIDDEN),
    Refused(IPAllocation, {"spec.pinnedRange": None}, "spec", REQUEST_FIXED, FORBIDDEN),
    Refused(ProviderConfig, {"spec.provider": "aws", "spec.harvester": None, "spec.aws": SETTINGS["aws"]},
            "spec.provider", "the provider cannot be changed: create another ProviderConfig", FORBIDDEN),
    Refused(TenantCluster, {"spec.providerConfigRef.name": "other"}, "spec.providerConfigRef",
            "a cluster cannot move to another provider", FORBIDDEN),
    Refused(TenantCluster, {"spec.providerConfigRef": None}, "spec.providerConfigRef",
            "a cluster cannot move to another provider", FORBIDDEN),
    Refused(TenantCluster, {"spec.teamRef.name": "other"}, "spec.teamRef", "a cluster cannot move to another team",
            FORBIDDEN),
    Refused(TenantCluster, {f"{NETWORKING}.podCIDR": "10.245.0.0/16"}, f"{NETWORKING}.podCIDR", FIXED, FORBIDDEN),
    Refused(TenantCluster, {f"{NETWORKING}.serviceCIDR": "10.112.0.0/12"}, f"{NETWORKING}.serviceCIDR", FIXED,
            FORBIDDEN),
    Refused(TenantCluster, {f"{NETWORKING}.loadBalancerPool.end": "10.40.1.9"}, f"{NETWORKING}.loadBalancerPool",
            FIXED, FORBIDDEN),
    Refused(TenantAddon, {"spec.addon": "nginx"}, "spec", ADDON_FIXED, FORBIDDEN),
    Refused(TenantAddon, {"spec.clusterRef.name": "other"}, "spec", ADDON_FIXED, FORBIDDEN),
]  # fmt: skip

GRANTED = {
    "phase": "Allocated",
    "startAddress": "10.40.1.10",
    "endAddress": "10.40.1.11",
    "cidr": "10.40.1.10/31",
    "addresses": ["10.40.1.10", "10.40.1.11"],
    "allocatedCount": 2,
}
"""The status of an allocation that holds two addresses."""
RELEASED = {**GRANTED, "phase": "Released"}
STAYS = (
    "an allocation that was granted stays Allocated until it is Released:"
    " delete the IPAllocation to give its addresses back"
)
FINAL = "Released is final, because the addresses may be another's by now: create a new IPAllocation"
RANGE_FIXED = "the granted range never changes: delete this IPAllocation and create a new one"
NEEDS_RANGE = "an allocation that is Allocated needs its startAddress and its endAddress"


@dataclass(frozen=True)
class RefusedStatus:
    """An edit of an IPAllocation's status, and what its author is told."""

    before: dict[str, Any]
    after: dict[str, Any] | None
    """None: the status is taken away."""
    field: str
    says: str
    reason: str = FORBIDDEN

    def __str__(self) -> str:
        return f"{self.before.get('phase')} to {self.after}"[:90]


def _edited(before: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}


REFUSED_AS_STATUS = [
    RefusedStatus(GRANTED, _edited(GRANTED, phase="Pending"), "status.phase", STAYS),
    RefusedStatus(GRANTED, _edited(GRANTED, phase="Failed"), "status.phase", STAYS),
    RefusedStatus(GRANTED, _edited(GRANTED, phase=None), "status.phase", STAYS),
    RefusedStatus(GRANTED, {}, "status.phase", STAYS),
    RefusedStatus(GRANTED, None, "status.phase", STAYS),
    RefusedStatus(RELEASED, GRANTED, "status.phase", FINAL),
    RefusedStatus(RELEASED, _edited(RELEASED, phase="Pending"), "status.phase", FINAL),
    RefusedStatus(RELEASED, None, "status.phase", FINAL),
    RefusedStatus({"phase": "Released"}, {"phase": "Failed"}, "status.phase", FINAL),
    *(
        RefusedStatus(before, _edited(before, **{field: value}), "status.startAddress", RANGE_FIXED)
        for before in (GRANTED, RELEASED)
        for field, value in (
            ("startAddress", "10.40.1.9"),
            ("endAddress", "10.40.1.12"),
            ("cidr", "10.40.1.8/30"),
            ("cidr", None),
            ("addresses", ["10.40.1.10"]),
            ("addresses", None),
            ("allocatedCount", 1),
            ("allocatedCount", None),
        )
    ),
    RefusedStatus(RELEASED, _edited(RELEASED, startAddress=None), "status.startAddress", RANGE_FIXED),
    RefusedStatus(GRANTED, _edited(GRANTED, startAddress=None), "status.startAddress", RANGE_FIXED),
    RefusedStatus(GRANTED, _edited(GRANTED, endAddress=None), "status.startAddress", NEEDS_RANGE, REQUIRED),
    RefusedStatus({}, {"phase": "Allocated"}, "status.startAddress", NEEDS_RANGE, REQUIRED),
    RefusedStatus({}, _edited(GRANTED, startAddress="10.40.1.1O"), "status.startAddress", ANY_ADDRESS, INVALID),
    RefusedStatus({}, _edited(GRANTED, endAddress="10.40.1.256"), "status.endAddress", ANY_ADDRESS, INVALID),
    RefusedStatus({}, _edited(GRANTED, addresses=["10.40.1.10", "b"]), "status.addresses[1]", ANY_ADDRESS, INVALID),
    RefusedStatus({}, _edited(GRANTED, cidr="10.40.1.10"), "status.cidr", NETWORK, INVALID),
    RefusedStatus({}, _edited(GRANTED, startAddress="10.40.1.12"), "status.endAddress",
                  "endAddress must not come before startAddress", INVALID),
]  # fmt: skip
