"""Writing what there is to say about a tenant's load-balancer addresses, and when.

What somebody may act on is written at once. Figures that change with every Service follow at most once in a while, and
what mostly passes by itself is not spoken of before it has lasted a moment.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from butler.api.codec import status_patch
from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.objects import key_of
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import CLUSTERS, WRITE_TIMEOUT
from butler.rules.loadbalancer.status import is_news, new_status, says_otherwise, without_load_balancers

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.tenantcluster import LoadBalancerUse, TenantCluster, TenantClusterStatus
    from butler.controllers.loadbalancers.memory import Memory
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.status import Verdict

PASSES_WITHIN: Final = 3.0
"""Seconds that things get which mostly pass by themselves, before the status speaks of them."""
FIGURES_WAIT, CHANGES_WAIT = 2.0, 0.5
"""Seconds that figures wait for more to say, and addresses that came or went, which mostly change again at once."""
AFTER_A_CONFLICT: Final = 0.2
EVENTS: Final = {
    LoadBalancerReason.QUOTA_REACHED: "LoadBalancerQuotaReached",
    LoadBalancerReason.POOL_EXHAUSTED: "LoadBalancerPoolExhausted",
    LoadBalancerReason.FOREIGN_ADDRESSES: "LoadBalancerForeignAddresses",
    LoadBalancerReason.ALLOCATIONS_NOT_WRITTEN: "LoadBalancerAllocationsNotWritten",
}


class Telling:
    """Writes the status. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        client: Client,
        clusters: Cache[TenantCluster],
        events: EventRecorder,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._client = client
        self._clusters = clusters
        self._events = events
        self._clock = clock
        self._monotonic = monotonic

    async def say(
        self, cluster: TenantCluster, said: Verdict, figures: LoadBalancerUse | None, memory: Memory
    ) -> float | None:
        """Write what there is to say; in how many seconds there may be more, None when that is all."""
        left = self.seconds_to_pass(said, memory) or None
        key = key_of(cluster)
        cluster = self._clusters.get(key) or cluster
        status = new_status(cluster, said if not left else None, figures, self._clock())
        patch = status_patch(cluster.metadata, cluster.status, status)
        now = self._monotonic()
        if patch is None:
            memory.unsaid = None
            memory.told = now if memory.told is None else memory.told
            return left
        if left and memory.told is None:
            return left  # figures without a verdict are no first word
        memory.unsaid = now if memory.unsaid is None else memory.unsaid
        rest = memory.unsaid + _can_wait(cluster.status, status) - now
        if rest > 0 and memory.told is not None:
            return min(left or rest, rest)
        try:
            written = await self._client.patch(
                CLUSTERS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        except NotFound:
            return None
        except Conflict:
            return AFTER_A_CONFLICT  # the cluster's other controller was quicker
        self._clusters.wrote(written)
        if not left:
            self._tell_if_short(cluster, said)
        memory.told, memory.unsaid = now, None
        if figures is not None:
            memory.last_growth = memory.last_shrink = None
        return left

    async def retract(self, cluster: TenantCluster) -> None:
        """The cluster has no load-balancer addresses of ours, and never will: nothing is said about them any more."""
        status = without_load_balancers(cluster.status)
        patch = status_patch(cluster.metadata, cluster.status, status)
        if patch is None:
            return
        key = key_of(cluster)
        with contextlib.suppress(NotFound):
            written = await self._client.patch(
                CLUSTERS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
            self._clusters.wrote(written)

    def seconds_to_pass(self, said: Verdict, memory: Memory) -> float:
        """How long what is said may still pass by itself."""
        if not said.passes:
            memory.unsettled = None
            return 0.0
        if memory.unsettled is None or memory.unsettled[0] != said.reason:
            memory.unsettled = (said.reason, self._monotonic())
        return max(0.0, memory.unsettled[1] + PASSES_WITHIN - self._monotonic())

    def _tell_if_short(self, before: TenantCluster, said: Verdict) -> None:
        known = find_condition(before.status.conditions, ConditionType.LOAD_BALANCERS_READY)
        if said.reason in EVENTS and (known is None or known.reason != said.reason):
            self._events.record(before, CLUSTERS, EVENTS[said.reason], said.message, "Warning")


def _can_wait(old: TenantClusterStatus, new: TenantClusterStatus) -> float:
    """Seconds that may pass before this is written."""
    if says_otherwise(old, new):
        return 0.0
    return CHANGES_WAIT if is_news(old, new) else FIGURES_WAIT
