"""Butler's own decisions that the models of deletions and of tenants' blocks ask: all their imports, in one place."""

from __future__ import annotations

from butler.controllers.tenant_caches import BLOCKS, REFUSED_BLOCKS, Views
from butler.controllers.tenantcluster.half_tenants import HalfTenants
from butler.controllers.tenantcluster.half_tenants import marked as marked_block
from butler.ipam.layout import read_layout
from butler.ipam.requests import read_unbuilt_tenant
from butler.rules.pool.holdings import Book, LiveAllocations, holding_of
from butler.rules.pool.next_status import PoolView, uncommitted
from butler.rules.pool.next_status import plan as plan_pool
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant, is_waiting
from butler.rules.tenant.addresses import plan as plan_addresses

__all__ = [
    "BLOCKS",
    "REFUSED_BLOCKS",
    "Book",
    "HalfTenants",
    "LiveAllocations",
    "PoolView",
    "Views",
    "holding_of",
    "is_block_of_a_tenant",
    "is_waiting",
    "marked_block",
    "plan_addresses",
    "plan_pool",
    "read_layout",
    "read_unbuilt_tenant",
    "uncommitted",
]
