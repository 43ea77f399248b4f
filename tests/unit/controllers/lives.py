"""Allocations, pools and tenants as plain values, at any point of their lives."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from butler.api import codec
from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationStatus
from butler.api.labels import Annotation, ConditionType, Finalizer, Label
from butler.api.networkpool import NetworkPool
from butler.api.tenantcluster import TenantCluster

if TYPE_CHECKING:
    from butler.api.meta import Condition

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
DAY = timedelta(hours=24)
OURS = str(Finalizer.IP_ALLOCATION)


def allocation(
    phase: str = "Pending",
    *,
    name: str = "web-nodes",
    uid: str = "a1",
    version: str = "100",
    finalizers: tuple[str, ...] = (OURS,),
    deleting: bool = False,
    tenant: str = "web",
    owner: str | None = None,
    labelled: str | None = None,
    found: bool | None = None,
    released_at: datetime | None = None,
    addresses: bool = True,
    noted: str | None = None,
) -> IPAllocation:
    """An allocation of the pool vlan40 for the TenantCluster team-a/web."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "butler-system",
        "uid": uid,
        "resourceVersion": version,
        "finalizers": list(finalizers),
        "labels": {Label.TENANT_UID: labelled} if labelled else {},
    }
    if noted is None and phase == "Allocated":
        noted = f"10.40.1.10-10.40.1.11 {uid}"
    if noted:
        metadata["annotations"] = {Annotation.GRANTED: noted}
    if deleting:
        metadata["deletionTimestamp"] = "2027-01-15T07:59:59Z"
    spec = {
        "poolRef": {"name": "vlan40"},
        "tenantClusterRef": {"namespace": "team-a", "name": tenant},
        "type": "nodes",
    }
    granted: dict[str, Any] = {}
    if phase == "Allocated" or released_at is not None:
        granted = {"start_address": "10.40.1.10", "end_address": "10.40.1.11", "allocated_count": 2}
        if addresses:
            granted["addresses"] = ("10.40.1.10", "10.40.1.11")
    conditions: tuple[Condition, ...] = ()
    if found is not None:
        conditions = with_condition(
            (), type=ConditionType.TENANT_FOUND, status=found, reason="Test", message="", now=NOW
        )
    status = IPAllocationStatus(
        phase=IPAllocationPhase(phase),
        tenant_cluster_uid=owner,
        released_at=released_at,
        conditions=conditions,
        **granted,
    )
    bare = codec.from_json(IPAllocation, {"metadata": metadata, "spec": spec, "kind": "IPAllocation"})
    return IPAllocation(metadata=bare.metadata, spec=bare.spec, status=status)


def pool(seen: str | None = None) -> NetworkPool:
    return codec.from_json(
        NetworkPool,
        {
            "metadata": {"name": "vlan40", "namespace": "butler-system", "uid": "p1"},
            "spec": {"cidr": "10.40.0.0/16"},
            "status": {"allocationsSeen": seen} if seen else {},
        },
    )


def tenant(uid: str = "t1", name: str = "web") -> TenantCluster:
    return codec.from_json(
        TenantCluster,
        {
            "metadata": {"name": name, "namespace": "team-a", "uid": uid},
            "spec": {"kubernetesVersion": "v1.33.2", "providerConfigRef": {"name": "lab"}, "workers": {"replicas": 1}},
        },
    )
