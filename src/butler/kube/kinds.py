"""Butler's own kinds as resources of the API server, and how long a write is waited for."""

from __future__ import annotations

from typing import Final

from butler.api import GROUP, VERSION
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.schema import Part
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster
from butler.kube.resource import Resource, resource_of

POOLS: Final = resource_of(NetworkPool)
ALLOCATIONS: Final = resource_of(IPAllocation)
PROVIDERS: Final = resource_of(ProviderConfig)
CLUSTERS: Final = resource_of(TenantCluster)
ADDONS: Final = resource_of(TenantAddon)
WRITE_TIMEOUT: Final = 10.0
"""Seconds."""


class _Identity(Part):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class TenantIdentity(Part):
    """As much of a TenantCluster as a sweep needs: one that a newer Butler wrote must be readable, too."""

    metadata: _Identity


TENANT_IDENTITIES: Final = Resource(GROUP, VERSION, "tenantclusters", "TenantCluster", TenantIdentity)
