"""Addresses of pools that a tenant's Services show and that the tenant does not hold.

They come from an address pool that the tenant made in its own MetalLB. What is found here is written into the status of
the TenantCluster, and pools do not hand it out meanwhile (`butler.rules.pool.foreign_addresses`). Services and
allocations are seen through different watches, one of which may be late: an address counts when it was foreign for a
moment. And one that a Service showed a moment ago counts still: a tenant that changes its Services all the time must
not make pools write all the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.objects import Key
from butler.api.tenantcluster import MOST_FOREIGN
from butler.ipam.addresses import Family, Range, address_text
from butler.ipam.layout import InvalidPool, read_layout
from butler.ipam.range_index import RangeIndex
from butler.rules.allocation.held import readable_range
from butler.rules.loadbalancer.demand import in_use, ipv4_addresses

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Change
    from butler.rules.loadbalancer.service import Balancer

SHOWN_FOR: Final = 60.0
"""Seconds for which an address counts as shown after the last Service that showed it."""
COUNTS_AFTER: Final = 2.0
"""Seconds for which it has to be shown before it counts."""


class Sighting(NamedTuple):
    """When an address was first and last seen to be foreign, by the monotonic clock."""

    first: float
    last: float

    @property
    def counts(self) -> bool:
        return self.last - self.first >= COUNTS_AFTER


def foreign(
    services: Iterable[Balancer], own: Iterable[IPAllocation], is_handed_out: Callable[[int], bool]
) -> list[int]:
    """The addresses that Services show, that pools hand out, and that the tenant does not hold. Pure."""
    held = [held for allocation in own if (held := _held(allocation)) is not None]
    return [
        address
        for address in in_use(services)
        if not any(span.first <= address <= span.last for span in held) and is_handed_out(address)
    ]


def _held(allocation: IPAllocation) -> Range | None:
    """What an allocation of whatever type holds."""
    held = readable_range(allocation)
    return held[1] if held is not None and held[0] is Family.V4 else None


def remembered(
    shown: Iterable[int], before: Mapping[int, Sighting], now: float, *, at_once: bool = False
) -> dict[int, Sighting]:
    """What is known of foreign addresses after another look: as many as may count, those that do first. Pure.

    `at_once`: what is shown counts without a second look, because grants wait for this one.
    """
    current, earliest = set(shown), now - COUNTS_AFTER if at_once else now
    kept = {
        address: Sighting(min(seen.first, earliest), now) if address in current else seen
        for address, seen in before.items()
        if address in current or (seen.counts and now - seen.last < SHOWN_FOR)
    }
    for address in sorted(current):
        if address not in kept and len(kept) < MOST_FOREIGN:
            kept[address] = Sighting(earliest, now)
    return kept


def recalled(texts: Iterable[str], now: float) -> dict[int, Sighting]:
    """What the status says of earlier looks, by another process: it counts, as if last seen now."""
    return {address: Sighting(now - COUNTS_AFTER, now) for address in ipv4_addresses(texts)}


def counting(known: Mapping[int, Sighting]) -> list[int]:
    """The addresses that count as shown."""
    return sorted(address for address, seen in known.items() if seen.counts)


def seconds_to_next(known: Mapping[int, Sighting], now: float) -> float | None:
    """When the clock alone changes what counts; None: it will not."""
    waits = [
        (seen.last + SHOWN_FOR if seen.counts else seen.first + COUNTS_AFTER) - now + 0.05 for seen in known.values()
    ]
    return max(0.0, min(waits)) if waits else None


def as_told(addresses: Iterable[int]) -> tuple[str, ...]:
    """As the status says it."""
    return tuple(address_text(address, Family.V4) for address in sorted(addresses))


class PoolAddresses:
    """All addresses that pools hand out, kept in step with the cache of pools."""

    def __init__(self) -> None:
        self._index = RangeIndex[Key]()
        self._pieces: dict[Key, tuple[Range, ...]] = {}

    def changed(self, change: Change[NetworkPool]) -> None:
        """Take in what the cache reports."""
        after = _usable(change.new)
        if after == self._pieces.get(change.key, ()):
            return
        for piece in self._pieces.pop(change.key, ()):
            self._index.remove(piece, change.key)
        if after:
            self._pieces[change.key] = after
        for piece in after:
            self._index.add(piece, change.key)

    def hand_out(self, address: int) -> bool:
        """Whether a pool hands out an IPv4 address."""
        return bool(self._index.touching(Range(address, address)))


def _usable(pool: NetworkPool | None) -> tuple[Range, ...]:
    if pool is None:
        return ()
    try:
        layout = read_layout(pool.spec)
    except InvalidPool:
        return ()
    return tuple(layout.usable) if layout.family is Family.V4 else ()
