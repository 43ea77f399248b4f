"""Tenant clusters as the API shows them. Pure: the view of a tenant goes in, what is sent comes out."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationType
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import Family
from butler.reports.tenant import addresses as view_addresses
from butler.reports.tenant import summary as view
from butler.rules.allocation.held import granted_range
from butler.rules.allocation.owner import recorded_owner
from butler.rules.loadbalancer.usage import is_growth
from butler.server.models.tenants import (
    Block,
    Drift,
    LoadBalancerUse,
    MetalLB,
    Span,
    TenantAddresses,
    TenantChange,
    TenantItem,
)
from butler.server.presenters.common import range_of


def tenant_item(
    cluster: TenantCluster, allocations: Iterable[IPAllocation] | None, provider: ProviderConfig | None, home: str
) -> TenantItem:
    """`allocations` is None where they may not be read, and so is `provider`."""
    return shown_tenant(cluster, view.tenant(cluster, allocations, provider, home))


def shown_tenant(cluster: TenantCluster, found: view.Tenant) -> TenantItem:
    use, meta = found.load_balancers, cluster.metadata
    return TenantItem(
        namespace=found.namespace,
        name=found.name,
        phase=found.phase.value,
        since=found.since,
        waits_for=found.waits_for,
        trouble=list(found.trouble),
        version=found.version,
        goes_to=found.goes_to,
        workers_ready=found.workers_ready,
        workers_wanted=found.workers_wanted,
        provider=found.provider,
        team=found.team,
        endpoint=found.endpoint,
        node_addresses=found.held(IPAllocationType.NODES),
        load_balancer_addresses=found.held(IPAllocationType.LOAD_BALANCER),
        load_balancers_in_use=use.in_use if use else None,
        services_waiting=use.waiting_services if use else None,
        elastic=found.terms.elastic if found.terms else False,
        created_at=meta.creation_timestamp,
        deleting=meta.deletion_timestamp is not None,
        resource_version=meta.resource_version,
    )


def shown_blocks(found: view.Tenant) -> list[Block] | None:
    return None if found.blocks is None else [shown_block(block) for block in found.blocks]


def shown_block(block: view.TenantBlock) -> Block:
    return Block(
        allocation=block.allocation,
        type=block.purpose.value,
        pool=block.pool,
        phase=block.phase.value,
        state=block.state,
        range=range_of(block.range, block.family) if block.range and block.family else None,
        requested=block.asked,
        growth=block.growth,
        pinned=block.pinned,
        leaving=block.leaving,
        why=block.why,
        since=block.since,
        idle_since=block.idle_since,
    )


def shown_use(found: view.Tenant) -> LoadBalancerUse | None:
    use = found.load_balancers
    if use is None:
        return None
    most = found.terms.most if found.terms else None
    return LoadBalancerUse(held=use.held, in_use=use.in_use, idle=use.idle, waiting=use.waiting_services, most=most)


def tenant_changes(cluster: TenantCluster, allocations: Iterable[IPAllocation]) -> list[TenantChange]:
    """What this very cluster was granted and gave back, as far as it is on record, newest first."""
    found: list[TenantChange] = []
    for allocation in allocations:
        granted = granted_range(allocation)
        if granted is None or recorded_owner(allocation) not in (None, cluster.metadata.uid):
            continue
        for at, action in _moments(allocation):
            found.append(
                TenantChange(
                    at=at,
                    action=action,
                    allocation=allocation.metadata.name,
                    type=allocation.spec.type.value,
                    range=range_of(granted[1], granted[0]),
                    growth=is_growth(allocation),
                )
            )
    return sorted(found, key=lambda tenant_change: (tenant_change.at, tenant_change.allocation), reverse=True)


def _moments(allocation: IPAllocation) -> Iterable[tuple[datetime, str]]:
    status = allocation.status
    if status.allocated_at is not None:
        yield status.allocated_at, "granted"
    if status.released_at is not None and status.phase is IPAllocationPhase.RELEASED:
        yield status.released_at, "released"


def shown_addresses(found: view_addresses.TenantAddressReport) -> TenantAddresses:
    return TenantAddresses(
        namespace=found.namespace,
        name=found.name,
        nodes=[_span(node) for node in found.nodes],
        load_balancers=[_span(load_balancer) for load_balancer in found.load_balancers],
        waiting=None if found.waiting is None else list(found.waiting),
        metallb=MetalLB(
            in_step=found.metallb.in_step,
            missing=list(found.metallb.missing),
            strange=list(found.metallb.strange),
            says=found.metallb.says,
        ),
        unseen=list(found.unseen),
    )


def _span(span: view_addresses.AddressSpan) -> Span:
    where = range_of(span.range, Family.V4)
    return Span(
        start=where.start,
        end=where.end,
        count=where.count,
        state=span.state,
        users=list(span.users),
        platform=span.platform,
        pool=span.pool,
        allocation=span.allocation,
    )


def shown_drift(found: view_addresses.TenantAddressReport) -> Drift:
    lb = found.metallb
    return Drift(
        namespace=found.namespace,
        name=found.name,
        in_step=lb.in_step,
        missing=list(lb.missing),
        strange=list(lb.strange),
        says=lb.says,
    )
