"""The objects that the end-to-end benchmark writes, as Butler itself would."""

from __future__ import annotations

from typing import Any

API = "butler.butlerlabs.dev/v1alpha1"
HOME = "butler-system"
TEAM = "team-bench"
RAW = "bench-raw"
POOL = "bench-pool"
PER_TENANT = 10


def path(plural: str, namespace: str) -> str:
    return f"/apis/{API}/namespaces/{namespace}/{plural}"


ALLOCATIONS = path("ipallocations", HOME)
POOLS = path("networkpools", HOME)
TENANTS = path("tenantclusters", TEAM)


def pool() -> dict[str, Any]:
    """A /12: room for ten times what is asked for."""
    return {
        "apiVersion": API,
        "kind": "NetworkPool",
        "metadata": {"name": POOL},
        "spec": {"cidr": "10.16.0.0/12"},
    }


def tenant(number: int) -> dict[str, Any]:
    return {
        "apiVersion": API,
        "kind": "TenantCluster",
        "metadata": {"name": f"tenant-{number:05}"},
        "spec": {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "bench"},
            "teamRef": {"name": TEAM},
            "workers": {"replicas": 3},
        },
    }


def allocation(name: str, tenant_number: int = 0, tenant_uid: str | None = None) -> dict[str, Any]:
    """As Butler creates it for a tenant: all labels, and the finalizer from birth."""
    owner = f"tenant-{tenant_number:05}"
    labels = {
        "butler.butlerlabs.dev/team": TEAM,
        "butler.butlerlabs.dev/tenant": owner,
        "butler.butlerlabs.dev/network-pool": POOL,
        "butler.butlerlabs.dev/allocation-type": "nodes",
    }
    if tenant_uid is not None:
        labels["butler.butlerlabs.dev/tenant-uid"] = tenant_uid
    return {
        "apiVersion": API,
        "kind": "IPAllocation",
        "metadata": {"name": name, "finalizers": ["butler.butlerlabs.dev/ipallocation"], "labels": labels},
        "spec": {
            "poolRef": {"name": POOL},
            "tenantClusterRef": {"name": owner, "namespace": TEAM},
            "type": "nodes",
            "count": 5,
        },
    }
