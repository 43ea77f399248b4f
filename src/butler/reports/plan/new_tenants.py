"""Tenants that do not exist yet, and where they would go: clusters and providers made up for a `Rehearsal`. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.meta import ObjectMeta, ProviderConfigReference
from butler.api.objects import key_of
from butler.api.providerconfig import (
    NetworkMode,
    PoolReference,
    ProviderConfig,
    ProviderConfigSpec,
    ProviderConfigStatus,
    ProviderNetwork,
)
from butler.api.providers import Provider
from butler.api.tenantcluster import Networking, TenantCluster, TenantClusterSpec, TenantClusterStatus, Workers
from butler.ipam.addresses import Family, address_text
from butler.ipam.layout import InvalidPool, pool_layout
from butler.reports.plan.plan import Block, CannotPlan, TenantOutcome
from butler.rules.allocation.held import readable_range
from butler.rules.allocation.owner import tenant_key
from butler.rules.blocked import Blocked
from butler.rules.provider.placement import placement

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.reports.plan.plan import Tenants
    from butler.reports.plan.simulation import Rehearsal

NAMELESS = "planned"
"""What everything is called that does not exist; a number follows."""
_VERSION = "v1.33.2"


def provider_for(stage: Rehearsal, wanted: Tenants) -> ProviderConfig:
    """The provider that the tenants go to, put on the stage where it is made up. Raises `CannotPlan`."""
    for name in wanted.pools:
        if name not in stage.pools:
            raise CannotPlan(f"there is no NetworkPool {name} in namespace {stage.home}")
    if not wanted.by_a_provider:
        return _on_stage(stage, _of_pools(stage, wanted.pools))
    provider = _existing(stage, wanted.provider)
    network = provider.spec.network
    if network.mode is NetworkMode.CLOUD:
        raise CannotPlan(
            f"ProviderConfig {provider.metadata.name} is in cloud mode, which has no pools:"
            " name another one with --provider, or pools with --pool"
        )
    if not wanted.pools:
        return provider
    kept = tuple(ref for ref in network.pool_refs if ref.name in wanted.pools)
    strangers = sorted(set(wanted.pools) - {ref.name for ref in kept})
    if strangers:
        raise CannotPlan(
            f"ProviderConfig {provider.metadata.name} does not use pool {', '.join(strangers)}:"
            f" it uses {', '.join(ref.name for ref in network.pool_refs)}"
        )
    network = msgspec.structs.replace(network, pool_refs=kept)
    return _on_stage(
        stage, msgspec.structs.replace(provider, spec=msgspec.structs.replace(provider.spec, network=network))
    )


def let_in(stage: Rehearsal, provider: ProviderConfig, wanted: Tenants) -> tuple[TenantOutcome, ...]:
    """What becomes of the tenants, who come one after the other."""
    found: list[TenantOutcome] = []
    for number in range(1, wanted.count + 1):
        if found and not found[-1].fits and not any(block.range for block in found[-1].blocks):
            # It got nothing, so nothing has changed for the next one, who asks for the same.
            found.append(_like(found[-1], number))
            continue
        stage.later()
        cluster = _cluster(f"{NAMELESS}-{number}", provider, wanted)
        has = stage.admit(cluster)
        blocked = has if isinstance(has, Blocked) else has.blocked
        blocks = tuple(block_of(allocation) for allocation in stage.allocations_of(key_of(cluster)))
        found.append(TenantOutcome(number, cluster.metadata.name, blocks, blocked.message if blocked else ""))
    return tuple(found)


def _like(other: TenantOutcome, number: int) -> TenantOutcome:
    name = f"{NAMELESS}-{number}"
    blocks = (
        replace(block, name=block.name.replace(other.name, name, 1), tenant=f"{name}/{name}") for block in other.blocks
    )
    return TenantOutcome(number, name, tuple(blocks), other.why)


def block_of(allocation: IPAllocation) -> Block:
    """What became of a request."""
    held = readable_range(allocation)
    ready = None if held else find_condition(allocation.status.conditions, ConditionType.READY)
    family, addresses = held or (Family.V4, None)
    return Block(
        name=allocation.metadata.name,
        tenant=str(tenant_key(allocation)),
        type=allocation.spec.type,
        pool=allocation.spec.pool_ref.name,
        count=addresses.size if addresses else allocation.spec.count,
        range=addresses,
        family=family,
        reason=ready.reason if ready else "",
        message=ready.message if ready else "",
    )


def _cluster(name: str, provider: ProviderConfig, wanted: Tenants) -> TenantCluster:
    """A cluster of the provider's own team, where it has one; else of no team and alone in its namespace."""
    where = key_of(provider)
    return TenantCluster(
        metadata=ObjectMeta(name=name, namespace=name),
        spec=TenantClusterSpec(
            kubernetes_version=_VERSION,
            workers=Workers(replicas=wanted.nodes or 1),
            provider_config_ref=ProviderConfigReference(name=where.name, namespace=where.namespace),
            networking=Networking(lb_pool_size=wanted.load_balancers),
        ),
        status=TenantClusterStatus(team=team.name if (team := provider.spec.scope.team_ref) else None),
    )


def _existing(stage: Rehearsal, name: str | None) -> ProviderConfig:
    """The provider of that name, or the one of clusters that name none."""
    reference = ProviderConfigReference(name=name) if name is not None else None
    spec = TenantClusterSpec(kubernetes_version=_VERSION, workers=Workers(replicas=1), provider_config_ref=reference)
    key = placement(TenantCluster(metadata=ObjectMeta(name=NAMELESS), spec=spec), stage.providers, stage.home)
    if key is not None and key in stage.providers:
        return stage.providers[key]
    known = ", ".join(sorted(key.name for key in stage.providers if key.namespace == stage.home))
    if name is not None:
        raise CannotPlan(
            f"there is no ProviderConfig {name} in namespace {stage.home}:"
            f" {f'name one of {known}' if known else 'create one, or name pools with --pool'}"
        )
    choice = f"one of {known} with --provider, or pools with --pool"
    choice = choice if known else "pools with --pool, or create a ProviderConfig"
    raise CannotPlan(f"nothing says where the tenants would go: name {choice}")


def _of_pools(stage: Rehearsal, names: tuple[str, ...]) -> ProviderConfig:
    """A provider with these pools in this order and no rules of its own."""
    references = tuple(
        PoolReference(name=name, priority=place, gateway=_a_gateway(stage.pools[name]))
        for place, name in enumerate(names)
    )
    return ProviderConfig(
        metadata=ObjectMeta(name=f"{NAMELESS}-provider", namespace=stage.home),
        spec=ProviderConfigSpec(
            provider=Provider.PROXMOX, network=ProviderNetwork(mode=NetworkMode.IPAM, pool_refs=references)
        ),
        status=ProviderConfigStatus(ready=True),
    )


def _a_gateway(pool: NetworkPool) -> str | None:
    """An address of the pool's network that no tenant gets, if there is one: which one matters to machines only."""
    try:
        layout = pool_layout(pool)
    except InvalidPool:
        return None
    outside = layout.network.first if layout.usable[0].first > layout.network.first else layout.network.last
    return address_text(outside, layout.family)


def _on_stage(stage: Rehearsal, provider: ProviderConfig) -> ProviderConfig:
    stage.providers[key_of(provider)] = provider
    return provider
