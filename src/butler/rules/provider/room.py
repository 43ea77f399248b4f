"""What a provider's pools have to offer: which are there, how much is free, how many tenants that is for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.meta import ConditionStatus
from butler.ipam.addresses import BadAddress, parse_address
from butler.ipam.estimate import estimated_tenants, in_order, room_of, serves, wanted_purposes
from butler.ipam.layout import InvalidPool, pool_layout
from butler.rules.provider.settings import gateway_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from butler.api.ipallocation import IPAllocationType
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderNetwork
    from butler.ipam.layout import PoolLayout

    Holes = Callable[[NetworkPool, PoolLayout], Mapping[int, int]]
    """How many holes of each length a pool has."""
    HeldExcluded = Callable[[NetworkPool, PoolLayout], Sequence[str]]
    """Which gateways and DNS servers of a pool allocations hold."""


@dataclass(frozen=True, slots=True)
class Supply:
    """The pools of one provider, taken together."""

    available: int
    """Free addresses in pools that hand out any."""
    tenants: int
    missing: tuple[str, ...]
    """Pools that do not exist."""
    idle: tuple[str, ...]
    """Pools that hand out nothing, each with why."""
    unserved: tuple[IPAllocationType, ...]
    """What tenants need addresses for, and no pool that exists is for."""
    held_excluded: tuple[str, ...] = ()
    """Gateways and DNS servers that allocations hold, each in a sentence."""


def survey(
    network: ProviderNetwork,
    find: Callable[[str], NetworkPool | None],
    holes: Holes,
    held_excluded: HeldExcluded = lambda _pool, _layout: (),
) -> Supply:
    """Look at the pools of a provider in ipam mode, in the order they are tried."""
    available = 0
    missing, idle, rooms, held, served = [], [], [], [], set()
    purposes = wanted_purposes(network)
    for reference in in_order(network.pool_refs):
        pool = find(reference.name)
        if pool is None:
            missing.append(reference.name)
            continue
        served |= {purpose for purpose in purposes if serves(reference, purpose)}
        layout = _layout(pool)
        if isinstance(layout, str):
            idle.append(f"{reference.name} ({layout})")
            continue
        held += [f"{reference.name}: {sentence}" for sentence in held_excluded(pool, layout)]
        lengths = holes(pool, layout)
        available += sum(length * count for length, count in lengths.items())
        rooms.append(
            room_of(
                network,
                reference,
                lengths,
                nodes_default=layout.nodes_default,
                load_balancer_default=layout.load_balancer_default,
                can_hold_nodes=holds(layout, gateway_of(network, reference.name)),
            )
        )
    return Supply(
        available=available,
        tenants=estimated_tenants(rooms, purposes) if rooms else 0,
        missing=tuple(missing),
        idle=tuple(idle),
        held_excluded=tuple(held),
        unserved=tuple(purpose for purpose in purposes if purpose not in served),
    )


def holds(layout: PoolLayout, gateway: str | None) -> bool:
    """Whether machines with addresses of this pool could reach the gateway; unknown gateways are given the benefit."""
    if gateway is None:
        return True
    try:
        family, address = parse_address(gateway)
    except BadAddress:
        return True
    return family is layout.family and layout.network.first <= address <= layout.network.last


def _layout(pool: NetworkPool) -> PoolLayout | str:
    """What the pool hands out, or why it hands out nothing."""
    if pool.metadata.deletion_timestamp is not None:
        return "being deleted"
    try:
        layout = pool_layout(pool)
    except InvalidPool as error:
        return str(error)
    ready = find_condition(pool.status.conditions, ConditionType.READY)
    # A pool that was made a moment ago has no condition yet, and is most likely fine.
    if ready is not None and ready.status is ConditionStatus.FALSE:
        return ready.message or ready.reason
    return layout
