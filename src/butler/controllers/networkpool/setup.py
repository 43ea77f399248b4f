"""Address management as a whole: which controllers there are and what they share."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from butler.api.tenantcluster import TenantCluster
from butler.controllers.ipallocation.controller import IPAllocationController
from butler.controllers.ipallocation.orphans import OrphanSweep
from butler.controllers.networkpool.controller import NetworkPoolController
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.kube.kinds import ALLOCATIONS, POOLS, PROVIDERS
from butler.kube.resource import CONFIGMAPS, resource_of
from butler.rules.pool.claims import CLAIMS
from butler.rules.pool.settings import IpamSettings

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.controllers.service_looks import ServiceLooks
    from butler.kube.operator import Operator


def add_ipam(
    operator: Operator, settings: IpamSettings | None = None, looks: ServiceLooks | None = None
) -> IpamMetrics:
    """Let an operator look after NetworkPools and IPAllocations; the metrics are for others who release addresses.

    `looks` says whether the tenants' Services have been seen; None where this process does not look at any.
    """
    settings = settings or IpamSettings()
    metrics = IpamMetrics(operator.metrics.registry)
    pools = operator.cache(POOLS, namespace=settings.namespace)
    allocations = operator.cache(ALLOCATIONS, namespace=settings.namespace, transform=without_address_list)
    tenants = operator.cache(resource_of(TenantCluster))
    providers = operator.cache(PROVIDERS)
    claims = operator.cache(CONFIGMAPS, namespace=settings.home_namespace, field_selector=f"metadata.name={CLAIMS}")
    granting = NetworkPoolController(
        operator.client, pools, allocations, tenants, providers, claims, operator.events, metrics, settings, _now, looks
    )
    living = IPAllocationController(
        operator.client,
        allocations,
        pools,
        tenants,
        operator.events,
        retention=settings.retention,
        note_after=settings.note_after,
        clock=_now,
        metrics=metrics,
    )
    sweep = OrphanSweep(
        operator.client,
        allocations,
        pools,
        operator.events,
        every=settings.sweep_every,
        gap=settings.sighting_gap,
        clock=time.monotonic,
        now=_now,
        metrics=metrics,
    )
    operator.add(granting.controller(operator.metrics))
    operator.add(living.controller(metrics=operator.metrics))
    operator.add_task(sweep.run)
    operator.add_task(lambda: _while_leading(metrics))
    return metrics


async def _while_leading(metrics: IpamMetrics) -> None:
    """Show no pools any more once another process leads, which shows them itself."""
    try:
        await asyncio.Event().wait()
    finally:
        metrics.stood_down()


def without_address_list(allocation: IPAllocation) -> IPAllocation:
    """An allocation as caches keep it: the range says it all, and its single addresses would take most of the room."""
    if not allocation.status.addresses:
        return allocation
    return msgspec.structs.replace(allocation, status=msgspec.structs.replace(allocation.status, addresses=()))


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
