"""Which Services wait for an address, and which addresses are spoken for. Pure.

Only a Service that MetalLB would serve from our pool, if it had an address to give, is demand: growing for any other
would hand the tenant addresses that it cannot use, take them back when the grace time is over, and begin again. Which
ones MetalLB serves was read in its source and compared with the real controller.

An address that a Service asks for by name is never demand. Growth gives the tenant *some* address; the one asked for
is either in the pool, and then it is spoken for, or no growth will bring it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from butler.ipam.addresses import BadAddress, Family, parse_address
from butler.rules.loadbalancer.service import POOL

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from butler.rules.loadbalancer.service import Balancer


CHANCE_TO_SHARE: Final = timedelta(seconds=5)
"""How long a Service that may share an address is left to MetalLB."""


def waits(service: Balancer, served_class: str = "") -> bool:
    """Whether MetalLB would give the Service an address from our pool, had it a free one."""
    if service.addresses or service.has_hostname or service.deleting:
        return False
    if (service.class_name or "") != served_class or service.asks:
        return False
    if service.asks_pool not in (None, POOL):
        return False
    return _takes_ipv4_alone(service)


def _takes_ipv4_alone(service: Balancer) -> bool:
    families = service.families
    if families and "IPv4" not in families:
        return False
    return len(families) < 2 or service.family_policy != "RequireDualStack"


def demand(waiting: Iterable[Balancer]) -> int:
    """How many addresses the Services that wait need; those that may share one are given one first."""
    alone, shared = 0, set()
    for service in waiting:
        if service.sharing_key is None:
            alone += 1
        else:
            shared.add(service.sharing_key)
    return alone + len(shared)


def about_to_share(waiting: Iterable[Balancer], services: Iterable[Balancer], now: datetime) -> list[Balancer]:
    """Those of the Services that wait which another one's address may be enough for.

    Whether it is depends on the ports of both, and is MetalLB's to say: it is given its chance.
    """
    shown = {service.sharing_key for service in services if service.sharing_key and service.addresses}
    return [
        service
        for service in waiting
        if service.sharing_key in shown and service.created is not None and now - service.created < CHANCE_TO_SHARE
    ]


def in_use(services: Iterable[Balancer]) -> list[int]:
    """The IPv4 addresses that a Service has, in order. One that is being deleted has its address still."""
    return ipv4_addresses(text for service in services for text in service.addresses)


def spoken_for(services: Iterable[Balancer]) -> list[int]:
    """Those that a Service has, or asks for by name."""
    return ipv4_addresses(
        text for service in services for text in (*service.addresses, *(() if service.deleting else service.asks))
    )


def ipv4_addresses(texts: Iterable[str]) -> list[int]:
    """The IPv4 addresses among texts, in order, each once."""
    found: set[int] = set()
    for text in texts:
        try:
            family, value = parse_address(text)
        except BadAddress:
            continue
        if family is Family.V4:
            found.add(value)
    return sorted(found)
