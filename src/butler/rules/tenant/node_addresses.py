"""How a cluster's node allocations and its machines stand to each other. Pure.

Two questions. Which node allocations whose deletion was asked for can be given up: those that no machine can have an
address of, as long as what stays is enough for the machines that are wanted. And which machines sit outside all of
them: such an address is free for another cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.providers import Provider
from butler.ipam.addresses import Range, address_text, parse_network
from butler.rules.allocation.deletion import is_wish
from butler.rules.allocation.held import granted_range
from butler.rules.machines import may_have, outside, values_of
from butler.rules.tenant.blueprint import family_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.rules.machines import MachineAddresses
    from butler.rules.tenant.blueprint import NodeNetwork


@dataclass(frozen=True, slots=True)
class Fleet:
    """The machines of a cluster, as far as there is one."""

    machines: tuple[MachineAddresses, ...] = ()
    built: bool = False
    """Whether Cluster API was told of the cluster, and so of its addresses."""
    desired: int = 0
    """How many machines Cluster API was told to make."""

    @property
    def is_empty(self) -> bool:
        """There is no machine, and none comes by itself."""
        return self.built and not self.machines and not self.desired


NO_FLEET = Fleet()


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Node allocations whose deletion was asked for, and that the cluster can do without."""

    at_once: tuple[IPAllocation, ...] = ()
    """No machine has one of their addresses, and none is to get one: there is nothing left to write objects with."""
    once_withdrawn: tuple[IPAllocation, ...] = ()
    """Machines could still be given one: they go when the cluster's objects no longer name them."""

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(allocation.metadata.uid for allocation in (*self.at_once, *self.once_withdrawn))


NOTHING_GIVEN_UP = GivenUp()


def give_up(granted: Iterable[IPAllocation], fleet: Fleet, wanted: int) -> GivenUp:
    """Which node allocations to give up, of all that were granted; `wanted` is how many machines there should be.

    One that is marked as draining is given up for good: who marked it may be about to release it. Only where the
    cluster has no other, and Cluster API makes machines with it all the same, it stays until they are gone. A cluster
    without machines, of which none are wanted, does without any.
    """
    nodes = [allocation for allocation in granted if allocation.spec.type is IPAllocationType.NODES]
    wishes = [node for node in nodes if is_wish(node)]
    staying, leaving = list(nodes), []
    for wish in sorted(wishes, key=lambda wish: not _is_marked(wish)):
        addresses = granted_range(wish)
        if addresses is None:
            continue
        family, held = addresses
        rest = [allocation for allocation in staying if allocation is not wish]
        if _is_marked(wish):
            goes = bool(rest) or fleet.is_empty
        elif wanted or rest:
            goes = bool(rest) and _size(rest) >= wanted and not may_have(fleet.machines, family, held)
        else:
            goes = fleet.is_empty
        if goes:
            staying = rest
            leaving.append(wish)
    return GivenUp(once_withdrawn=tuple(leaving)) if staying else GivenUp(at_once=tuple(leaving))


def _is_marked(allocation: IPAllocation) -> bool:
    return allocation.status.draining_since is not None


def _size(allocations: Iterable[IPAllocation]) -> int:
    return sum(allocation.status.allocated_count or 0 for allocation in allocations)


def strays(
    provider: ProviderConfig,
    nodes: NodeNetwork | None,
    also_held: Iterable[Range],
    machines: Sequence[MachineAddresses],
    pools: Mapping[str, NetworkPool],
) -> tuple[str, ...]:
    """Machines with an address that their cluster does not hold, each as a sentence."""
    if nodes is None or provider.spec.provider is Provider.NUTANIX:
        return ()  # the network chooses the addresses of machines; on Nutanix the allocation only reserves as many
    family, held = family_of(nodes), [*nodes.ranges, *also_held]
    networks = [
        parse_network(pool.spec.cidr)[1]
        for reference in provider.spec.network.pool_refs
        if (pool := pools.get(reference.name)) is not None
    ]

    def is_handed_out(value: int) -> bool:
        return any(network.first <= value <= network.last for network in networks)

    return tuple(
        f"machine {machine.name} has {address_text(value, family)}, which this cluster does not hold"
        for machine in machines
        for value in outside(values_of(machine, family), held, is_handed_out)
    )
