"""What uses addresses right now, as tenants themselves tell: Nodes, Services, and what MetalLB may announce. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_address
from butler.rules.machines import read_machine
from butler.tenant.metallb import entry_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.api.objects import Json, Key
    from butler.tenant.inventory import Inventory


class AddressUse(NamedTuple):
    """A Node or Service of a tenant that has an address."""

    tenant: Key
    kind: str
    """Node, Service or Machine."""
    name: str
    address: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name} ({self.address})"


class AnnouncedAddresses(NamedTuple):
    """An entry of a tenant's IPAddressPool."""

    tenant: Key
    pool: str
    entry: str


def uses_in(addresses: Range, family: Family, told: Mapping[Key, Inventory]) -> list[AddressUse]:
    """Nodes and Services with any of these addresses, by address."""
    found: list[tuple[int, AddressUse]] = []
    for tenant, used in told.items():
        candidates = [("Node", node, text) for node, text in used.nodes]
        candidates += [("Service", str(balancer), text) for balancer in used.balancers for text in balancer.addresses]
        for kind, name, text in candidates:
            value = _value(text, family)
            if value is not None and addresses.first <= value <= addresses.last:
                found.append((value, AddressUse(tenant, kind, name, address_text(value, family))))
    return [use for _, use in sorted(found)]


def machine_uses(tenant: Key, machines: Iterable[Json]) -> list[AddressUse]:
    """The Machines of a tenant, as the management cluster lists them, with the addresses that they report."""
    read = map(read_machine, machines)
    return [AddressUse(tenant, "Machine", machine.name, address) for machine in read for address in machine.addresses]


def within(uses: Iterable[AddressUse], family: Family, addresses: Range) -> list[AddressUse]:
    """Those with one of these addresses."""
    found = ((use, _value(use.address, family)) for use in uses)
    return [each for each, value in found if value is not None and addresses.first <= value <= addresses.last]


def announced_in(addresses: Range, family: Family, told: Mapping[Key, Inventory]) -> list[AnnouncedAddresses]:
    """Entries of IPAddressPools with any of these addresses."""
    found = []
    for tenant, used in told.items():
        for pool, entry in used.entries:
            try:
                other, entered = entry_range(entry)
            except BadAddress:
                continue
            if other is family and entered.overlaps(addresses):
                found.append(AnnouncedAddresses(tenant, pool, entry))
    return sorted(found)


def _value(text: str, family: Family) -> int | None:
    try:
        other, value = parse_address(text)
    except BadAddress:
        return None
    return value if other is family else None
