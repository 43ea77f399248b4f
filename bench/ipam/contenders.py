"""Who is compared on decisions: ours, and the ways in which others find a free block of addresses in Python.

Each contender keeps its own records in its own form and is timed through two calls, `allocate` and `release`. The
others are recipes written from what the projects do, with everything around them left out in their favour: no
database, no locks, no web framework.

- NetBox subtracts a set of all child prefixes from a set of the parent on every request and takes the first free
  prefix that is long enough; the records are already parsed.
- Neutron's subnet pools do the same from text, merge the result and look for the tightest prefix.
- `ipaddress` has no set. People walk the subnets of the pool and take the first that is not in use (quick while the
  front of the pool has room, and only for one size), or keep a list of free networks, cut it with `address_exclude`
  and mend it with `collapse_addresses`.

They hand out aligned powers of two only, a smaller problem than ours, so the size asked for here is 8.
"""

from __future__ import annotations

import ipaddress
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol

import netaddr

from butler.ipam.addresses import Range
from butler.ipam.free_space import FreeSpace

if TYPE_CHECKING:
    from collections.abc import Sequence


class Contender(Protocol):
    """Something that hands out addresses of one pool."""

    name: str

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        """Start with a pool of which some is taken; not timed."""

    def allocate(self, count: int) -> Range | None:
        """Find and take so many addresses, or None."""

    def release(self, addresses: Range) -> None:
        """Take back what `allocate` gave."""


def networks_of(addresses: Range) -> list[netaddr.IPNetwork]:
    """A range as the networks that make it up."""
    return netaddr.iprange_to_cidrs(netaddr.IPAddress(addresses.first, 4), netaddr.IPAddress(addresses.last, 4))


class Butler:
    name = "Butler"

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        self._free = FreeSpace.without([pool], taken)

    def allocate(self, count: int) -> Range | None:
        found = self._free.best_fit(count)
        if found is not None:
            self._free.take(found)
        return found

    def release(self, addresses: Range) -> None:
        self._free.give(addresses)


class NetBox:
    name = "NetBox recipe"

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        (self._prefix,) = networks_of(pool)
        self._children = {(int(child.first), int(child.last)): child for span in taken for child in networks_of(span)}

    def allocate(self, count: int) -> Range | None:
        length = 33 - count.bit_length()
        available = netaddr.IPSet([self._prefix]) - netaddr.IPSet(self._children.values())
        for prefix in available.iter_cidrs():
            if prefix.prefixlen <= length:
                found = netaddr.IPNetwork(f"{prefix.network}/{length}")
                self._children[found.first, found.last] = found
                return Range(found.first, found.last)
        return None

    def release(self, addresses: Range) -> None:
        del self._children[addresses]


class Neutron:
    name = "Neutron recipe"

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        self._prefixes = [str(item) for item in networks_of(pool)]
        self._subnets = {str(child): None for span in taken for child in networks_of(span)}

    def allocate(self, count: int) -> Range | None:
        length = 33 - count.bit_length()
        available = netaddr.IPSet(self._prefixes).difference(netaddr.IPSet(self._subnets))
        available.compact()
        for prefix in sorted(available.iter_cidrs(), key=attrgetter("prefixlen"), reverse=True):
            if prefix.prefixlen <= length:
                found = next(prefix.subnet(length))
                self._subnets[str(found)] = None
                return Range(found.first, found.last)
        return None

    def release(self, addresses: Range) -> None:
        length = 33 - addresses.size.bit_length()
        del self._subnets[f"{netaddr.IPAddress(addresses.first)}/{length}"]


class SubnetWalk:
    name = "ipaddress, walk"

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        self._pool = ipaddress.IPv4Network((pool.first, 33 - pool.size.bit_length()))
        self._used = {
            ipaddress.IPv4Network((slot << 3, 29))
            for span in taken
            for slot in range(span.first >> 3, (span.last >> 3) + 1)
        }

    def allocate(self, count: int) -> Range | None:
        for subnet in self._pool.subnets(new_prefix=33 - count.bit_length()):
            if subnet not in self._used:
                self._used.add(subnet)
                return Range(int(subnet.network_address), int(subnet.broadcast_address))
        return None

    def release(self, addresses: Range) -> None:
        self._used.remove(ipaddress.IPv4Network((addresses.first, 33 - addresses.size.bit_length())))


class FreeNetworks:
    name = "ipaddress, list"

    def load(self, pool: Range, taken: Sequence[Range]) -> None:
        self._free = [
            network
            for hole in FreeSpace.without([pool], taken).extents()
            for network in ipaddress.summarize_address_range(
                ipaddress.IPv4Address(hole.first), ipaddress.IPv4Address(hole.last)
            )
        ]

    def allocate(self, count: int) -> Range | None:
        length = 33 - count.bit_length()
        fitting = (network for network in self._free if network.prefixlen <= length)
        best = min(fitting, key=lambda network: (-network.prefixlen, network.network_address), default=None)
        if best is None:
            return None
        self._free.remove(best)
        found = next(best.subnets(new_prefix=length))
        self._free.extend(best.address_exclude(found))
        return Range(int(found.network_address), int(found.broadcast_address))

    def release(self, addresses: Range) -> None:
        length = 33 - addresses.size.bit_length()
        self._free = list(ipaddress.collapse_addresses([*self._free, ipaddress.IPv4Network((addresses.first, length))]))
