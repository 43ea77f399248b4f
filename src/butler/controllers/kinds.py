"""The kinds that controllers write, and how long they wait for an answer to a write."""

from __future__ import annotations

from typing import Final

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster
from butler.kube.resource import resource_of

POOLS: Final = resource_of(NetworkPool)
ALLOCATIONS: Final = resource_of(IPAllocation)
PROVIDERS: Final = resource_of(ProviderConfig)
CLUSTERS: Final = resource_of(TenantCluster)
ADDONS: Final = resource_of(TenantAddon)
WRITE_TIMEOUT: Final = 10.0
