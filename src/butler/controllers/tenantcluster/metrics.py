"""What tenant clusters tell Prometheus: how many there are in which phase, and how long they took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Gauge, Histogram

from butler.api.tenantcluster import TenantClusterPhase

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_FAST = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SLOW = (1, 2.5, 5, 10, 30, 60, 120, 180, 300, 600, 1800)


class TenantMetrics:
    """The metrics of tenant clusters, in the registry of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._phases = Gauge("butler_tenant_clusters", "Tenant clusters by phase.", ["phase"], registry=registry)
        self._network = Histogram(
            "butler_tenant_cluster_network_seconds",
            "Time from the creation of a tenant cluster to its addresses.",
            buckets=_FAST,
            registry=registry,
        )
        self._ready = Histogram(
            "butler_tenant_cluster_ready_seconds",
            "Time from the creation of a tenant cluster to its first Ready.",
            buckets=_SLOW,
            registry=registry,
        )
        self._deleted = Histogram(
            "butler_tenant_cluster_deletion_seconds",
            "Time from the request to delete a tenant cluster to its end.",
            buckets=_SLOW,
            registry=registry,
        )

    def phases(self, counts: dict[TenantClusterPhase, int]) -> None:
        """How many clusters are in each phase now."""
        for phase in TenantClusterPhase:
            self._phases.labels(phase.value).set(counts.get(phase, 0))

    def got_addresses(self, seconds: float) -> None:
        self._network.observe(max(0.0, seconds))

    def became_ready(self, seconds: float) -> None:
        self._ready.observe(max(0.0, seconds))

    def went(self, seconds: float) -> None:
        self._deleted.observe(max(0.0, seconds))
