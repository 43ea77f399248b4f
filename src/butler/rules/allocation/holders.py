"""Who holds addresses of a pool: its allocations, and the intents that are being granted. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, parse_range, range_text
from butler.rules.allocation.held import EVERY_ADDRESS, HeldAddresses, held_addresses, named_addresses, pool_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import Intent, NetworkPool


class Held(NamedTuple):
    """Addresses that an IPAllocation holds, or is just being granted."""

    name: str
    text: str
    addresses: Range
    """Every address where the record makes no sense."""


def held_in(pool: NetworkPool, allocations: Iterable[IPAllocation], within: Range | None = None) -> list[Held]:
    """What is in use of a pool: allocations of its name and namespace that are Allocated, and the pool's intents.

    `within`: only what has any of these addresses.
    """
    found: dict[str, Held | None] = {}
    for intent in pool.status.intents:
        found[intent.uid] = _intended(intent, within)
    for allocation in allocations:
        addresses = held_addresses(allocation)
        if addresses is not None and pool_key(allocation) == key_of(pool):
            metadata, text = allocation.metadata, named_addresses(allocation.status)
            found[metadata.uid] = _held(metadata.name, addresses, text, within)
    return sorted((held for held in found.values() if held), key=lambda held: (held.addresses, held.name))


def _held(name: str, held: HeldAddresses, text: str, within: Range | None, note: str = "") -> Held | None:
    """`text`: what to show of a record that makes no sense."""
    if within is not None and not held.range.overlaps(within):
        return None
    shown = text if held.problem else range_text(held.range, held.family)
    return Held(name, shown + note, held.range)


def _intended(intent: Intent, within: Range | None) -> Held | None:
    start, end, note = intent.start_address, intent.end_address, ", being granted"
    try:
        addresses = HeldAddresses(*parse_range(start, end))
    except BadAddress as error:
        addresses = HeldAddresses(Family.V4, EVERY_ADDRESS, str(error))
    return _held(intent.name, addresses, f"{start}-{end}", within, note)
