"""Everything that Butler keeps in the management cluster, as read at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.rules.allocation.owner import tenant_key

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster


@dataclass(frozen=True, slots=True)
class Estate:
    """What was read; `home` is the namespace of pools, allocations and providers."""

    home: str
    pools: tuple[NetworkPool, ...] = ()
    allocations: tuple[IPAllocation, ...] = ()
    providers: tuple[ProviderConfig, ...] = ()
    clusters: tuple[TenantCluster, ...] = ()

    def pool(self, name: str) -> NetworkPool | None:
        return next((item for item in self.pools if item.metadata.name == name), None)

    def allocation(self, name: str) -> IPAllocation | None:
        return next((item for item in self.allocations if item.metadata.name == name), None)

    def of_pool(self, name: str) -> list[IPAllocation]:
        """The allocations that ask a pool, in whatever phase."""
        return [allocation for allocation in self.allocations if allocation.spec.pool_ref.name == name]


def tenant_of(allocation: IPAllocation) -> str:
    """`namespace/name` of the cluster that the addresses are for."""
    return str(tenant_key(allocation))
