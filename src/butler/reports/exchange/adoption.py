"""A running tenant as rows for an import: what MetalLB may announce on it, and what its nodes have. Pure.

Nothing is moved by it: what the tenant uses is written down as it is, and the pools then keep it for the tenant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationType
from butler.api.text import LARGEST_RANGE
from butler.ipam.addresses import BadAddress, Family, Range, parse_address
from butler.ipam.range_difference import without
from butler.ipam.refusals import invalid_count
from butler.reports.exchange.rows import BadRow, Contents, ExchangeRow, among_themselves
from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import entry_range

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.tenant.inventory import Inventory


@dataclass(frozen=True, slots=True)
class Adoption:
    """The rows, and what its operator should know beside them."""

    contents: Contents
    notes: tuple[str, ...]


def adopt(tenant: Key, used: Inventory) -> Adoption:
    """What a tenant uses, as rows. What it says twice is written down once: it has one owner in any case."""
    rows: list[ExchangeRow] = []
    bad: list[BadRow] = []
    sixes = 0
    announced: list[Range] = []
    for pool, text in sorted(used.entries, key=lambda entry: entry.pool != POOL):
        where = f"IPAddressPool {pool}"
        try:
            family, addresses = entry_range(text)
            if family is Family.V4 and addresses.size > LARGEST_RANGE:
                raise BadAddress(invalid_count(addresses.size)[1])
        except BadAddress as error:
            bad.append(BadRow(where, f"{text[:60]}: {error}"))
            continue
        if family is Family.V6:
            sixes += 1
            continue
        rows += [
            ExchangeRow(where, tenant, IPAllocationType.LOAD_BALANCER, span) for span in without(addresses, announced)
        ]
        announced.append(addresses)
    nodes: dict[str, str] = {}
    for node, text in used.nodes:
        nodes.setdefault(text, node)
    for text, node in nodes.items():
        family, address = parse_address(text)
        if family is Family.V6:
            sixes += 1
            continue
        rows.append(ExchangeRow(f"Node {node}", tenant, IPAllocationType.NODES, Range(address, address)))
    contents = among_themselves(Contents(tuple(rows), tuple(bad)))
    return Adoption(contents, tuple(_notes(used, sixes, tenant)))


def _notes(used: Inventory, sixes: int, tenant: Key) -> list[str]:
    found = []
    if not used.has_metallb:
        found.append(f"{tenant} has no MetalLB: only its nodes are looked at")
    strangers = sorted({entry.pool for entry in used.entries} - {POOL})
    if strangers:
        found.append(
            f"the addresses of IPAddressPool {', '.join(strangers)} will be the tenant's, too; when Butler manages its"
            f" load balancers it publishes them in {POOL}, so delete the other pools then: MetalLB takes an address"
            " in one pool only"
        )
    if sixes:
        found.append(f"{sixes} IPv6 {'entry is' if sixes == 1 else 'entries are'} left alone: pools hand out IPv4 only")
    return found
