"""One look at a tenant: its Services and its addresses, put together once, and anew only when the caches change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.rules.loadbalancer.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client
    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.usage import Usage
    from butler.tenant.service_feed import ServiceFeed


class Look:
    """A tenant during one reconcile.

    `own` gives the allocations that it may use; `saw` is called with every usage that is new. A write shows in the
    cache at once, and so does what a watch brings while a request is under way: what is decided next sees it.
    """

    def __init__(
        self,
        cluster: TenantCluster,
        policy: LoadBalancerPolicy,
        feed: ServiceFeed,
        own: Callable[[TenantCluster], list[IPAllocation]],
        saw: Callable[[Usage, Sequence[Balancer]], None],
        clock: Callable[[], datetime],
    ) -> None:
        self.cluster = cluster
        self.policy = policy
        self._feed = feed
        self._own = own
        self._saw = saw
        self._clock = clock
        self._known: tuple[list[IPAllocation], list[Balancer], Usage] | None = None

    @property
    def tenant(self) -> Client:
        return self._feed.client

    def services(self) -> list[Balancer]:
        """The tenant's Services of type LoadBalancer, as last seen."""
        return self._feed.services()

    def usage(self) -> Usage:
        """How they and the tenant's addresses stand to each other, as the caches show it now."""
        own, services = self._own(self.cluster), self.services()
        # A cache replaces what changes and never edits it, so what is the same is mostly the very same object.
        if self._known is not None and (own, services) == self._known[:2]:
            return self._known[2]
        found = usage_of(own, services, self._clock(), self.policy.served_class)
        self._known = (own, services, found)
        self._saw(found, services)
        return found
