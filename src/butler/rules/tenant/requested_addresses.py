"""Which addresses a cluster wants: how many, from which pools, and why it may not want them. Pure.

Sizes come from the cluster, else the provider, else the pool; a default is cut to the tenant's quota, and what the
cluster itself names is refused above it. Where machines go is bound to the gateway: a pool that its gateway does not
lie in can give load-balancer addresses, and no machine could be reached on one of its addresses. All machines of a
cluster live in one network, so later ones stay in the pool of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType, PinnedIPRange
from butler.api.labels import ConditionType, NetworkReason, TenantClusterReason
from butler.api.providerconfig import AllocationMode
from butler.api.text import LARGEST_RANGE
from butler.ipam.addresses import Range, parse_address, parse_network, parse_range
from butler.rules.blocked import Blocked
from butler.rules.provider.settings import gateway_of, pools_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderNetwork
    from butler.api.tenantcluster import TenantCluster

DEFAULTS = (5, 8)
"""Node and load-balancer addresses per tenant where the pool does not say."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Addresses of one type, from one of these pools, in this order; no pools: none are wanted."""

    type: IPAllocationType
    pools: tuple[str, ...] = ()
    first: Callable[[NetworkPool | None], int] = lambda _: 0
    """How many to start with, which depends on the pool's defaults; 0: none."""
    least: int = 0
    """How many there have to be in any case, later too."""
    most: int | None = None
    """How many there may be, by the tenant's quota."""
    field: str = ""
    """What the number comes from, for the person who reads that it is too high."""
    pinned: PinnedIPRange | None = None
    step: int = 1
    """The fewest to add at a time, as far as the quota leaves."""
    elastic: bool = False
    """Whether the controller of load balancers requests more as the tenant's Services need it."""


class AddressesRefused(Exception):
    """Why a cluster cannot have the addresses that it wants."""

    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.message)
        self.blocked = blocked


def node_wish(
    cluster: TenantCluster, network: ProviderNetwork, pools: Mapping[str, NetworkPool], settled_in: str | None
) -> Wish:
    """Addresses for machines; none where no pool is for nodes. `settled_in` is the pool that it has some from."""
    replicas = cluster.spec.workers.replicas
    most = network.quota_per_tenant.max_node_ips if network.quota_per_tenant else None
    names = pools_for(IPAllocationType.NODES, network)
    if not names:
        return Wish(IPAllocationType.NODES)
    gateways = {name: gateway for name in names if (gateway := gateway_of(network, name)) is not None}
    if not gateways:
        raise AddressesRefused(
            invalid(
                "the ProviderConfig has no spec.network.gateway, which machines with addresses from a pool need; if the"
                " network itself gives them addresses, let poolRefs[].types be [loadbalancer]"
            )
        )
    around = tuple(name for name in gateways if name not in pools or lies_in(gateways[name], pools[name]))
    if not around:
        raise AddressesRefused(
            invalid(
                f"the gateway {' or '.join(dict.fromkeys(gateways.values()))} of the ProviderConfig lies in none of its"
                f" pools for nodes ({_list(names, pools)})"
            )
        )
    if settled_in is not None:
        around = (settled_in,)
    return Wish(
        IPAllocationType.NODES,
        around,
        first=lambda pool: max(replicas, _cut(_defaults(pool)[0], most)),
        least=replicas,
        most=most,
        field="spec.workers.replicas",
    )


def load_balancer_wish(cluster: TenantCluster, network: ProviderNetwork, pools: Mapping[str, NetworkPool]) -> Wish:
    """Addresses for the tenant's Services; none where no pool is for load balancers."""
    sizes, type_ = network.load_balancer, IPAllocationType.LOAD_BALANCER
    most = network.quota_per_tenant.max_load_balancer_ips if network.quota_per_tenant else None
    elastic = sizes is not None and sizes.allocation_mode is AllocationMode.ELASTIC
    names = pools_for(type_, network)
    picked, asked = cluster.spec.networking.load_balancer_pool, cluster.spec.networking.lb_pool_size
    if not names:
        if picked or asked:
            field = "loadBalancerPool" if picked else "lbPoolSize"
            raise AddressesRefused(invalid(f"spec.networking.{field}: no pool of the provider is for load balancers"))
        return Wish(type_)
    if picked is not None:
        _, wanted = parse_range(picked.start, picked.end)
        field, which = "spec.networking.loadBalancerPool", f"{picked.start}-{picked.end}"
        if wanted.size > LARGEST_RANGE:
            raise AddressesRefused(
                invalid(f"{field}: {which} has {wanted.size} addresses, and may have {LARGEST_RANGE}")
            )
        around = tuple(name for name in names if name not in pools or network_of(pools[name]).contains(wanted))
        if not around:
            raise AddressesRefused(invalid(f"{field}: {which} lies in no pool ({_list(names, pools)})"))
        pinned = PinnedIPRange(start_address=picked.start, end_address=picked.end)
        return Wish(type_, around, lambda _: wanted.size, 0, most, field, pinned, elastic=elastic)
    if asked is not None:
        step = sizes.growth_increment if sizes is not None and elastic else 1
        field = "spec.networking.lbPoolSize"
        return Wish(type_, names, lambda _: asked, asked, most, field, step=step, elastic=elastic)

    def first(pool: NetworkPool | None) -> int:
        if sizes is None:
            return _cut(_defaults(pool)[1], most)
        return _cut(sizes.initial_pool_size if elastic else sizes.default_pool_size, most)

    return Wish(type_, names, first, most=most, elastic=elastic)


def _defaults(pool: NetworkPool | None) -> tuple[int, int]:
    wanted = pool.spec.tenant_allocation if pool else None
    return (wanted.defaults.nodes_per_tenant, wanted.defaults.lb_pool_per_tenant) if wanted else DEFAULTS


def _cut(count: int, most: int | None) -> int:
    return count if most is None else min(count, most)


def _list(names: tuple[str, ...], pools: Mapping[str, NetworkPool]) -> str:
    return ", ".join(f"{name} {pools[name].spec.cidr}" for name in names)


def network_of(pool: NetworkPool) -> Range:
    """All addresses of a pool's network."""
    return parse_network(pool.spec.cidr)[1]


def lies_in(address: str, pool: NetworkPool) -> bool:
    """Whether an address belongs to a pool's network."""
    family, value = parse_address(address)
    of, addresses = parse_network(pool.spec.cidr)
    return family is of and addresses.contains(Range(value, value))


def waiting(message: str) -> Blocked:
    """It goes on by itself."""
    return Blocked(ConditionType.NETWORK_READY, NetworkReason.RECONCILING, message, waits=True)


def invalid(message: str) -> Blocked:
    """A user has to change what is configured."""
    return Blocked(ConditionType.NETWORK_READY, TenantClusterReason.INVALID_CONFIGURATION, message)


def over_quota(message: str) -> Blocked:
    """The tenant may not hold so many."""
    return Blocked(ConditionType.QUOTA_SATISFIED, TenantClusterReason.QUOTA_EXCEEDED, message)
