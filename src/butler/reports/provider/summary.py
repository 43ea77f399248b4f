"""A provider as people are shown it: whether clusters can go there, its pools in order, how many still fit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationType
from butler.api.labels import ConditionType
from butler.api.objects import Change, key_of
from butler.api.providerconfig import NetworkMode
from butler.ipam.estimate import in_order, serves
from butler.rules.pool.holdings import Holdings
from butler.rules.provider.placement import placement
from butler.rules.provider.room import Supply, survey
from butler.rules.provider.settings import gateway_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.api.providerconfig import PoolReference, ProviderConfig, ProviderNetwork
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.layout import PoolLayout

WORDS = {IPAllocationType.NODES: "nodes", IPAllocationType.LOAD_BALANCER: "load balancers"}


@dataclass(frozen=True, slots=True)
class PoolUse:
    """A pool of a provider, in the order in which they are tried."""

    name: str
    priority: int
    purpose: str
    """`nodes`, `load balancers`, or both."""
    pool: NetworkPool | None
    """None: it does not exist."""
    gateway: str


@dataclass(frozen=True, slots=True)
class ProviderView:
    """One provider."""

    ready: bool | None
    """None: Butler has not looked at it yet."""
    why: str
    """Why it is not ready; empty when it is."""
    room: int | None
    """How many more tenants there is room for; None in cloud mode, or where it is unknown."""
    pools: tuple[PoolUse, ...]
    clusters: tuple[str, ...] | None
    """The clusters that are on it, as namespace/name; None where they may not be read."""


def provider_view(
    config: ProviderConfig,
    pools: Iterable[NetworkPool],
    allocations: Iterable[IPAllocation] | None,
    clusters: Iterable[TenantCluster] | None,
    providers: Collection[Key],
    home: str,
) -> ProviderView:
    """The view of one provider. Without allocations, its room is what its status says."""
    by_name = {pool.metadata.name: pool for pool in pools}
    ready = find_condition(config.status.conditions, ConditionType.READY)
    network, told = config.spec.network, config.status.capacity
    room = told.estimated_tenants if told else None
    if allocations is not None and network.mode is NetworkMode.IPAM:
        room = supply(network, by_name, allocations).tenants
    on_it = None if clusters is None else clusters_on(config, clusters, providers, home)
    return ProviderView(
        ready=config.status.ready,
        why="" if config.status.ready or ready is None else ready.message,
        room=room,
        pools=tuple(_use(network, reference, by_name) for reference in in_order(network.pool_refs)),
        clusters=None if on_it is None else tuple(str(key_of(cluster)) for cluster in on_it),
    )


def clusters_on(
    config: ProviderConfig, clusters: Iterable[TenantCluster], providers: Collection[Key], home: str
) -> list[TenantCluster]:
    """The clusters that a provider has, those that name none and go there all the same included."""
    here = key_of(config)
    return sorted((cluster for cluster in clusters if placement(cluster, providers, home) == here), key=key_of)


def supply(network: ProviderNetwork, pools: Mapping[str, NetworkPool], allocations: Iterable[IPAllocation]) -> Supply:
    """What the pools of a provider in ipam mode have to offer, as its controller counts it."""
    holdings = Holdings(lambda _: None)
    for allocation in allocations:
        holdings.changed(Change(key_of(allocation), None, allocation))

    def holes(pool: NetworkPool, layout: PoolLayout) -> Mapping[int, int]:
        return holdings.book(key_of(pool), layout).free.lengths()

    return survey(network, pools.get, holes)


def _use(network: ProviderNetwork, reference: PoolReference, pools: Mapping[str, NetworkPool]) -> PoolUse:
    return PoolUse(
        name=reference.name,
        priority=reference.priority,
        purpose=purpose_of(reference),
        pool=pools.get(reference.name),
        gateway=(gateway_of(network, reference.name) or "") if serves(reference, IPAllocationType.NODES) else "",
    )


def purpose_of(reference: PoolReference) -> str:
    """What a pool's addresses are for, in words."""
    return " and ".join(words for type_, words in WORDS.items() if serves(reference, type_))


def pool_names(references: Sequence[PoolReference]) -> str:
    """The pools of a provider in the order in which they are tried."""
    return ",".join(reference.name for reference in in_order(references))
