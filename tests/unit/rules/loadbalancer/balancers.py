"""Services and addresses of the cluster web as plain values."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec

from butler.rules.loadbalancer.policy import LoadBalancerPolicy
from butler.rules.loadbalancer.service import Balancer
from butler.rules.loadbalancer.usage import Usage, usage_of
from unit.controllers.tenantcluster.values import NOW, allocation

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

GRACE = timedelta(minutes=10)
ELASTIC = LoadBalancerPolicy(elastic=True, increment=2, most=10, pools=("vlan40", "vlan41"))


def service(name: str = "shop", *addresses: str, **more: Any) -> Balancer:
    """A Service of type LoadBalancer; it waits unless it has an address, or something else speaks against it."""
    more.setdefault("families", ("IPv4",))
    more.setdefault("family_policy", "SingleStack")
    return Balancer("web", name, f"uid-{name}", addresses=addresses, **more)


def waiting(count: int) -> list[Balancer]:
    return [service(f"waits-{number}") for number in range(count)]


def lb(
    name: str = "web-lb",
    start: str = "10.40.0.20",
    count: int = 2,
    *,
    growth: bool = False,
    idle: float | None = None,
    draining: float | None = None,
    **more: Any,
) -> IPAllocation:
    """Addresses that were granted; idle and draining for so many seconds."""
    found = allocation(name, "loadbalancer", count, start=start, growth=growth, **more)
    since = None if idle is None else NOW - timedelta(seconds=idle)
    marked = None if draining is None else NOW - timedelta(seconds=draining)
    status = msgspec.structs.replace(found.status, idle_since=since, draining_since=marked)
    return msgspec.structs.replace(found, status=status)


def asked(name: str = "web-lb-2", count: int = 2, *, growth: bool = True, **more: Any) -> IPAllocation:
    """A request that was not granted (yet)."""
    return allocation(name, "loadbalancer", count, growth=growth, **more)


def refused(name: str = "web-lb-2", count: int = 2, **more: Any) -> IPAllocation:
    return asked(name, count, phase="Failed", why="no run of free addresses is long enough", **more)


def look(*own: IPAllocation, services: list[Balancer] | None = None, served_class: str = "") -> Usage:
    return usage_of(own, services or [], NOW, served_class)
