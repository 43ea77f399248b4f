"""What MetalLB may hand out: IPAddressPools, read as MetalLB's controller reads them. Pure.

All pools of a cluster are one configuration: a single pool that makes no sense (no addresses at all, a range that
is reversed, addresses that another pool or another line has too) and the whole of it is not taken over. MetalLB then
goes on with what it had before, which is why `configuration` gives all pools or raises. MetalLB reads less strictly
than Butler does: a network may have bits set after its prefix.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, NamedTuple

from butler.ipam.addresses import Family, Range, address_text
from butler.kube.objects import labels_of, name_of
from butler.local.apiserver.wire.selectors import LabelSelector, label_selector_from_json
from butler.local.apiserver.wire.status import ApiError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.kube.resource import Json


class Unusable(Exception):
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


class Block(NamedTuple):
    """Addresses in a row, of one family."""

    family: Family
    range: Range

    def holds(self, address: Address) -> bool:
        return address.family is self.family and self.range.first <= address.value <= self.range.last


@dataclass(frozen=True, slots=True)
class Reserved:
    """Whom a pool is for, when not for everyone."""

    priority: int
    """Lower comes first; 0 is none, and comes last."""
    namespaces: frozenset[str]
    selectors: tuple[LabelSelector, ...]


@dataclass(frozen=True, slots=True)
class Pool:
    """One IPAddressPool."""

    name: str
    blocks: tuple[Block, ...]
    auto_assign: bool = True
    avoid_buggy: bool = False
    reserved: Reserved | None = None

    def offers(self, address: Address) -> bool:
        """Whether this address is one of the pool's, and may be used."""
        return not (self.avoid_buggy and address.is_buggy) and any(block.holds(address) for block in self.blocks)

    def serves(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a Service there, with those labels, may have addresses of this pool."""
        if self.reserved is None:
            return True
        if self.reserved.namespaces and namespace not in self.reserved.namespaces:
            return False
        selectors = self.reserved.selectors
        return not selectors or any(selector.matches(labels) for selector in selectors)


Pools = dict[str, Pool]
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


def parse_block(text: str) -> Block | None:
    """One line of `spec.addresses`; None for a range between two families, which is accepted and holds nothing."""
    try:
        if "-" not in text:
            if "/" not in text:
                raise ValueError
            network = ip_network(text, strict=False)
            family = Family.V4 if network.version == 4 else Family.V6
            return Block(family, Range(int(network.network_address), int(network.broadcast_address)))
        start, _, end = text.partition("-")
        first, last = parse_address(start.strip()), parse_address(end.strip())
    except ValueError:
        raise Unusable(f"invalid addresses {text!r}") from None
    if first.family is not last.family:
        return None
    if last < first:
        raise Unusable(f"invalid addresses {text!r}: the start is after the end")
    return Block(first.family, Range(first.value, last.value))


def uses_namespace_labels(objects: Iterable[Json]) -> bool:
    """Whether any pool chooses namespaces by their labels, so that these matter."""
    return any((each.get("spec") or {}).get("allocateTo", {}).get("namespaceSelectors") for each in objects)


def configuration(objects: Iterable[Json], namespaces: Iterable[Json] = ()) -> Pools:
    """All pools, or `Unusable` with what is wrong with one of them."""
    known = list(namespaces)
    pools: Pools = {}
    taken: list[tuple[str, Block]] = []
    for each in sorted(objects, key=name_of):
        pool = _pool(each, known)
        for block in pool.blocks:
            for owner, other in taken:
                if block.family is other.family and block.range.overlaps(other.range):
                    raise Unusable(f"addresses of pool {pool.name!r} overlap with those of pool {owner!r}")
            taken.append((pool.name, block))
        pools[pool.name] = pool
    return pools


def _pool(obj: Json, namespaces: list[Json]) -> Pool:
    name, spec = name_of(obj), obj.get("spec") or {}
    lines = spec.get("addresses") or []
    if not lines:
        raise Unusable(f"pool {name!r} has no addresses")
    try:
        blocks = tuple(block for line in lines if (block := parse_block(str(line))) is not None)
        reserved = _reserved(spec["allocateTo"], namespaces) if spec.get("allocateTo") is not None else None
    except Unusable as error:
        raise Unusable(f"pool {name!r}: {error}") from None
    return Pool(
        name,
        blocks,
        auto_assign=spec.get("autoAssign") is not False,
        avoid_buggy=bool(spec.get("avoidBuggyIPs")),
        reserved=reserved,
    )


def _reserved(to: Json, namespaces: list[Json]) -> Reserved:
    names = list(to.get("namespaces") or ())
    if len(set(names)) != len(names):
        raise Unusable("a namespace is named twice")
    by_label = [_selector(each) for each in to.get("namespaceSelectors") or ()]
    chosen = {name_of(each) for each in namespaces if any(selector.matches(labels_of(each)) for selector in by_label)}
    return Reserved(
        int(to.get("priority") or 0),
        frozenset(names) | chosen,
        tuple(_selector(each) for each in to.get("serviceSelectors") or ()),
    )


def _selector(selector: Json) -> LabelSelector:
    try:
        return label_selector_from_json(selector)
    except ApiError as error:
        raise Unusable(f"a label selector is wrong: {error}") from None
