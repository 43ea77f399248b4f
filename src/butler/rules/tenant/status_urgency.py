"""What a cluster's status says at once, and what can wait a moment.

While a cluster is built, its machines and addons change many times a second, and each change is a sentence in its
status. A write for each would be most of what a cluster costs the API server. So what a person may act on is written
at once: that something stands in the way, that the cluster can be used, where things are, the stage of a deletion. How
far a new cluster has come, and numbers and sentences about progress, follow at most once in a while. The last word is
always written.

How long a cluster is on its way depends on the machine, and on how many come with it. Those that come together share
what a few would write, so a cluster does not cost more writes because it has to wait for hundreds of others; but each
tells the phase that it is in, as soon as that has lasted a moment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from butler.api.labels import TenantClusterReason
from butler.api.objects import uid_of
from butler.api.tenantcluster import TenantClusterPhase

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus

EVERY: Final = 3.0
SELDOM: Final = 12.0
"""Seconds between two writes about nothing but progress: the first, and the most after each took twice as long as the
one before."""
A_FEW: Final = 8
"""How many clusters may be on their way without taking account of each other. Of more, each says how far it has come
as seldom as these in the end, of twice as many half as often again."""
LONGEST: Final = 120.0
"""Seconds between two writes about progress, however many clusters are on their way."""
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
        # Before the cluster can be used no user is given a way to it.
        None if building else status.control_plane_endpoint,
        status.kubeconfig_secret_ref,
        status.tenant_namespace,
        status.ip_allocation_ref,
        status.lb_allocation_ref,
        status.observed_generation,
    )


def is_on_its_way(cluster: TenantCluster) -> bool:
    """Whether a cluster is being built, or waits for its turn: not one that something stands in the way of."""
    status = cluster.status
    if status.kubeconfig_secret_ref is not None or cluster.metadata.deletion_timestamp is not None:
        return False
    return status.phase in _BUILDING or (status.phase is TenantClusterPhase.PENDING and not status.conditions)


class StatusUrgency:
    """When each cluster's status was last written, and how long progress waits after that.

    `clock` is monotonic; `on_their_way` counts the clusters that come, see `is_on_its_way`.
    """

    def __init__(self, clock: Callable[[], float], on_their_way: Callable[[], int]) -> None:
        self._clock = clock
        self._on_their_way = on_their_way
        self._told: dict[str, tuple[float, float]] = {}
        self._entered: dict[str, float] = {}
        """When a cluster was first seen in a phase that its status does not tell yet."""

    def wait(self, cluster: TenantCluster, status: TenantClusterStatus) -> float:
        """Seconds to wait before this status is written; 0: write it now."""
        uid, now = uid_of(cluster), self._clock()
        last = self._told.get(uid)
        if last is None or is_news(cluster.status, status):
            return 0.0
        due = sum(last)
        if status.phase is not cluster.status.phase:
            due = min(due, self._entered.setdefault(uid, now) + EVERY)
        return max(0.0, due - now)

    def told(self, cluster: TenantCluster) -> None:
        """It was written, and the cluster is now as given."""
        uid, together = uid_of(cluster), self._on_their_way() / A_FEW
        _, before = self._told.get(uid, (0.0, EVERY / 2))
        pause = EVERY if cluster.status.kubeconfig_secret_ref is not None else min(2 * before, SELDOM)
        if is_on_its_way(cluster) and together > 1:
            pause = min(SELDOM * together, LONGEST)
        self._told[uid] = (self._clock(), pause)
        self._entered.pop(uid, None)

    def forget(self, cluster: TenantCluster) -> None:
        """It is gone."""
        self._told.pop(uid_of(cluster), None)
        self._entered.pop(uid_of(cluster), None)
