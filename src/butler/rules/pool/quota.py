"""What one tenant may hold, by the ProviderConfig of its cluster, for requests of every author. Pure.

`quotaPerTenant` bounds the node and the load-balancer addresses of a TenantCluster over all pools. Granted addresses
count, and of the requests that wait for an answer those that are older, so that two that come at once do not both get
what is left, nor keep each other from it. What was refused counts nothing. An allocation that comes back from a backup
gets what it had, whatever the quota is by now, and counts before all others.

The bound is exact for all requests that one pool decides on. Two pools that decide at the same moment, one of them on
an older request that was refused before, may together go beyond it by that request.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocation, IPAllocationPhase, IPAllocationType
from butler.api.labels import AllocationReason
from butler.api.networkpool import AllocationDefaults
from butler.ipam.addresses import BadAddress, parse_range
from butler.rules.allocation.held import granted_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.ipam.decide import AddressGrant
    from butler.ipam.refusals import Why
    from butler.ipam.requests import AddressRequest

    QuotaOf = Callable[[IPAllocation], "Quota | None"]

FIELDS = {IPAllocationType.NODES: "maxNodeIPs", IPAllocationType.LOAD_BALANCER: "maxLoadBalancerIPs"}


@dataclass(frozen=True, slots=True)
class Quota:
    """How many addresses of one type a tenant may hold, and what else it holds or is about to."""

    tenant: str
    most: int
    field: str
    used: int
    """By all others that count against the request."""
    awaited: frozenset[str] = frozenset()
    """UIDs of those that only ask for addresses so far, and count all the same."""


def limit_of(config: ProviderConfig, type_: IPAllocationType) -> int | None:
    """The most addresses of a type that one tenant of a provider may hold; None where there is no limit."""
    quota = config.spec.network.quota_per_tenant
    if quota is None:
        return None
    return quota.max_node_ips if type_ is IPAllocationType.NODES else quota.max_load_balancer_ips


def quota_of(
    request: IPAllocation,
    tenant: str,
    most: int,
    others: Iterable[IPAllocation],
    pool_of: Callable[[IPAllocation], NetworkPool | None],
) -> Quota:
    """What a tenant may hold beside what counts against a request: what it holds, and what it asked for earlier."""
    same = [other for other in others if other.spec.type is request.spec.type and other is not request]
    held = [other for other in same if other.status.phase is IPAllocationPhase.ALLOCATED]
    earlier = [
        other for other in same if other.status.phase is IPAllocationPhase.PENDING and _age(other) < _age(request)
    ]
    return Quota(
        tenant=tenant,
        most=most,
        field=FIELDS[request.spec.type],
        used=sum(size_of(other, pool_of(other)) for other in (*held, *earlier)),
        awaited=frozenset(other.metadata.uid for other in earlier),
    )


def size_of(allocation: IPAllocation, pool: NetworkPool | None) -> int:
    """How many addresses an allocation holds or asks for."""
    granted, pinned = granted_range(allocation), allocation.spec.pinned_range
    if granted is not None:
        return granted[1].size
    if pinned is not None:
        try:
            return parse_range(pinned.start_address, pinned.end_address)[1].size
        except BadAddress:
            return 0
    if allocation.spec.count is not None:
        return allocation.spec.count
    wanted = pool.spec.tenant_allocation if pool is not None else None
    defaults = wanted.defaults if wanted is not None else AllocationDefaults()
    nodes = allocation.spec.type is IPAllocationType.NODES
    return defaults.nodes_per_tenant if nodes else defaults.lb_pool_per_tenant


def objection(count: int, quota: Quota | None) -> Why | None:
    """Why a tenant may not have so many addresses; None where it may."""
    if quota is None or quota.used + count <= quota.most:
        return None
    left = max(0, quota.most - quota.used)
    message = (
        f"needs {count} {'address' if count == 1 else 'addresses'}; {quota.tenant} holds or awaits {quota.used} and may"
        f" hold {quota.most} (quotaPerTenant.{quota.field}): ask for {f'{left} or fewer' if left else 'none'}, release"
        " others of it, or raise the quota of the ProviderConfig"
    )
    return AllocationReason.QUOTA_EXCEEDED, message


def beyond_quota(
    grants: Sequence[AddressGrant], requests: Mapping[str, AddressRequest], quotas: Mapping[str, Quota]
) -> dict[str, Why]:
    """The grants, by UID, that go beyond a quota because of others that are granted in the same moment."""
    granted: dict[tuple[str, str], dict[str, int]] = {}
    refused: dict[str, Why] = {}
    for grant in sorted(grants, key=lambda grant: _turn(requests[grant.uid])):
        quota = quotas.get(grant.uid)
        if quota is None:
            continue
        beside = granted.setdefault((quota.tenant, quota.field), {})
        more = sum(size for uid, size in beside.items() if uid not in quota.awaited)
        why = objection(grant.range.size, replace(quota, used=quota.used + more))
        if why is None or requests[grant.uid].had:
            beside[grant.uid] = grant.range.size
        else:
            refused[grant.uid] = why
    return refused


def _turn(request: AddressRequest) -> tuple[bool, datetime, str]:
    return not request.had, request.created, request.uid


def _age(allocation: IPAllocation) -> tuple[str, str]:
    created = allocation.metadata.creation_timestamp
    return created.isoformat() if created else "~", allocation.metadata.uid
