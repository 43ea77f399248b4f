"""Which addresses machines have, as their Cluster API objects say, and whether that is where they should be. Pure.

Machines are foreign objects: any field may be missing. A machine that reports no address may have any: it takes one
from its cluster's ranges before it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.ipam.addresses import BadAddress, Family, parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.api.objects import Json
    from butler.ipam.addresses import Range

INTERNAL: str = "InternalIP"
NAMED_AT_MOST = 3


class MachineAddresses(NamedTuple):
    """A Machine, and the InternalIPs that it reports, as text."""

    name: str
    addresses: tuple[str, ...]


def read_machine(machine: Json) -> MachineAddresses:
    """What a Machine says of itself; what cannot be read counts as not said."""
    metadata, status = machine.get("metadata"), machine.get("status")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    shown = status.get("addresses") if isinstance(status, dict) else None
    found = [
        str(item["address"])
        for item in (shown if isinstance(shown, list) else ())
        if isinstance(item, dict) and item.get("type") == INTERNAL and isinstance(item.get("address"), str)
    ]
    return MachineAddresses(str(name or "a machine without a name"), tuple(found))


def in_range(machines: Iterable[MachineAddresses], family: Family, addresses: Range) -> list[tuple[str, str]]:
    """Machine and address of those that report one of these addresses."""
    return [
        (machine.name, text)
        for machine in machines
        for text in machine.addresses
        if (value := _value(text, family)) is not None and addresses.first <= value <= addresses.last
    ]


def may_have(machines: Iterable[MachineAddresses], family: Family, addresses: Range) -> list[str]:
    """Names of the machines that have one of these addresses, or may: those that report none of this family."""
    return [
        machine.name for machine in machines if in_range([machine], family, addresses) or not values_of(machine, family)
    ]


def outside(addresses: Sequence[int], held: Sequence[Range], is_handed_out: Callable[[int], bool]) -> list[int]:
    """Which addresses of one machine are none of its cluster's.

    A machine may have further interfaces, such as that of its pod network. So beside an address that its cluster
    holds, only one that a pool hands out, or that another cluster has, is out of place.
    """
    beyond = [value for value in addresses if not any(span.first <= value <= span.last for span in held)]
    return beyond if len(beyond) == len(addresses) else [value for value in beyond if is_handed_out(value)]


def values_of(machine: MachineAddresses, family: Family) -> list[int]:
    """The addresses of one family as numbers."""
    return [value for text in machine.addresses if (value := _value(text, family)) is not None]


def named(machines: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    more = len(machines) - NAMED_AT_MOST
    return ", ".join(machines[:NAMED_AT_MOST]) + (f" and {more} more" if more > 0 else "")


def _value(text: str, family: Family) -> int | None:
    try:
        other, value = parse_address(text)
    except BadAddress:
        return None
    return value if other is family else None
