"""What a cluster's status says at once, and what can wait a moment.

While a cluster is built, its machines and addons change many times a second, and each change is a sentence in its
status. A write for each would be most of what a cluster costs the API server. So what a person may act on is written
at once: that something stands in the way, that the cluster can be used, where things are, the stage of a deletion. How
far a new cluster has come, and numbers and sentences about progress, follow at most once in a while. The last word is
always written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from butler.api.labels import TenantClusterReason
from butler.api.tenantcluster import TenantClusterPhase
from butler.kube.objects import uid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus

EVERY: Final = 3.0
SELDOM: Final = 12.0
"""Seconds between two writes about nothing but progress: the first, and the most after each took twice as long as the
one before. Where hundreds of clusters come at once, each is long on its way, and its progress is what all wait for."""
_BUILDING: Final = (TenantClusterPhase.PROVISIONING, TenantClusterPhase.INSTALLING)
_ON_THE_WAY: Final = frozenset(
    (TenantClusterReason.WAITING, TenantClusterReason.PROVISIONING, TenantClusterReason.INSTALLING)
)


def is_news(old: TenantClusterStatus, new: TenantClusterStatus) -> bool:
    """Whether anything changed that a person may act on."""
    building = old.kubeconfig_secret_ref is None and old.phase in _BUILDING
    return _gist(old, building=building) != _gist(new, building=building)


def _gist(status: TenantClusterStatus, *, building: bool) -> tuple[Any, ...]:
    """What counts. Of a cluster that is being built, only what stands in its way: that all else comes is expected."""
    conditions = {
        (condition.type, condition.status, condition.reason)
        for condition in status.conditions
        if not building or (condition.status == "False" and condition.reason not in _ON_THE_WAY)
    }
    phase = TenantClusterPhase.PROVISIONING if building and status.phase in _BUILDING else status.phase
    return (
        phase,
        conditions,
        status.deletion,
        status.control_plane_endpoint,
        status.kubeconfig_secret_ref,
        status.tenant_namespace,
        status.ip_allocation_ref,
        status.lb_allocation_ref,
        status.observed_generation,
    )


class Telling:
    """When each cluster's status was last written, and how long progress waits after that. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[str, tuple[float, float]] = {}

    def wait(self, cluster: TenantCluster, status: TenantClusterStatus) -> float:
        """Seconds to wait before this status is written; 0: write it now."""
        last = self._told.get(uid_of(cluster))
        if last is None or is_news(cluster.status, status):
            return 0.0
        when, pause = last
        return max(0.0, when + pause - self._clock())

    def told(self, cluster: TenantCluster) -> None:
        """It was written."""
        uid = uid_of(cluster)
        _, before = self._told.get(uid, (0.0, EVERY / 2))
        pause = EVERY if cluster.status.kubeconfig_secret_ref is not None else min(2 * before, SELDOM)
        self._told[uid] = (self._clock(), pause)

    def forget(self, cluster: TenantCluster) -> None:
        """It is gone."""
        self._told.pop(uid_of(cluster), None)
