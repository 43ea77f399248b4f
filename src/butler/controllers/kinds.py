"""The kinds that address management writes, and how long it waits for an answer to a write."""

from __future__ import annotations

from typing import Final

from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.kube.resource import resource_of

POOLS: Final = resource_of(NetworkPool)
ALLOCATIONS: Final = resource_of(IPAllocation)
WRITE_TIMEOUT: Final = 10.0
