"""One tenant cluster as people are shown it: where it stands, what it waits for, which addresses it has. Pure.

Teams (`butlerctl cluster`), operators (`butleradm tenant`) and the console tell the same story from here. What only
some may read (allocations and providers live in Butler's own namespace) comes in as None where it was refused; then
the cluster's own status has to do, and the page or table that shows it says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase, IPAllocationType
from butler.api.labels import Annotation, ConditionType
from butler.api.objects import key_of
from butler.ipam.addresses import address_text, range_text
from butler.reports.tenant.health import phase_of, provider_name, steps, trouble, versions, waits_for
from butler.rules.allocation.held import readable_range
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.loadbalancer.policy import terms_of
from butler.rules.loadbalancer.usage import asked_count, is_growth

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.meta import Condition
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import LoadBalancerUse, TenantCluster, TenantClusterPhase
    from butler.ipam.addresses import Family, Range


@dataclass(frozen=True, slots=True)
class TenantBlock:
    """Addresses that a cluster holds, or asks for: one IPAllocation."""

    allocation: str
    purpose: IPAllocationType
    pool: str
    phase: IPAllocationPhase
    family: Family | None
    range: Range | None
    """What it holds; None as long as that is nothing."""
    asked: int
    growth: bool
    """Whether it came later, for more machines or Services."""
    pinned: bool
    leaving: bool
    """Being deleted, or taken back from the tenant."""
    why: str
    """Why it was asked for, or why it was refused."""
    since: datetime | None
    idle_since: datetime | None

    @property
    def size(self) -> int:
        return self.range.size if self.range else 0

    @property
    def text(self) -> str:
        return range_text(self.range, self.family) if self.range and self.family else ""

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.leaving:
            return "going back"
        if self.phase is IPAllocationPhase.ALLOCATED:
            return "idle" if self.idle_since else "held"
        return "refused" if self.phase is IPAllocationPhase.FAILED else "asked for"


@dataclass(frozen=True, slots=True)
class TenantTerms:
    """What the provider says about the tenant's load-balancer addresses."""

    elastic: bool
    most: int | None


@dataclass(frozen=True, slots=True)
class Tenant:
    """A cluster, as far as the one who asks may see it."""

    namespace: str
    name: str
    phase: TenantClusterPhase
    since: datetime | None
    """When it came into this phase."""
    waits_for: str
    """Why it is not ready, or what it waits for; empty when it waits for nothing."""
    trouble: tuple[str, ...]
    """What an operator should check, in sentences."""
    version: str
    goes_to: str
    """The version that it is on its way to; empty when it is there."""
    workers_ready: int
    workers_wanted: int
    provider: str
    """`name` or `namespace/name` of its ProviderConfig; empty when it is unknown."""
    team: str
    endpoint: str
    steps: tuple[Condition, ...]
    """Its conditions, in the order in which they came to be what they are."""
    blocks: tuple[TenantBlock, ...] | None
    """None: the allocations may not be read."""
    load_balancers: LoadBalancerUse | None
    terms: TenantTerms | None
    """None: the provider may not be read, or leaves addresses to the cloud."""

    def held(self, purpose: IPAllocationType) -> int | None:
        """How many addresses it holds; None where that is unknown."""
        if self.blocks is not None:
            return sum(block.size for block in self.blocks if block.purpose is purpose)
        if purpose is IPAllocationType.LOAD_BALANCER and self.load_balancers is not None:
            return self.load_balancers.held
        return None


def tenant(
    cluster: TenantCluster,
    allocations: Iterable[IPAllocation] | None,
    provider: ProviderConfig | None,
    home: str,
) -> Tenant:
    """The view of one cluster. `provider` is the one that it is on, where that may be read."""
    status, spec = cluster.status, cluster.spec
    version, goes_to = versions(cluster)
    return Tenant(
        namespace=cluster.metadata.namespace,
        name=cluster.metadata.name,
        phase=phase_of(cluster),
        since=status.last_transition_time,
        waits_for=waits_for(cluster),
        trouble=trouble(cluster),
        version=version,
        goes_to=goes_to,
        workers_ready=status.worker_nodes_ready or 0,
        workers_wanted=spec.workers.replicas,
        provider=provider_name(cluster, provider, home),
        team=cluster.status.team or "",
        endpoint=status.control_plane_endpoint or "",
        steps=steps(cluster),
        blocks=None if allocations is None else blocks(cluster, allocations),
        load_balancers=status.load_balancers,
        terms=_terms(cluster, provider),
    )


def _terms(cluster: TenantCluster, provider: ProviderConfig | None) -> TenantTerms | None:
    if provider is None or not provider.spec.network.pool_refs:
        return None
    found = terms_of(cluster, provider)
    return TenantTerms(found.elastic, found.most)


# Addresses.


def allocations_for(cluster: TenantCluster, allocations: Iterable[IPAllocation]) -> list[IPAllocation]:
    """Those of this very cluster, not of an earlier one of its name; what was released is history."""
    key, uid = key_of(cluster), cluster.metadata.uid
    return [
        allocation
        for allocation in allocations
        if tenant_key(allocation) == key
        and recorded_owner(allocation) in (None, uid)
        and allocation.status.phase is not IPAllocationPhase.RELEASED
    ]


def blocks(cluster: TenantCluster, allocations: Iterable[IPAllocation]) -> tuple[TenantBlock, ...]:
    """What a cluster holds and asks for: nodes first, each in the order of addresses, requests last."""
    found = [_block(allocation) for allocation in allocations_for(cluster, allocations)]
    kinds = list(IPAllocationType)
    return tuple(
        sorted(
            found,
            key=lambda block: (
                kinds.index(block.purpose),
                block.range is None,
                block.range.first if block.range else 0,
                block.allocation,
            ),
        )
    )


def _block(allocation: IPAllocation) -> TenantBlock:
    status, held = allocation.status, readable_range(allocation)
    ready = find_condition(status.conditions, ConditionType.READY)
    refused = status.phase is IPAllocationPhase.FAILED and ready is not None
    return TenantBlock(
        allocation=allocation.metadata.name,
        purpose=allocation.spec.type,
        pool=allocation.spec.pool_ref.name,
        phase=status.phase,
        family=held[0] if held else None,
        range=held[1] if held else None,
        asked=asked_count(allocation),
        growth=is_growth(allocation),
        pinned=allocation.spec.pinned_range is not None,
        leaving=allocation.metadata.deletion_timestamp is not None or status.draining_since is not None,
        why=ready.message if refused and ready else allocation.metadata.annotations.get(Annotation.REASON, ""),
        since=status.allocated_at or allocation.metadata.creation_timestamp,
        idle_since=status.idle_since,
    )


def range_json(family: Family, addresses: Range) -> dict[str, Any]:
    """A range as all computed answers spell it."""
    return {
        "start": address_text(addresses.first, family),
        "end": address_text(addresses.last, family),
        "count": addresses.size,
    }
