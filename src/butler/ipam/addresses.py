"""Addresses as integers with a family, and the only place where they become text or come from it.

Everything below the API works on integers: an address is an `int`, a range is its first and last address, both
included, and the family travels with the pool, not with each address. Text is read strictly: no leading zeros
(some programs take 010 for 8), no netmasks, no zones, no bits after the prefix. A parser that is less strict than
the network gear hands out another address than was meant. IPv4, the common case by far, has a short way
through; a cold start reads tens of thousands of addresses.
"""

from __future__ import annotations

from enum import IntEnum
from ipaddress import AddressValueError, IPv6Address
from typing import NamedTuple


class Family(IntEnum):
    """Which internet protocol an address belongs to."""

    V4 = 4
    V6 = 6

    @property
    def bits(self) -> int:
        """Length of an address of this family."""
        return 32 if self is Family.V4 else 128


class Range(NamedTuple):
    """Addresses from first to last, both included."""

    first: int
    last: int

    @property
    def size(self) -> int:
        """How many addresses."""
        return self.last - self.first + 1

    def contains(self, other: Range) -> bool:
        """Whether all of the other range lies in this one."""
        return self.first <= other.first and other.last <= self.last

    def overlaps(self, other: Range) -> bool:
        """Whether the two share an address."""
        return self.first <= other.last and other.first <= self.last


class BadAddress(ValueError):
    """Text that is no address, no network or no range; the message is a sentence for the person who wrote it."""


_OCTETS = {str(value): value for value in range(256)}
_OCTET_TEXTS = tuple(_OCTETS)


def parse_address(text: str) -> tuple[Family, int]:
    """An address from its text."""
    octets = text.split(".")
    if len(octets) == 4:
        a, b, c, d = octets
        try:
            return Family.V4, _OCTETS[a] << 24 | _OCTETS[b] << 16 | _OCTETS[c] << 8 | _OCTETS[d]
        except KeyError:
            pass
    elif ":" in text and "%" not in text:
        try:
            return Family.V6, int(IPv6Address(text))
        except AddressValueError:
            pass
    raise BadAddress(f"{text!r} is not an IP address: write it as in 10.40.1.0, with no leading zeros")


def parse_network(text: str) -> tuple[Family, Range]:
    """A network from its CIDR text, which must start at the network's first address."""
    start, slash, prefix = text.partition("/")
    if not slash:
        raise BadAddress(f"{text!r} is not a network: add the length of its prefix, as in 10.40.0.0/21")
    try:
        family, first = parse_address(start)
    except BadAddress:
        raise BadAddress(f"{text!r} is not a network: write it as in 10.40.0.0/21") from None
    length = _OCTETS.get(prefix)
    if length is None or length > family.bits:
        raise BadAddress(f"{text!r} is not a network: its prefix must be a number from 0 to {family.bits}")
    size = 1 << (family.bits - length)
    if first % size:
        network = f"{address_text(first - first % size, family)}/{length}"
        raise BadAddress(f"{text} has bits set after its prefix: the network is {network}")
    return family, Range(first, first + size - 1)


def parse_range(start: str, end: str) -> tuple[Family, Range]:
    """A range from the texts of its first and last address, which must not be reversed."""
    family, first = parse_address(start)
    other, last = parse_address(end)
    if family is not other:
        raise BadAddress(f"{start} and {end} are addresses of two families: give both as IPv{family}")
    if last < first:
        raise BadAddress(f"{end} comes before {start}: swap the two")
    return family, Range(first, last)


def address_text(value: int, family: Family) -> str:
    """The one spelling of an address."""
    if family is Family.V4:
        return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
    return str(IPv6Address(value))


def range_text(addresses: Range, family: Family) -> str:
    """A range for people: `10.40.1.0-10.40.1.7`, or one address where it holds only one."""
    first = address_text(addresses.first, family)
    return first if addresses.size == 1 else f"{first}-{address_text(addresses.last, family)}"


def range_cidr(addresses: Range, family: Family) -> str | None:
    """The range as one network, where it is one: a power of two long and aligned to its length."""
    size = addresses.size
    if size & (size - 1) or addresses.first % size:
        return None
    return f"{address_text(addresses.first, family)}/{family.bits + 1 - size.bit_length()}"


def addresses_of(addresses: Range, family: Family) -> tuple[str, ...]:
    """Every address of the range as text, in order."""
    if family is Family.V6:
        return tuple(address_text(value, family) for value in range(addresses.first, addresses.last + 1))
    texts: list[str] = []
    for block in range(addresses.first >> 8, (addresses.last >> 8) + 1):
        stem = f"{block >> 16}.{block >> 8 & 255}.{block & 255}."
        start = max(addresses.first - (block << 8), 0)
        stop = min(addresses.last - (block << 8), 255) + 1
        texts += [stem + octet for octet in _OCTET_TEXTS[start:stop]]
    return tuple(texts)
