"""Writing what there is to say about a tenant's load-balancer addresses, and when.

What a person may act on is written at once. Figures that change with every Service follow at most once in a while, and
what mostly passes by itself is not spoken of before it has lasted a moment.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.codec import status_patch
from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.objects import key_of
from butler.api.tenantcluster import PoolChange
from butler.controllers.loadbalancers.next_look import AT_ONCE, ON_CHANGE, NextLook
from butler.kube.errors import Conflict, NotFound
from butler.kube.kinds import CLUSTERS, WRITE_TIMEOUT
from butler.rules.loadbalancer.status import (
    is_news,
    new_status,
    says_otherwise,
    shows_more,
    without_load_balancers,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.tenantcluster import LoadBalancerUse, TenantCluster, TenantClusterStatus
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.status import LoadBalancerVerdict

PASSES_WITHIN: Final = 3.0
"""Seconds that things get which mostly pass by themselves, before the status speaks of them."""
FIGURES_WAIT, CHANGES_WAIT = 2.0, 0.5
"""Seconds that figures wait for more to say, and addresses that came or went, which mostly change again at once."""
AFTER_A_CONFLICT: Final = NextLook(0.2)
EVENTS: Final = {
    LoadBalancerReason.QUOTA_REACHED: "LoadBalancerQuotaReached",
    LoadBalancerReason.POOL_EXHAUSTED: "LoadBalancerPoolExhausted",
    LoadBalancerReason.FOREIGN_ADDRESSES: "LoadBalancerForeignAddresses",
    LoadBalancerReason.ALLOCATIONS_NOT_WRITTEN: "LoadBalancerAllocationsNotWritten",
}


@dataclass(slots=True)
class StatusProgress:
    """What the status said, and when. `LoadBalancerStatusWriter` alone changes it, and `grew` and `shrank`."""

    told: float | None = None
    """When the status was last written, or first seen to say what there is to say."""
    unsaid: float | None = None
    """Since when there is something to say that it does not say yet."""
    unsettled: tuple[LoadBalancerReason, float] | None = None
    """What passes by itself, mostly, and since when it did not."""
    first_word: tuple[LoadBalancerVerdict, LoadBalancerUse] | None = None
    """What to say when the cluster can first be used; None unless all is well."""
    settles_until: float | None = None
    """Until when a cluster that comes up is held at most, for its Services to get their first addresses."""
    last_growth: PoolChange | None = None
    last_shrink: PoolChange | None = None
    """Changes that the status does not tell of yet."""

    def grew(self, change: PoolChange) -> None:
        """Addresses came."""
        self.last_growth = change

    def shrank(self, change: PoolChange) -> None:
        """Addresses went; they count together with those that the status does not tell of yet."""
        before = self.last_shrink.addresses if self.last_shrink else 0
        self.last_shrink = PoolChange(time=change.time, addresses=before + change.addresses, reason=change.reason)


class LoadBalancerStatusWriter:
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

    async def report(
        self,
        cluster: TenantCluster,
        said: LoadBalancerVerdict,
        figures: LoadBalancerUse,
        progress: StatusProgress,
        *,
        is_up: bool,
    ) -> NextLook:
        """Write how things stand on a tenant, and say when there may be more.

        Before the cluster `is_up`, its own controller says so, and the first word here goes with what that writes.
        """
        progress.first_word = (said, figures) if said.holds else None
        if is_up:
            progress.settles_until = None
            return await self.say(cluster, said, figures, progress)
        lasts = self._when_it_lasts(said, progress)
        progress.settles_until = None if lasts.is_due else self._monotonic() + lasts.seconds
        return ON_CHANGE if lasts.is_due else lasts

    async def say(
        self,
        cluster: TenantCluster,
        said: LoadBalancerVerdict,
        figures: LoadBalancerUse | None,
        progress: StatusProgress,
    ) -> NextLook:
        """Write what there is to say, and when there may be more."""
        lasts = self._when_it_lasts(said, progress)
        again = ON_CHANGE if lasts.is_due else lasts
        key = key_of(cluster)
        cluster = self._clusters.get(key) or cluster
        status = new_status(cluster, said if lasts.is_due else None, figures, self._clock())
        patch = status_patch(cluster.metadata, cluster.status, status)
        now = self._monotonic()
        if patch is None:
            progress.unsaid = None
            progress.told = now if progress.told is None else progress.told
            return again
        if not lasts.is_due and progress.told is None and not shows_more(cluster.status, status):
            return again  # figures without a verdict are no first word
        progress.unsaid = now if progress.unsaid is None else progress.unsaid
        rest = NextLook.within(progress.unsaid + _can_wait(cluster.status, status) - now)
        if not rest.is_due and progress.told is not None:
            return min(again, rest)
        try:
            written = await self._client.patch(
                CLUSTERS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
            )
        except NotFound:
            return ON_CHANGE
        except Conflict:
            return AFTER_A_CONFLICT  # the cluster's other controller was quicker
        self._clusters.wrote(written)
        if lasts.is_due:
            self._tell_if_short(cluster, said)
        progress.told, progress.unsaid = now, None
        if figures is not None:
            progress.last_growth = progress.last_shrink = None
        return again

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

    def _when_it_lasts(self, said: LoadBalancerVerdict, progress: StatusProgress) -> NextLook:
        """When to speak of it: at once, unless it may still pass by itself."""
        if not said.passes:
            progress.unsettled = None
            return AT_ONCE
        now = self._monotonic()
        if progress.unsettled is None or progress.unsettled[0] != said.reason:
            progress.unsettled = (said.reason, now)
        return NextLook.within(progress.unsettled[1] + PASSES_WITHIN - now)

    def _tell_if_short(self, before: TenantCluster, said: LoadBalancerVerdict) -> None:
        known = find_condition(before.status.conditions, ConditionType.LOAD_BALANCERS_READY)
        if said.reason in EVENTS and (known is None or known.reason != said.reason):
            self._events.record(before, CLUSTERS, EVENTS[said.reason], said.message, "Warning")


def _can_wait(old: TenantClusterStatus, new: TenantClusterStatus) -> float:
    """Seconds that may pass before this is written."""
    if says_otherwise(old, new) or shows_more(old, new):
        return 0.0
    return CHANGES_WAIT if is_news(old, new) else FIGURES_WAIT
