"""Clusters, providers, pools, allocations and addons as plain values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from butler.api.codec import from_json
from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import ConditionType, Finalizer, Label
from butler.api.networkpool import NetworkPool, NetworkPoolStatus
from butler.api.providerconfig import ProviderConfig, ProviderConfigStatus
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
from butler.ipam.addresses import Family, address_text, parse_address

HOME = "butler-system"
NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
UID = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"
Json = dict[str, Any]


def cluster(
    name: str = "web",
    *,
    namespace: str = "team-a",
    uid: str = UID,
    age: int = 0,
    replicas: int = 3,
    version: str = "v1.33.2",
    team: str | None = None,
    on: str | None = "lab",
    annotations: dict[str, str] | None = None,
    status: TenantClusterStatus | None = None,
    networking: Json | None = None,
    **spec: Any,
) -> TenantCluster:
    """A TenantCluster; `age` in seconds, `spec` in the API's spelling."""
    wanted: Json = {"kubernetesVersion": version, "workers": {"replicas": replicas}, **spec}
    if networking is not None:
        wanted["networking"] = networking
    if on is not None:
        wanted["providerConfigRef"] = {"name": on}
    if team is not None:
        wanted["teamRef"] = {"name": team}
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid,
        "generation": 4,
        "annotations": annotations or {},
        "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat(),
    }
    found = from_json(TenantCluster, {"metadata": metadata, "spec": wanted})
    return msgspec.structs.replace(found, status=status) if status else found


def with_status(of: TenantCluster, status: TenantClusterStatus) -> TenantCluster:
    return msgspec.structs.replace(of, status=status)


def started(of: TenantCluster) -> TenantCluster:
    return with_status(of, TenantClusterStatus(tenant_namespace=f"{of.metadata.name}-{of.metadata.uid[:8]}"))


def provider(
    name: str = "lab",
    *,
    pools: tuple[Json | str, ...] = ("vlan40",),
    kind: str = "proxmox",
    gateway: str | None = "10.40.0.1",
    mode: str = "ipam",
    quota: Json | None = None,
    balancers: Json | None = None,
    deleting: bool = False,
    ready: bool | None = True,
    why: str = "",
    **spec: Any,
) -> ProviderConfig:
    """A ProviderConfig; pools by name, or as the API spells them."""
    network: Json = {"mode": mode}
    if mode == "ipam":
        network["poolRefs"] = [{"name": obj} if isinstance(obj, str) else obj for obj in pools]
    for field, value in (("gateway", gateway), ("quotaPerTenant", quota), ("loadBalancer", balancers)):
        if value is not None:
            network[field] = value
    metadata: Json = {"name": name, "namespace": HOME, "uid": f"uid-{name}"}
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    found = from_json(ProviderConfig, {"metadata": metadata, "spec": {"provider": kind, "network": network, **spec}})
    conditions = (
        with_condition((), type=ConditionType.READY, status=bool(ready), reason="Test", message=why, now=NOW)
        if why
        else ()
    )
    return msgspec.structs.replace(found, status=ProviderConfigStatus(ready=ready, conditions=conditions))


def pool(
    name: str = "vlan40",
    cidr: str = "10.40.0.0/24",
    *,
    free: int = 100,
    ready: bool = True,
    defaults: tuple[int, int] | None = None,
) -> NetworkPool:
    """A pool whose longest free run is `free`; `defaults` are nodes and load balancers per tenant."""
    spec: Json = {"cidr": cidr}
    if defaults:
        spec["tenantAllocation"] = {"defaults": {"nodesPerTenant": defaults[0], "lbPoolPerTenant": defaults[1]}}
    found = from_json(NetworkPool, {"metadata": {"name": name, "namespace": HOME}, "spec": spec})
    conditions = with_condition((), type=ConditionType.READY, status=ready, reason="Test", message="", now=NOW)
    return msgspec.structs.replace(
        found, status=NetworkPoolStatus(conditions=conditions, largest_free_block=free, available_ips=free)
    )


def allocation(
    name: str,
    kind: str,
    count: int = 5,
    *,
    start: str | None = None,
    phase: str | None = None,
    of: str = "vlan40",
    growth: bool = False,
    deleting: bool = False,
    pinned: tuple[str, str] | None = None,
    why: str = "",
    reason: str = "PoolExhausted",
    age: int = 0,
) -> IPAllocation:
    """An allocation of the cluster web; granted from `start` on where that is given."""
    metadata: Json = {
        "name": name,
        "namespace": HOME,
        "uid": f"uid-{name}",
        "resourceVersion": "7",
        "creationTimestamp": (NOW - timedelta(seconds=age)).isoformat(),
        "finalizers": [Finalizer.IP_ALLOCATION.value],
        "labels": {
            Label.TENANT_UID.value: UID,
            Label.ALLOCATION_ROLE.value: "growth" if growth else "initial",
        },
    }
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    spec: Json = {
        "poolRef": {"name": of},
        "tenantClusterRef": {"name": "web", "namespace": "team-a"},
        "type": kind,
    }
    if pinned:
        spec["pinnedRange"] = {"startAddress": pinned[0], "endAddress": pinned[1]}
    else:
        spec["count"] = count
    status = IPAllocationStatus(phase=IPAllocationPhase(phase or ("Allocated" if start else "Pending")))
    if start:
        last = address_text(parse_address(start)[1] + count - 1, Family.V4)
        status = msgspec.structs.replace(status, start_address=start, end_address=last, allocated_count=count)
    if why:
        conditions = with_condition((), type=ConditionType.READY, status=False, reason=reason, message=why, now=NOW)
        status = msgspec.structs.replace(status, conditions=conditions)
    bare = from_json(IPAllocation, {"metadata": metadata, "spec": spec})
    return msgspec.structs.replace(bare, status=status)


def addon(
    kind: str,
    phase: str = "Installed",
    *,
    name: str | None = None,
    ours: bool = True,
    message: str | None = None,
    generation: int = 1,
    seen: int = 1,
    made_for: str = UID,
    deleting: bool = False,
    version: str | None = None,
) -> TenantAddon:
    """A TenantAddon of the cluster web."""
    labels = {Label.TENANT_UID.value: made_for, "app.kubernetes.io/managed-by": "butler"} if ours else {}
    metadata: Json = {"name": name or f"web-{kind}", "namespace": "team-a", "generation": generation, "labels": labels}
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    status = {"phase": phase, "observedGeneration": seen, "message": message, "installedVersion": version}
    return from_json(
        TenantAddon,
        {
            "metadata": metadata,
            "spec": {"clusterRef": {"name": "web"}, "addon": kind},
            "status": {field: value for field, value in status.items() if value is not None},
        },
    )
