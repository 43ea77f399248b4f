"""Who has which address: MetalLB's rules for giving addresses to Services. Pure, and knows no Kubernetes.

The state is one table, Service to holding; everything else is derived from it. The rules:

    which pool      the ones reserved for the Service's namespace or labels first, by priority (lower first, none
                    last); then those that are for everyone. Pools without autoAssign only when asked for by name
                    or by address. Among equals MetalLB goes by no order at all; here it is that of names.
    which address   the first in the order of the pool's lines that is free, or that the Service may share
    sharing         same sharing key (not empty), same backends (`Request.backend`), and no port twice

What it holds can be changed by nothing but its own verbs, and a refused `assign` changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.ipam.addresses import Family
from butler.local.world.metallb_pools import Address, MetallbPool, Pools

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

NOTHING: Final = "<nil>"
"""What a pool that is full offers; MetalLB goes on with it as with an address and refuses that."""


class AddressRefused(Exception):
    """Why a Service cannot have an address, in MetalLB's words: people search for them."""


class Port(NamedTuple):
    """One port of a Service."""

    protocol: str
    number: int

    def __str__(self) -> str:
        return f"{self.protocol}/{self.number}"


@dataclass(frozen=True, slots=True)
class ServiceRequest:
    """A Service, as far as its address depends on it."""

    service: str
    """`<namespace>/<name>`"""
    namespace: str
    labels: Mapping[str, str]
    ports: tuple[Port, ...]
    families: tuple[Family, ...]
    """Those of its cluster addresses, the preferred one first."""
    policy: str = "SingleStack"
    sharing: str = ""
    backend: str = ""
    """What it sends traffic to, where that decides with whom an address may be shared; else empty."""


@dataclass(frozen=True, slots=True)
class ServiceHolding:
    """What a Service has."""

    pool: str
    addresses: tuple[Address, ...]
    ports: tuple[Port, ...]
    sharing: str
    backend: str

    @property
    def key(self) -> str:
        """With whom it shares; a change of it may be what others are waiting for."""
        return self.backend + self.sharing


class Counts(NamedTuple):
    """How much of a pool is in use; two Services on one address count once. All zero: no pool that is known."""

    assigned_v4: int = 0
    available_v4: int = 0
    assigned_v6: int = 0
    available_v6: int = 0


class Allocator:
    """Addresses held by Services, and the pools that they come from."""

    def __init__(self) -> None:
        self._pools: Pools = {}
        self._sizes: dict[str, dict[Family, int]] = {}
        self._held: dict[str, ServiceHolding] = {}
        self._users: dict[Address, dict[str, ServiceHolding]] = {}

    @property
    def pools(self) -> Pools:
        return self._pools

    def held_by(self, service: str) -> ServiceHolding | None:
        return self._held.get(service)

    def set_pools(self, pools: Pools) -> None:
        """Go on with other pools: who holds an address that no pool has any more, holds it no longer."""
        self._pools = pools
        self._sizes = {name: {family: pool.size(family) for family in Family} for name, pool in pools.items()}
        for service, holding in list(self._held.items()):
            pool = self.pool_of(holding.addresses)
            self.unassign(service)
            if pool is not None:
                self._put(
                    service,
                    ServiceHolding(pool.name, holding.addresses, holding.ports, holding.sharing, holding.backend),
                )

    def pool_of(self, addresses: Iterable[Address]) -> MetallbPool | None:
        """The pool that has all of these addresses."""
        wanted = list(addresses)
        return next((pool for pool in self._pools.values() if all(pool.offers(address) for address in wanted)), None)

    def counts(self) -> dict[str, Counts]:
        """How much of each pool is in use."""
        used = {name: dict.fromkeys(Family, 0) for name in self._pools}
        for address, users in self._users.items():
            pool = next(iter(users.values())).pool  # of all of them: no two pools have the same address
            used[pool][address.family] += 1
        return {
            name: Counts(
                used[name][Family.V4],
                size[Family.V4] - used[name][Family.V4],
                used[name][Family.V6],
                size[Family.V6] - used[name][Family.V6],
            )
            for name, size in self._sizes.items()
        }

    def assign(self, request: ServiceRequest, addresses: tuple[Address, ...]) -> ServiceHolding:
        """Give a Service exactly these addresses, in place of what it may have had."""
        pool = self.pool_of(addresses)
        if pool is None:
            raise AddressRefused(f"{quoted(addresses)} is not allowed in config")
        if not pool.serves(request.namespace, request.labels):
            raise AddressRefused(f"pool {pool.name} not compatible for ip assignment")
        if len(addresses) > 2:
            raise AddressRefused(f"more than two addresses {quoted(addresses)}")
        if len(addresses) == 2 and addresses[0].family is addresses[1].family:
            raise AddressRefused(f'"{addresses[0]}" "{addresses[1]}" has the same family')
        for address in addresses:
            if problem := self._conflict(request, address):
                raise AddressRefused(problem)
        self.unassign(request.service)
        holding = ServiceHolding(pool.name, addresses, request.ports, request.sharing, request.backend)
        self._put(request.service, holding)
        return holding

    def unassign(self, service: str) -> None:
        """Take away what a Service has, if it has anything."""
        holding = self._held.pop(service, None)
        for address in holding.addresses if holding else ():
            del self._users[address][service]
            if not self._users[address]:
                del self._users[address]

    def allocate(self, request: ServiceRequest) -> ServiceHolding:
        """Any address that the Service may have without asking for it."""
        everyone = [pool for pool in self._pools.values() if pool.auto_assign and pool.reserved is None]
        for pools in (self._reserved_for(request), everyone):
            addresses = self._best(request, pools)
            if addresses:
                try:
                    return self.assign(request, addresses)
                except AddressRefused:
                    continue
        raise AddressRefused("no available IPs")

    def allocate_from(self, request: ServiceRequest, name: str) -> ServiceHolding:
        """An address of one pool, which need not be one that gives addresses by itself."""
        pool = self._pools.get(name)
        if pool is None:
            raise AddressRefused(f'unknown pool "{name}"')
        addresses = _chosen(request, self._free(request, pool))
        if not addresses and len(request.families) > 1:
            raise AddressRefused(f"no available IPs in pool {name} for dual IPFamily")
        if not addresses:
            raise AddressRefused(f'["{NOTHING}"] is not allowed in config')
        return self.assign(request, addresses)

    def add_other_family(self, request: ServiceRequest) -> Address:
        """A second address, of the family that is missing, from the pool of the first."""
        holding = self._held[request.service]
        missing = Family.V6 if holding.addresses[0].family is Family.V4 else Family.V4
        found = self._free(request, self._pools[holding.pool]).get(missing)
        if found is None:
            raise AddressRefused(f'["{holding.addresses[0]}" "{NOTHING}"] is not allowed in config')
        self.assign(request, (holding.addresses[0], found))
        return found

    def _put(self, service: str, holding: ServiceHolding) -> None:
        self._held[service] = holding
        for address in holding.addresses:
            self._users.setdefault(address, {})[service] = holding

    def _conflict(self, request: ServiceRequest, address: Address) -> str:
        """Why the Service cannot be on this address beside those who are; empty when it can."""
        others = {name: holding for name, holding in self._users.get(address, {}).items() if name != request.service}
        for other in others.values():
            if not request.sharing or (other.sharing, other.backend) != (request.sharing, request.backend):
                names = ",".join(others)
                return f'can\'t change sharing key for "{request.service}", address also in use by {names}'
        for port in request.ports:
            if any(port in other.ports for other in others.values()):
                return f'port {port} is already in use on "{address}"'
        return ""

    def _reserved_for(self, request: ServiceRequest) -> list[MetallbPool]:
        mine = []
        for pool in self._pools.values():
            reserved = pool.reserved
            if reserved is None or not pool.auto_assign or not (reserved.namespaces or reserved.selectors):
                continue
            if pool.serves(request.namespace, request.labels):
                mine.append((reserved.priority == 0, reserved.priority, pool.name, pool))
        return [pool for *_, pool in sorted(mine, key=lambda pair: pair[:3])]

    def _best(self, request: ServiceRequest, pools: list[MetallbPool]) -> tuple[Address, ...]:
        """From the first pool that has all families; where one would do, from the first that has the preferred one."""
        some: list[dict[Family, Address]] = []
        for pool in pools:
            free = self._free(request, pool)
            if all(family in free for family in request.families):
                return _chosen(request, free)
            some.append(free)
        if request.policy == "PreferDualStack":
            for family in request.families:
                for free in some:
                    if family in free:
                        return (free[family],)
        return ()

    def _free(self, request: ServiceRequest, pool: MetallbPool) -> dict[Family, Address]:
        """The first address of each family that the Service could have in a pool."""
        found: dict[Family, Address] = {}
        for block in pool.blocks:
            if block.family in found:
                continue
            for value in range(block.range.first, block.range.last + 1):
                address = Address(block.family, value)
                if not (pool.avoid_buggy and address.is_buggy) and not self._conflict(request, address):
                    found[block.family] = address
                    break
        return found


def _chosen(request: ServiceRequest, free: dict[Family, Address]) -> tuple[Address, ...]:
    """Of what a pool has, what the Service takes: IPv4 first, and one of two only where it does not insist."""
    if len(request.families) == 1:
        return tuple(free[family] for family in request.families if family in free)
    both = tuple(free[family] for family in (Family.V4, Family.V6) if family in free)
    if len(both) == 2:
        return both
    return both if request.policy == "PreferDualStack" else ()


def quoted(addresses: Iterable[Address]) -> str:
    """Addresses in a message, as Go prints a list of them."""
    return "[" + " ".join(f'"{address}"' for address in addresses) + "]"
