"""What tenant clusters tell Prometheus: how many there are in which phase, who is not Ready since when, and how long
they took.

A count by phase cannot tell one cluster that hangs from many that pass through, so one that is not Ready is also shown
by name. Those are few where all is well; a cluster that is Ready costs no series of its own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import Gauge, Histogram

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.tenantcluster import TenantClusterPhase

if TYPE_CHECKING:
    from collections.abc import Collection

    from prometheus_client import CollectorRegistry

    from butler.api.tenantcluster import TenantCluster

_FAST = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
_SLOW = (1, 2.5, 5, 10, 30, 60, 120, 180, 300, 600, 1800)


class TenantMetrics:
    """The metrics of tenant clusters, in the registry of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._phases = Gauge("butler_tenant_clusters", "Tenant clusters by phase.", ["phase"], registry=registry)
        self._since = Gauge(
            "butler_tenant_cluster_phase_since_timestamp_seconds",
            "Since when a tenant cluster that is not Ready is in its phase.",
            ["namespace", "cluster", "phase", "reason"],
            registry=registry,
        )
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

    def show(self, clusters: Collection[TenantCluster]) -> None:
        """Where all clusters stand now. No scrape comes in between: it runs in the same thread."""
        counts = Counter(cluster.status.phase for cluster in clusters)
        for phase in TenantClusterPhase:
            self._phases.labels(phase.value).set(counts.get(phase, 0))
        self._since.clear()
        for cluster in clusters:
            phase, meta = cluster.status.phase, cluster.metadata
            since = cluster.status.last_transition_time or meta.creation_timestamp
            if phase is not TenantClusterPhase.READY and since is not None:
                self._since.labels(meta.namespace, meta.name, phase.value, _reason(cluster)).set(since.timestamp())

    def got_addresses(self, seconds: float) -> None:
        self._network.observe(max(0.0, seconds))

    def became_ready(self, seconds: float) -> None:
        self._ready.observe(max(0.0, seconds))

    def went(self, seconds: float) -> None:
        self._deleted.observe(max(0.0, seconds))


def _reason(cluster: TenantCluster) -> str:
    """Why it is not Ready: of a cluster that goes, what its deletion says; of one without a word, nothing."""
    going = cluster.status.phase is TenantClusterPhase.DELETING
    said = find_condition(cluster.status.conditions, ConditionType.DELETING if going else ConditionType.READY)
    return said.reason if said else ""
