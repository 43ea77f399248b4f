"""A pool's spec before and after an edit, and what the edit would do. Pure: nothing is written.

Whether an edit may be made is judged by the rules of admission (`butler.rules.pool.admission`), and what it is worth
by the engine's own counters, both against the allocations as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from butler.api.networkpool import AddressRange, NetworkPool, NetworkPoolSpec, ReservedBlock, TenantAllocation
from butler.ipam.addresses import Family, Range, address_text, range_cidr, range_text
from butler.ipam.layout import InvalidPool, read_layout
from butler.reports.pool.summary import Standing, standing_of
from butler.rules.pool.admission import judge

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.ipam.layout import PoolLayout
    from butler.rules.admission_verdict import AdmissionVerdict

V4 = Family.V4


class CannotEdit(ValueError):
    """An edit that means nothing for this pool; the message says what to do instead."""


@dataclass(frozen=True, slots=True)
class Change:
    """What an edit would do."""

    before: Standing | None
    """None where the pool could not be read."""
    after: Standing | None
    verdict: AdmissionVerdict


def change_of(
    old: NetworkPool, new: NetworkPool, pools: Iterable[NetworkPool], allocations: Sequence[IPAllocation]
) -> Change:
    """What becomes of a pool that is edited into `new`."""
    return Change(_standing(old, allocations), _standing(new, allocations), judge(old, new, pools, allocations))


def _standing(pool: NetworkPool, allocations: Sequence[IPAllocation]) -> Standing | None:
    try:
        return standing_of(pool, allocations)
    except InvalidPool:
        return None


# Reserved blocks.


def with_reserved(spec: NetworkPoolSpec, block: Range, description: str | None) -> NetworkPoolSpec:
    """The spec with a block kept back; one that is there already gets the description."""
    cidr = range_cidr(block, V4)
    assert cidr is not None
    added = ReservedBlock(cidr=cidr, description=description)
    kept = list(spec.reserved)
    for index, each in enumerate(kept):
        if each.cidr == cidr:
            if description is not None:
                kept[index] = added
            break
    else:
        kept.append(added)
    return msgspec.structs.replace(spec, reserved=tuple(kept))


def without_reserved(spec: NetworkPoolSpec, block: Range) -> NetworkPoolSpec:
    """The spec with a block no longer kept back."""
    cidr = range_cidr(block, V4)
    if cidr not in [reserved_block.cidr for reserved_block in spec.reserved]:
        there = ", ".join(reserved_block.cidr for reserved_block in spec.reserved) or "none"
        raise CannotEdit(f"{cidr} is no reserved block of this pool (these are: {there}): name one as it is written")
    return msgspec.structs.replace(
        spec, reserved=tuple(reserved_block for reserved_block in spec.reserved if reserved_block.cidr != cidr)
    )


# Growth.


def with_cidr(spec: NetworkPoolSpec, cidr: str) -> NetworkPoolSpec:
    return msgspec.structs.replace(spec, cidr=cidr)


def with_window(spec: NetworkPoolSpec, window: Range) -> NetworkPoolSpec:
    """The spec with one more window, melted with those that it touches or overlaps."""
    windows = _windows(spec)
    if not windows:
        raise CannotEdit(
            f"without a window the whole of {spec.cidr} is handed out, and a window would only make that less:"
            " grow the network itself with --cidr"
        )
    return _with_windows(spec, [*windows, window])


def grown_by(spec: NetworkPoolSpec, count: int) -> NetworkPoolSpec:
    """The spec with at least so many addresses more.

    Without windows, the network that holds this one and is just large enough. With windows, the addresses after the
    last one; where the network has no more, the next larger network and what it adds. Gaps before and between windows
    stay: the administrator who left them out had a reason.
    """
    layout = read_layout(spec)
    wanted = layout.total + count
    network = layout.network
    while True:
        cidr = range_cidr(network, V4)
        assert cidr is not None
        grown = with_cidr(spec, cidr)
        if _windows(spec):
            grown = _with_windows(grown, [*layout.windows, *_room(layout, network, count)])
        try:
            if read_layout(grown).total >= wanted:
                return grown
        except InvalidPool:
            pass  # the network is too large: told below
        if network.size >= 1 << 24:
            raise CannotEdit(f"no network holds {count} addresses more than {spec.cidr}: add another pool instead")
        size = network.size * 2
        network = Range(network.first - network.first % size, network.first - network.first % size + size - 1)


def _room(layout: PoolLayout, network: Range, count: int) -> list[Range]:
    """So many addresses after the last window, and of what a larger network adds; reserved blocks are no part of it."""
    last = layout.windows[-1].last
    candidates = [Range(last + 1, network.last - 1)]
    if network.first < layout.network.first:
        candidates.append(Range(network.first + 1, layout.network.first - 1))
    found: list[Range] = []
    for candidate in candidates:
        at = candidate.first
        for block in (*layout.reserved, Range(candidate.last + 1, candidate.last + 1)):
            upto = min(block.first - 1, at + count - 1, candidate.last)
            if count and at <= upto:
                found.append(Range(at, upto))
                count -= upto - at + 1
            at = max(at, block.last + 1)
    return found


def _windows(spec: NetworkPoolSpec) -> list[Range]:
    wanted = spec.tenant_allocation
    if wanted is None or not (wanted.ranges or wanted.start is not None or wanted.end is not None):
        return []
    return list(read_layout(spec).windows)


def _with_windows(spec: NetworkPoolSpec, windows: Iterable[Range]) -> NetworkPoolSpec:
    joined: list[Range] = []
    for window in sorted(windows):
        if joined and window.first <= joined[-1].last + 1:
            joined[-1] = Range(joined[-1].first, max(joined[-1].last, window.last))
        else:
            joined.append(window)
    ranges = tuple(AddressRange(start=address_text(span.first, V4), end=address_text(span.last, V4)) for span in joined)
    before = spec.tenant_allocation or TenantAllocation()
    return msgspec.structs.replace(
        spec, tenant_allocation=msgspec.structs.replace(before, start=None, end=None, ranges=ranges)
    )


def windows_text(layout: PoolLayout, most: int = 4) -> str:
    """The windows for people."""
    shown = ", ".join(range_text(window, layout.family) for window in layout.windows[:most])
    more = len(layout.windows) - most
    return f"{shown} and {more} more" if more > 0 else shown
