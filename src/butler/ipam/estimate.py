"""How many more tenant clusters a provider's pools have room for.

A division of free addresses by the size of a tenant is wrong as soon as pools are fragmented, so the tenants are let
in one after the other, as the allocator would: each wants a block for its nodes and one for its load balancers, each
block goes to the first pool, in order of priority, that serves this purpose and has a hole long enough, and there to
the smallest such hole. The first tenant that does not get all its blocks ends the count.

Only the lengths of holes matter for that, not where they lie, and most tenants are let in many at a time: the hole
that serves one tenant best is, being shorter afterwards, also the best for the next, until it is used up or meets
another hole in length. So a pool of any size costs about as many steps as it has holes, and `MOST` bounds the rest.

It is an estimate: tenants differ from the defaults, and grow. Pure, and never writes to the space that it looks at.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.api.ipallocation import IPAllocationType
from butler.api.providerconfig import AllocationMode, TenantQuota

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from butler.api.providerconfig import PoolReference, ProviderNetwork

MOST: Final = 10_000
"""More than any plan needs; larger figures are reported as this one."""

NODES, LOAD_BALANCER = IPAllocationType.NODES, IPAllocationType.LOAD_BALANCER


@dataclass(frozen=True, slots=True)
class Room:
    """What one pool has to offer to the next tenants."""

    holes: Mapping[int, int]
    """How many holes there are of each length."""
    nodes: int | None
    """Addresses in a tenant's block of node addresses; None where this pool is not for nodes."""
    load_balancer: int | None
    """Addresses in a tenant's first block of load-balancer addresses; None where this pool is not for them."""


def serves(reference: PoolReference, purpose: IPAllocationType) -> bool:
    """Whether a provider takes addresses for this purpose from the pool."""
    return not reference.types or purpose in reference.types


def in_order(references: Iterable[PoolReference]) -> list[PoolReference]:
    """Pools in the order in which they are tried: by priority, and as they were listed where that is equal."""
    return sorted(references, key=lambda reference: reference.priority)


def first_load_balancer_size(network: ProviderNetwork) -> int | None:
    """Load-balancer addresses that a tenant starts with, by the provider; None where that is left to the pool."""
    wanted = network.load_balancer
    if wanted is None:
        return None
    return wanted.initial_pool_size if wanted.allocation_mode is AllocationMode.ELASTIC else wanted.default_pool_size


def room_of(
    network: ProviderNetwork,
    reference: PoolReference,
    holes: Mapping[int, int],
    *,
    nodes_default: int,
    load_balancer_default: int,
    can_hold_nodes: bool = True,
) -> Room:
    """What a pool with these holes and defaults offers to the tenants of a provider.

    A pool without the provider's gateway cannot hold nodes, whatever it is listed for.
    """
    quota = network.quota_per_tenant or TenantQuota()
    wanted = first_load_balancer_size(network)
    nodes = _cut(nodes_default, quota.max_node_ips)
    balancer = _cut(load_balancer_default if wanted is None else wanted, quota.max_load_balancer_ips)
    return Room(
        holes=holes,
        nodes=nodes if can_hold_nodes and serves(reference, NODES) else None,
        load_balancer=balancer if serves(reference, LOAD_BALANCER) else None,
    )


def wanted_purposes(network: ProviderNetwork) -> tuple[IPAllocationType, ...]:
    """What every tenant of a provider needs a block for.

    Where no pool is for nodes, the network itself gives machines their addresses; where none is for load balancers,
    tenants have none.
    """
    listed = [
        purpose
        for purpose in (NODES, LOAD_BALANCER)
        if any(serves(reference, purpose) for reference in network.pool_refs)
    ]
    return tuple(type_ for type_ in listed if type_ is NODES or first_load_balancer_size(network) != 0)


def estimated_tenants(rooms: Sequence[Room], purposes: Sequence[IPAllocationType]) -> int:
    """How many more tenants fit into these pools, which come in the order they are tried; at most `MOST`.

    `purposes` are what each tenant needs a block for. If no pool serves one of them, no tenant fits.
    """
    pools = [_Pool(room) for room in rooms]
    if not purposes:
        return MOST
    let_in = 0
    while let_in < MOST:
        many = _let_in_many(pools, purposes) or _let_in_one(pools, purposes)
        if not many:
            break
        let_in += many
    return min(let_in, MOST)


def _cut(size: int, quota: int | None) -> int:
    return size if quota is None else min(size, quota)


class _Pool:
    """The holes of a pool as lengths, shrinking as tenants are let in."""

    def __init__(self, room: Room) -> None:
        self.size = {NODES: room.nodes, LOAD_BALANCER: room.load_balancer}
        self._count = {length: count for length, count in room.holes.items() if count > 0}
        self._lengths = sorted(self._count)

    def best(self, size: int) -> int | None:
        """The length of the shortest hole that holds so many."""
        place = bisect_left(self._lengths, size)
        return self._lengths[place] if place < len(self._lengths) else None

    def take(self, hole: int, size: int, times: int = 1) -> None:
        """Take so many addresses from that many holes of this length."""
        left = self._count[hole] - times
        if left:
            self._count[hole] = left
        else:
            del self._count[hole], self._lengths[bisect_left(self._lengths, hole)]
        if rest := hole - size:
            if rest not in self._count:
                insort(self._lengths, rest)
            self._count[rest] = self._count.get(rest, 0) + times

    def alike(self, hole: int) -> int:
        return self._count[hole]


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block would go: the pool, the length of the hole, and how much of it is taken."""

    pool: _Pool
    hole: int
    size: int

    @property
    def blocks(self) -> int:
        return self.hole // self.size


def _place(pools: Iterable[_Pool], purpose: IPAllocationType) -> _Place | None:
    for pool in pools:
        size = pool.size[purpose]
        if size is not None and (hole := pool.best(size)) is not None:
            return _Place(pool, hole, size)
    return None


def _let_in_one(pools: Sequence[_Pool], purposes: Sequence[IPAllocationType]) -> int:
    for purpose in purposes:
        place = _place(pools, purpose)
        if place is None:
            return 0
        place.pool.take(place.hole, place.size)
    return 1


def _let_in_many(pools: Sequence[_Pool], purposes: Sequence[IPAllocationType]) -> int:
    """Let in all tenants that surely go to the same holes, one after the other; 0 where that is not plain to see."""
    places = [place for purpose in purposes if (place := _place(pools, purpose)) is not None]
    if len(places) < len(purposes):
        return 0
    if len(places) == 1:
        return _use_up(places[0], places[0].size)
    nodes, balancer = places
    if nodes.pool is balancer.pool:
        if nodes.hole == balancer.hole:
            # Both from one hole, which stays the shortest that holds either as long as it holds both.
            return _use_up(nodes, nodes.size + balancer.size)
        # Two holes that shrink side by side, until the longer one comes down to the shorter one.
        longer, shorter = (nodes, balancer) if nodes.hole > balancer.hole else (balancer, nodes)
        tenants = min(shorter.blocks, (longer.hole - shorter.hole) // longer.size)
    else:
        tenants = min(nodes.blocks, balancer.blocks)
    if tenants:
        for place in places:
            place.pool.take(place.hole, tenants * place.size)
    return tenants


def _use_up(place: _Place, tenant: int) -> int:
    """Let as many tenants into a hole as it holds, and into its equals where what is left of it is of no use."""
    each = place.hole // tenant
    if not each:
        return 0
    rest = place.hole - each * tenant
    useless = all(size is None or rest < size for size in place.pool.size.values())
    holes = place.pool.alike(place.hole) if useless else 1
    place.pool.take(place.hole, each * tenant, holes)
    return each * holes
