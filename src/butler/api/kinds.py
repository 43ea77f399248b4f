"""All kinds. CRDs and reference pages are made from this list."""

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.resource import CustomResource
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster

KINDS: tuple[type[CustomResource], ...] = (NetworkPool, IPAllocation, ProviderConfig, TenantCluster, TenantAddon)
