"""What becomes of tenants' Services: how long each waited for its address, and whether one ever lost it.

That an address is taken from a Service that has it must not happen, by any hand, so it is told loudly.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from butler.kube.kinds import CLUSTERS
from butler.rules.loadbalancer.demand import waits

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.kube.cache import Cache
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.service import Balancer

MOVED: Final = "ServiceAddressMoved"
MOST_WAITING: Final = 1_000
"""How many Services that wait are remembered of a tenant, which may make any number."""


class ServiceRecord:
    """Hears of every change of a Service. `monotonic` is a clock."""

    def __init__(
        self,
        clusters: Cache[TenantCluster],
        events: EventRecorder,
        metrics: LoadBalancerMetrics,
        monotonic: Callable[[], float],
    ) -> None:
        self._clusters = clusters
        self._events = events
        self._metrics = metrics
        self._monotonic = monotonic
        self._waiting: defaultdict[Key, dict[str, float]] = defaultdict(dict)

    def changed(self, key: Key, old: Balancer | None, new: Balancer | None) -> None:
        """A Service of the tenant `key` came, changed or went."""
        if old is not None and (new is None or new.uid != old.uid):
            self._waiting[key].pop(old.uid, None)
        if new is None:
            return
        if old is not None and has_lost_its_address(old, new):
            self._tell(key, old, new)
        waiting = self._waiting[key]
        since = waiting.get(new.uid)
        if waits(new, new.class_name or ""):
            if since is None and len(waiting) < MOST_WAITING:
                waiting[new.uid] = self._monotonic()
        elif since is not None:
            del waiting[new.uid]
            if new.addresses:
                self._metrics.waited(self._monotonic() - since)

    def forget(self, key: Key) -> None:
        """The tenant is not followed any more."""
        self._waiting.pop(key, None)

    def _tell(self, key: Key, old: Balancer, new: Balancer) -> None:
        self._metrics.moved()
        cluster = self._clusters.get(key)
        if cluster is not None:
            now = ", ".join(new.addresses) or "none"
            message = f"Service {new.namespace}/{new.name} had {', '.join(old.addresses)} and has {now} now"
            self._events.record(cluster, CLUSTERS, MOVED, message, "Warning")


def has_lost_its_address(old: Balancer, new: Balancer) -> bool:
    """Whether a Service that goes on as it was has lost an address that it had."""
    goes_on = old.uid == new.uid and not new.deleting and _asks(old) == _asks(new)
    return goes_on and not set(old.addresses) <= set(new.addresses)


def _asks(service: Balancer) -> tuple[object, ...]:
    """All that a change of which may cost a Service its address, by the tenant's own doing."""
    asked = (service.asks, service.asks_pool, service.class_name)
    return (*asked, service.sharing_key, service.families, service.family_policy)
