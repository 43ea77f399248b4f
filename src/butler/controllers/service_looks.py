"""Whether the tenants' Services have been looked at, before addresses are granted that they may show.

Restoring the management cluster takes away the records of what was granted since. The addresses are in use all the
same, and only the Services say so. Butler may notice (`butler.kube.timeline`), or be started after the restore and
notice nothing. So at both moments pools that serve load balancers grant nothing before each tenant was looked at once:
by then what its Services show and it does not hold stands in its status, and no pool hands it out
(`butler.rules.pool.foreign_addresses`).

A tenant that cannot be reached stalls alone: one whose status said so before is not waited for, and all others for
`LONGEST` seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.objects import key_of
from butler.rules.tenant.status import is_established

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.cache import Cache
    from butler.kube.timeline import Timeline

LONGEST: Final = 10.0
"""Seconds that grants wait for tenants to be looked at."""
AGAIN: Final = 0.1
"""Seconds until a pool asks again."""


class ServiceLooks:
    """Shared by the two controllers of one process. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        clusters: Cache[TenantCluster],
        timeline: Timeline,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._clusters = clusters
        self._clock = clock
        self._monotonic = monotonic
        self._wake: Callable[[Key], None] | None = None
        self.turn = 0
        """Grows whenever what was seen before no longer counts."""
        self._began: tuple[float, datetime] | None = None
        self._looked: set[str] = set()
        self._is_over = False
        timeline.join(self)

    def wakes(self, wake: Callable[[Key], None]) -> None:
        """Whom to ask for another look at a tenant."""
        self._wake = wake

    def anew(self) -> None:
        """Another process may grant meanwhile: what was seen so far does not count when it is our turn again."""
        self.turn += 1
        self._began, self._is_over = None, False
        self._looked.clear()

    def leads(self) -> None:
        """This process begins to lead: what was begun before, be it by a reconcile on its way out, does not count."""
        self.anew()
        self.begin()

    def doubt(self) -> None:
        """Versions went back: what was granted since then may be on no record."""
        self.anew()
        for cluster in self._clusters.values():
            if self._wake is not None and is_established(cluster):
                self._wake(key_of(cluster))

    def is_due(self, uid: str) -> bool:
        """Whether grants wait for a look at this tenant, or would, had it not been looked at just now."""
        self.begin()
        return not self._is_over and uid not in self._looked

    def looked(self, uid: str, turn: int) -> None:
        """A tenant's status says what its Services show, by a look that began in this turn."""
        if turn == self.turn:
            self._looked.add(uid)

    def seconds_left(self) -> float:
        """In how many seconds to ask again before anything is granted; 0: now it may be."""
        since, began_at = self.begin()
        if self._is_over:
            return 0.0
        if self._monotonic() - since < LONGEST and any(
            cluster.metadata.uid not in self._looked and _is_waited_for(cluster, began_at)
            for cluster in self._clusters.values()
        ):
            return AGAIN
        self._is_over = True
        self._looked.clear()
        return 0.0

    def begin(self) -> tuple[float, datetime]:
        """When this turn began, by both clocks: now, if nothing was asked yet."""
        if self._began is None:
            self._began = self._monotonic(), self._clock()
        return self._began


def _is_waited_for(cluster: TenantCluster, began_at: datetime) -> bool:
    if not is_established(cluster) or cluster.metadata.deletion_timestamp is not None:
        return False
    said = find_condition(cluster.status.conditions, ConditionType.LOAD_BALANCERS_READY)
    return not (
        said is not None
        and said.reason == LoadBalancerReason.TENANT_UNREACHABLE
        and said.last_transition_time is not None
        and said.last_transition_time < began_at
    )
