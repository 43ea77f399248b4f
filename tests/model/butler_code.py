"""Butler's own decisions that the models of deletions and of tenants' blocks ask: all their imports, in one place."""

from __future__ import annotations

from butler.controllers.ipallocation.controller import Release
from butler.controllers.ipallocation.controller import decide as decide_allocation
from butler.controllers.loadbalancers.publisher import publishable
from butler.controllers.tenant_caches import BLOCKS, REFUSED_BLOCKS, Views
from butler.controllers.tenantcluster.half_tenants import HalfTenants
from butler.controllers.tenantcluster.half_tenants import marked as marked_block
from butler.ipam.layout import read_layout
from butler.ipam.requests import read_unbuilt_tenant
from butler.rules.allocation.deletion import Observed, judge
from butler.rules.allocation.deletion import users_of as machines_that_use
from butler.rules.loadbalancer.idleness import due
from butler.rules.loadbalancer.policy import LoadBalancerPolicy
from butler.rules.loadbalancer.usage import Usage, hands_out, usage_of
from butler.rules.pool.holdings import Book, LiveAllocations, holding_of
from butler.rules.pool.next_status import PoolView, uncommitted
from butler.rules.pool.next_status import plan as plan_pool
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant, is_waiting
from butler.rules.tenant.addresses import plan as plan_addresses
from butler.rules.tenant.node_addresses import NOTHING_GIVEN_UP, Fleet, give_up

__all__ = [
    "BLOCKS",
    "NOTHING_GIVEN_UP",
    "REFUSED_BLOCKS",
    "Book",
    "Fleet",
    "HalfTenants",
    "LiveAllocations",
    "LoadBalancerPolicy",
    "Observed",
    "PoolView",
    "Release",
    "Usage",
    "Views",
    "decide_allocation",
    "due",
    "give_up",
    "hands_out",
    "holding_of",
    "is_block_of_a_tenant",
    "is_waiting",
    "judge",
    "machines_that_use",
    "marked_block",
    "plan_addresses",
    "plan_pool",
    "publishable",
    "read_layout",
    "read_unbuilt_tenant",
    "uncommitted",
    "usage_of",
]
