"""Writing a cluster's status: when it is worth a write, and the events and metrics of what just became so."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.codec import status_patch
from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import ConditionType, NetworkReason
from butler.api.objects import key_of
from butler.api.tenantcluster import TenantClusterPhase
from butler.kube.errors import NotFound
from butler.kube.kinds import CLUSTERS, WRITE_TIMEOUT
from butler.rules.tenant.status import is_established

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.controllers.tenantcluster.metrics import TenantMetrics
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.tenant.status_urgency import StatusUrgency

EVENTS = {
    TenantClusterPhase.READY: ("ClusterReady", "Normal"),
    TenantClusterPhase.UPDATING: ("ClusterUpdating", "Normal"),
    TenantClusterPhase.DELETING: ("ClusterDeleting", "Normal"),
    TenantClusterPhase.FAILED: ("ClusterFailed", "Warning"),
    TenantClusterPhase.PENDING: ("ClusterPending", "Warning"),
}
"""What is told when a cluster enters a phase. Pending is worth telling when it waits; that a cluster is on its way, and
how far, the status says: an Event for it would be one more write for each cluster."""


class StatusWrite(NamedTuple):
    """What came of a write."""

    cluster: TenantCluster | None
    """As the server has it now; None: it is gone, or nothing was written."""
    wait: float = 0.0
    """Seconds that the write can still wait."""


NOTHING_WRITTEN = StatusWrite(None)


class StatusWriter:
    """Writes statuses, each valid only for the version of the cluster that it was made from."""

    def __init__(
        self,
        client: Client,
        clusters: Cache[TenantCluster],
        events: EventRecorder,
        metrics: TenantMetrics,
        telling: StatusUrgency,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._events = events
        self._metrics = metrics
        self._telling = telling
        self._clock = clock

    async def write(self, cluster: TenantCluster, status: TenantClusterStatus) -> StatusWrite:
        """Write a status that says something new, now or when it is worth a write."""
        patch = status_patch(cluster.metadata, cluster.status, status)
        if patch is None:
            return NOTHING_WRITTEN
        if wait := self._telling.wait(cluster, status):
            return StatusWrite(None, wait)
        key = key_of(cluster)
        try:
            written = await self._client.patch(
                CLUSTERS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        except NotFound:
            return NOTHING_WRITTEN
        self._clusters.wrote(written)
        self._telling.told(written)
        self._record(cluster, status)
        return StatusWrite(written)

    def forget(self, cluster: TenantCluster) -> None:
        """The cluster is gone."""
        self._telling.forget(cluster)

    def _record(self, before: TenantCluster, status: TenantClusterStatus) -> None:
        """Events and metrics of what just became so."""
        if status.phase is not before.status.phase or (
            status.phase is TenantClusterPhase.PENDING and not before.status.conditions
        ):
            reason, kind = EVENTS.get(status.phase, ("", "Normal"))
            ready = find_condition(status.conditions, ConditionType.READY)
            if reason:
                self._events.record(before, CLUSTERS, reason, ready.message if ready else "", kind)  # type: ignore[arg-type]
        network = find_condition(status.conditions, ConditionType.NETWORK_READY)
        was = find_condition(before.status.conditions, ConditionType.NETWORK_READY)
        if network is not None and network.reason == NetworkReason.MACHINE_OUTSIDE_ALLOCATION and network != was:
            self._events.record(before, CLUSTERS, network.reason, network.message, "Warning")
        created = before.metadata.creation_timestamp
        if created is None:
            return
        age = (self._clock() - created).total_seconds()
        if condition_holds(status.conditions, ConditionType.NETWORK_READY) and not condition_holds(
            before.status.conditions, ConditionType.NETWORK_READY
        ):
            self._metrics.got_addresses(age)
        if status.kubeconfig_secret_ref is not None and not is_established(before):
            self._metrics.became_ready(age)
