"""What MetalLB may hand out: IPAddressPools, read as MetalLB's controller reads them. Pure.

All pools of a cluster are one configuration: a single pool that makes no sense (no addresses at all, a range that
is reversed, addresses that another pool or another line has too) and the whole of it is not taken over. MetalLB then
goes on with what it had before, which is why `configuration` gives all pools or raises. What is wrong is said in
MetalLB's words (of label selectors, only nearly), because it is shown to people. MetalLB reads less strictly than
Butler does: a network may have bits set after its prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
    summarize_address_range,
)
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from butler.api.objects import labels_of, name_of
from butler.ipam.addresses import Family, Range, address_text
from kubeserver.wire.goformat import quote
from kubeserver.wire.selectors import LabelSelector, label_selector_from_json
from kubeserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.api.objects import Json

ENDLESS: Final = (1 << 63) - 1
"""As many addresses as MetalLB counts in a network of IPv6 that is too large to count."""
_ENDLESS_BITS: Final = 62


class UnusablePools(Exception):
    """Why a set of pools cannot be taken over."""


class Address(NamedTuple):
    """One address."""

    family: Family
    value: int

    def __str__(self) -> str:
        return address_text(self.value, self.family)

    @property
    def is_buggy(self) -> bool:
        """Whether it ends in 0 or 255, which some old equipment takes for a network or a broadcast."""
        return self.family is Family.V4 and self.value & 255 in (0, 255)


class AddressBlock(NamedTuple):
    """Addresses in a row, of one family."""

    family: Family
    range: Range

    def holds(self, address: Address) -> bool:
        return address.family is self.family and self.range.first <= address.value <= self.range.last

    def networks(self) -> Iterable[IPv4Network | IPv6Network]:
        """The fewest networks that make it up: MetalLB keeps it as these, counts in them and names them."""
        if self.family is Family.V4:
            return summarize_address_range(IPv4Address(self.range.first), IPv4Address(self.range.last))
        return summarize_address_range(IPv6Address(self.range.first), IPv6Address(self.range.last))


@dataclass(frozen=True, slots=True)
class PoolAudience:
    """Whom a pool is for, when not for everyone."""

    priority: int
    """Lower comes first; 0 is none, and comes last."""
    namespaces: frozenset[str]
    selectors: tuple[LabelSelector, ...]


@dataclass(frozen=True, slots=True)
class MetallbPool:
    """One IPAddressPool."""

    name: str
    blocks: tuple[AddressBlock, ...]
    auto_assign: bool = True
    avoid_buggy: bool = False
    reserved: PoolAudience | None = None

    def offers(self, address: Address) -> bool:
        """Whether this address is one of the pool's, and may be used."""
        return not (self.avoid_buggy and address.is_buggy) and any(block.holds(address) for block in self.blocks)

    def size(self, family: Family) -> int:
        """How many addresses of a family MetalLB counts in it."""
        blocks = [block for block in self.blocks if block.family is family]
        if not self.avoid_buggy and family is Family.V4:
            return sum(block.range.size for block in blocks)
        networks = (network for block in blocks for network in block.networks())
        return min(sum(_size(network, avoid_buggy=self.avoid_buggy) for network in networks), ENDLESS)

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a Service there, with those labels, may have addresses of this pool."""
        if self.reserved is None:
            return True
        if self.reserved.namespaces and namespace not in self.reserved.namespaces:
            return False
        selectors = self.reserved.selectors
        return not selectors or any(selector.matches(labels) for selector in selectors)


def _size(network: IPv4Network | IPv6Network, *, avoid_buggy: bool) -> int:
    if network.max_prefixlen - network.prefixlen >= _ENDLESS_BITS:
        return ENDLESS
    if not avoid_buggy or isinstance(network, IPv6Network):
        return network.num_addresses
    if network.prefixlen <= 24:
        return network.num_addresses - (2 << (24 - network.prefixlen))
    # Both ends are looked at, so a lone address that is avoided counts as one less than none, in MetalLB too.
    ends = (Address(Family.V4, int(end)) for end in (network.network_address, network.broadcast_address))
    return network.num_addresses - sum(end.is_buggy for end in ends)


Pools = dict[str, MetallbPool]
"""Pools by name, in the order of their names."""


def parse_address(text: str) -> Address:
    """An address as Go reads it: the IPv4 address inside an IPv6 one is an IPv4 address."""
    found = ip_address(text)
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return Address(Family.V4, int(found.ipv4_mapped))
        if found.scope_id is not None:
            raise ValueError(f"{text!r} has a zone")
        return Address(Family.V6, int(found))
    return Address(Family.V4, int(found))


def parse_block(text: str) -> AddressBlock | None:
    """One line of `spec.addresses`; None for a range from one family to the next, which is accepted and empty."""
    if "-" not in text:
        return _parse_network(text)
    start, _, end = text.partition("-")
    first, last = (_parse_end(text, address, which) for address, which in ((start, "start"), (end, "end")))
    if _place(last) < _place(first):
        why = f"start IP {quote(str(first))} is after the end IP {quote(str(last))}"
        raise UnusablePools(f"invalid IP range {quote(text)}: {why}")
    return AddressBlock(first.family, Range(first.value, last.value)) if first.family is last.family else None


def _parse_network(text: str) -> AddressBlock:
    try:
        if not text.rpartition("/")[2].isdigit() or "/" not in text:
            raise ValueError  # a lone address or a netmask, which Python would read
        network = ip_network(text, strict=False)
    except ValueError:
        raise UnusablePools(f"invalid CIDR {quote(text)}") from None
    family = Family.V4 if network.version == 4 else Family.V6
    return AddressBlock(family, Range(int(network.network_address), int(network.broadcast_address)))


def _parse_end(line: str, text: str, which: str) -> Address:
    try:
        return parse_address(text.strip())
    except ValueError:
        raise UnusablePools(f"invalid IP range {quote(line)}: invalid {which} IP {quote(text)}") from None


def _place(address: Address) -> int:
    """Among the addresses of both families: IPv4 has a place within IPv6."""
    return address.value | 0xFFFF << 32 if address.family is Family.V4 else address.value


def uses_namespace_labels(objects: Iterable[Json]) -> bool:
    """Whether any pool chooses namespaces by their labels, so that these matter."""
    return any((obj.get("spec") or {}).get("serviceAllocation", {}).get("namespaceSelectors") for obj in objects)


def configuration(objects: Iterable[Json], namespaces: Iterable[Json] = ()) -> Pools:
    """All pools, or `Unusable` with what is wrong with one of them."""
    known = list(namespaces)
    pools: Pools = {}
    taken: list[AddressBlock] = []
    for obj in sorted(objects, key=name_of):
        pool = _pool(obj, known)
        for block in pool.blocks:
            if any(_overlap(block, other) for other in taken):
                raise UnusablePools(_first_overlap(pool.name, block, taken))
            taken.append(block)
        pools[pool.name] = pool
    return pools


def _overlap(one: AddressBlock, other: AddressBlock) -> bool:
    return one.family is other.family and one.range.overlaps(other.range)


def _first_overlap(name: str, block: AddressBlock, taken: list[AddressBlock]) -> str:
    """Which networks meet, where blocks do."""
    one, other = next(
        (network, other)
        for network in block.networks()
        for occupied in taken
        if occupied.family is block.family
        for other in occupied.networks()
        if network.overlaps(other)
    )
    cidrs = quote(str(one)), quote(str(other))
    return f"CIDR {cidrs[0]} in pool {quote(name)} overlaps with already defined CIDR {cidrs[1]}"


def _pool(obj: Json, namespaces: list[Json]) -> MetallbPool:
    name, spec = name_of(obj), obj.get("spec") or {}
    try:
        blocks = _blocks(name, spec.get("addresses") or [])
        allocation = spec.get("serviceAllocation")
        reserved = _reserved(allocation, namespaces) if allocation is not None else None
    except UnusablePools as error:
        raise UnusablePools(f"parsing address pool {name}: {error}") from None
    return MetallbPool(
        name,
        blocks,
        auto_assign=spec.get("autoAssign") is not False,
        avoid_buggy=bool(spec.get("avoidBuggyIPs")),
        reserved=reserved,
    )


def _blocks(name: str, lines: list[object]) -> tuple[AddressBlock, ...]:
    if not lines:
        raise UnusablePools("pool has no prefixes defined")
    blocks = []
    for line in map(str, lines):
        try:
            blocks.append(parse_block(line))
        except UnusablePools as error:
            raise UnusablePools(f"invalid CIDR {quote(line)} in pool {quote(name)}: {error}") from None
    return tuple(block for block in blocks if block is not None)


def _reserved(to: Json, namespaces: list[Json]) -> PoolAudience:
    names = list(to.get("namespaces") or ())
    if len(set(names)) != len(names):
        raise UnusablePools("duplicate definition in namespaces field")
    by_label = _selectors(to, "namespaceSelectors")
    by_service = _selectors(to, "serviceSelectors")
    if not names and not by_label and not by_service:
        by_service = (_selector({}),)  # a mere priority: for everyone, but before the pools that say nothing
    chosen = {
        name_of(namespace)
        for namespace in namespaces
        if any(selector.matches(labels_of(namespace)) for selector in by_label)
    }
    return PoolAudience(
        int(to.get("priority") or 0),
        frozenset(names) | chosen,
        by_service,
    )


def _selectors(to: Json, field: str) -> tuple[LabelSelector, ...]:
    given = list(to.get(field) or ())
    for expressions in (selector.get("matchExpressions") or [] for selector in given):
        for expression in expressions:
            if (value := _repeated(expression.get("values") or [])) is not None:
                raise UnusablePools(
                    f"duplicate definition of match expression value in label selector {quote(str(value))}"
                )
        if _repeated(expressions) is not None:
            raise UnusablePools("duplicate definition of match expressions")
    if _repeated(given) is not None:
        raise UnusablePools(f"duplicate definition of {field}")
    return tuple(_selector(selector) for selector in given)


def _repeated(things: list[Any]) -> Any:
    """The first thing that comes again; None when none does."""
    return next((thing for place, thing in enumerate(things) if thing in things[place + 1 :]), None)


def _selector(selector: Json) -> LabelSelector:
    try:
        return label_selector_from_json(selector)
    except ApiError as error:
        raise UnusablePools(str(error)) from None
