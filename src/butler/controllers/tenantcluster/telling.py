"""What a cluster's status tells at once, and what can wait a moment.

While a cluster is built, its machines and addons change many times a second, and each change is a sentence in its
status. A write for each would be most of what a cluster costs the API server. So whatever somebody may act on is
written at once: the phase, what a condition holds and why, where things are, the stage of a deletion. Numbers and
sentences about progress follow at most once in a while, and the last word is always written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from butler.kube.objects import uid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus

EVERY: Final = 1.0
"""Seconds between two writes about nothing but progress."""


def is_news(old: TenantClusterStatus, new: TenantClusterStatus) -> bool:
    """Whether anything changed that somebody may act on."""
    return _gist(old) != _gist(new)


def _gist(status: TenantClusterStatus) -> tuple[Any, ...]:
    return (
        status.phase,
        {(each.type, each.status, each.reason) for each in status.conditions},
        status.deletion,
        status.control_plane_endpoint,
        status.kubeconfig_secret_ref,
        status.tenant_namespace,
        status.ip_allocation_ref,
        status.lb_allocation_ref,
        status.observed_generation,
    )


class Telling:
    """When each cluster's status was last written. `clock` is monotonic."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[str, float] = {}

    def wait(self, cluster: TenantCluster, status: TenantClusterStatus) -> float:
        """Seconds to wait before this status is written; 0: write it now."""
        last = self._told.get(uid_of(cluster))
        if last is None or is_news(cluster.status, status):
            return 0.0
        return max(0.0, last + EVERY - self._clock())

    def told(self, cluster: TenantCluster) -> None:
        """It was written."""
        self._told[uid_of(cluster)] = self._clock()

    def forget(self, cluster: TenantCluster) -> None:
        """It is gone."""
        self._told.pop(uid_of(cluster), None)
