"""A small estate in which all is well, and ways to spoil it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import parse_range
from butler.ipam.layout import InvalidPool
from butler.reports.estate import Estate
from butler.reports.fsck import NodeAddresses, TenantAnswers, look_once
from butler.reports.fsck.holdings import read_books
from butler.reports.fsck.pools import COUNTERS, recounted
from butler.rules.loadbalancer.service import POOL, Balancer
from butler.tenant.metallb import ADVERTISEMENT, NAMESPACE, advertisement

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.reports.fsck import FsckFinding

NOW = datetime(2026, 2, 15, 10, tzinfo=UTC)
HOME = "butler-system"
API = "butler.butlerlabs.dev/v1alpha1"
LABEL = "butler.butlerlabs.dev/"
Json = dict[str, Any]


def pool(name: str, cidr: str, **spec: Any) -> Json:
    meta = {"name": name, "namespace": HOME, "uid": f"pool-{name}", "resourceVersion": "7", "generation": 1}
    meta["creationTimestamp"] = "2026-02-15T09:00:00Z"
    return {"apiVersion": API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": cidr, **spec}, "status": {}}


def cluster(name: str, uid: str = "", **spec: Any) -> Json:
    return {
        "apiVersion": API,
        "kind": "TenantCluster",
        "metadata": {"name": name, "namespace": "team", "uid": uid or f"uid-{name}", "generation": 1},
        "spec": {
            "kubernetesVersion": "v1.33.2",
            "workers": {"replicas": 1},
            "providerConfigRef": {"name": "lab"},
            **spec,
        },
        "status": {"kubeconfigSecretRef": {"name": f"{name}-admin-kubeconfig"}},
    }


def held(name: str, of: str, start: str, end: str, tenant: str = "web", kind: str = "loadbalancer") -> Json:
    """An allocation that was granted as Butler does it."""
    size = parse_range(start, end)[1].size
    labels = {"network-pool": of, "tenant": tenant, "tenant-uid": f"uid-{tenant}", "allocation-type": kind}
    return {
        "apiVersion": API,
        "kind": "IPAllocation",
        "metadata": {
            "name": name,
            "namespace": HOME,
            "uid": f"uid-of-{name}",
            "resourceVersion": "5",
            "finalizers": [f"{LABEL}ipallocation"],
            "labels": {f"{LABEL}{key}": value for key, value in labels.items()},
        },
        "spec": {
            "poolRef": {"name": of},
            "tenantClusterRef": {"name": tenant, "namespace": "team"},
            "type": kind,
            "count": size,
        },
        "status": {
            "phase": "Allocated",
            "startAddress": start,
            "endAddress": end,
            "allocatedCount": size,
            "tenantClusterUID": f"uid-{tenant}",
        },
    }


def announced(*addresses: str, name: str = POOL, **spec: Any) -> Json:
    labels = {"app.kubernetes.io/managed-by": "butler"}
    meta = {"name": name, "namespace": NAMESPACE, "uid": "1", "resourceVersion": "1", "labels": labels}
    return {"metadata": meta, "spec": {"addresses": [*addresses], "autoAssign": True, "avoidBuggyIPs": False, **spec}}


@dataclass
class Town:
    """Two pools, two clusters with a block of each kind, and what is on the clusters."""

    pools: dict[str, Json] = field(default_factory=dict)
    allocations: dict[str, Json] = field(default_factory=dict)
    clusters: dict[str, Json] = field(default_factory=dict)
    providers: dict[str, Json] = field(default_factory=dict)
    metallb: dict[str, list[Json] | None] = field(default_factory=dict)
    announcement: dict[str, Json | None] = field(default_factory=dict)
    services: dict[str, list[Balancer]] = field(default_factory=dict)
    nodes: dict[str, list[NodeAddresses]] = field(default_factory=dict)
    trouble: dict[str, str] = field(default_factory=dict)

    def estate(self) -> Estate:
        return Estate(
            HOME,
            tuple(from_json(NetworkPool, text) for text in self.pools.values()),
            tuple(from_json(IPAllocation, allocation) for allocation in self.allocations.values()),
            tuple(from_json(ProviderConfig, provider) for provider in self.providers.values()),
            tuple(from_json(TenantCluster, text) for text in self.clusters.values()),
        )

    def recount(self) -> Town:
        """Let the allocator write the counters."""
        books = read_books(self.estate())
        for item in books.estate.pools:
            layout = books.layouts[item.metadata.name]
            assert not isinstance(layout, InvalidPool)
            right, status = recounted(item, layout, books, NOW), self.pools[item.metadata.name]["status"]
            status |= {title: getattr(right, name) for name, title in COUNTERS.items()} | {"observedGeneration": 1}
        return self

    def sides(self) -> dict[Key, TenantAnswers]:
        return {
            Key("team", name): TenantAnswers(
                self.trouble.get(name, ""),
                None if (found := self.metallb.get(name, [])) is None else tuple(found),
                self.announcement.get(name),
                tuple(self.services.get(name, ())),
                tuple(self.nodes.get(name, ())),
            )
            for name in self.clusters
        }

    def findings(self) -> list[FsckFinding]:
        return look_once(self.estate(), self.sides(), NOW)

    def codes(self) -> list[str]:
        return sorted(str(finding.code) for finding in self.findings())

    def spoiled(self, by: Callable[[Town], object], *, recount: bool = True) -> Town:
        found = deepcopy(self)
        by(found)
        return found.recount() if recount else found


def town() -> Town:
    advert = {**advertisement(), "metadata": {**advertisement()["metadata"], "name": ADVERTISEMENT}}
    return Town(
        pools={
            "east": pool("east", "10.1.0.0/24", reserved=[{"cidr": "10.1.0.0/28", "description": "Switches"}]),
            "nodes": pool("nodes", "10.2.0.0/24"),
        },
        allocations={
            "web-lb": held("web-lb", "east", "10.1.0.16", "10.1.0.19"),
            "shop-lb": held("shop-lb", "east", "10.1.0.20", "10.1.0.23", "shop"),
            "web-nodes": held("web-nodes", "nodes", "10.2.0.1", "10.2.0.3", kind="nodes"),
            "shop-nodes": held("shop-nodes", "nodes", "10.2.0.4", "10.2.0.6", "shop", "nodes"),
        },
        clusters={"web": cluster("web"), "shop": cluster("shop")},
        metallb={"web": [announced("10.1.0.16-10.1.0.19")], "shop": [announced("10.1.0.20-10.1.0.23")]},
        announcement={"web": advert, "shop": advert},
        services={
            "web": [Balancer("default", "front", "1", addresses=("10.1.0.16",))],
            "shop": [Balancer("default", "till", "2", addresses=("10.1.0.20",))],
        },
        nodes={
            "web": [NodeAddresses("web-1", ("10.2.0.1",)), NodeAddresses("web-2", ("10.2.0.2", "fd00::1"))],
            "shop": [NodeAddresses("shop-1", ("10.2.0.4",))],
        },
    ).recount()
