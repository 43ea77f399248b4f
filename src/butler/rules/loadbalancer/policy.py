"""What the provider and the cluster say about a tenant's load-balancer addresses. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.providerconfig import AllocationMode, NetworkMode
from butler.rules.blocked import Blocked
from butler.rules.provider.settings import pools_for

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster


@dataclass(frozen=True, slots=True)
class LoadBalancerPolicy:
    """The rules that a tenant's addresses follow."""

    elastic: bool = False
    """Whether they follow demand; else the number is fixed."""
    increment: int = 1
    """The fewest to add at a time, as long as there is room."""
    most: int | None = None
    """How many the tenant may hold, by quota."""
    least: int = 0
    """How many the cluster asks for in any case."""
    pools: tuple[str, ...] = ()
    """Where they come from, in order."""
    served_class: str = ""
    """The load balancer class of the Services that MetalLB serves; by default those without one."""
    shrinks: bool = True
    """Whether addresses that were idle for long go back; not while it is unclear what the tenant may have."""
    fixed: str = "the provider gives no more by itself (loadBalancer.allocationMode is not elastic)"
    """Why the number is fixed, where it is."""


def terms_of(cluster: TenantCluster, provider: ProviderConfig | Blocked) -> LoadBalancerPolicy:
    """The rules of one cluster; without a provider it keeps what it has."""
    addon = cluster.spec.addons.load_balancer
    served = addon.values.get("loadBalancerClass") if addon is not None else None
    least = cluster.spec.networking.lb_pool_size or 0
    kept = LoadBalancerPolicy(least=least, served_class=served if isinstance(served, str) else "")
    if isinstance(provider, Blocked):
        return replace(kept, shrinks=False, fixed=f"it is unclear where more would come from: {provider.message}")
    if provider.spec.network.mode is not NetworkMode.IPAM:
        return replace(kept, fixed="the provider has no pools (network.mode is not ipam)")
    network, sizes = provider.spec.network, provider.spec.network.load_balancer
    return replace(
        kept,
        elastic=sizes is not None and sizes.allocation_mode is AllocationMode.ELASTIC,
        increment=sizes.growth_increment if sizes is not None else 1,
        most=network.quota_per_tenant.max_load_balancer_ips if network.quota_per_tenant else None,
        pools=pools_for(IPAllocationType.LOAD_BALANCER, network),
    )
