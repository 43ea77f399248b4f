"""Why a request was not met, in a sentence for the person on call.

Each sentence has three parts: what was asked for, what stood in the way (with the numbers, the holes and the names
that are needed to check it), and, after the colon, what to do about it. They end up in an IPAllocation's Ready
condition and are compared with what stands there, so the same facts must always give the same words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

from butler.api.labels import AllocationReason
from butler.api.text import LARGEST_RANGE
from butler.ipam.addresses import address_text, range_cidr, range_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.ipam.addresses import Range
    from butler.ipam.free_space import FreeSpace
    from butler.ipam.layout import PoolLayout, Reserved

NO_ROOM = (AllocationReason.POOL_EXHAUSTED, AllocationReason.POOL_FRAGMENTED, AllocationReason.OTHER_BLOCK_DOES_NOT_FIT)
"""Reasons of requests that wait for room, and may be passed by smaller ones meanwhile."""
WAITS = (*NO_ROOM, AllocationReason.KEPT_FOR_OLDER)
"""Reasons that time alone may end, so the request says since when it waits."""
HOLES_SHOWN = 3
WINDOWS_SHOWN = 4
HOLDERS_SHOWN = 3
DESCRIPTION_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request that cannot be met as things stand, and why."""

    uid: str
    name: str
    reason: AllocationReason
    message: str
    passed: int = field(default=0, compare=False)
    """How many requests behind it were granted in the same decision."""


class RequestRefusal(Exception):
    """Raised where a request turns out to be one that cannot be met."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


Why = tuple[AllocationReason, str]


def invalid_count(count: int) -> Why:
    """Less than one address, or more than one allocation may hold."""
    if count < 1:
        message = f"asks for {count} addresses: ask for 1 or more"
    else:
        message = (
            f"asks for {count} addresses, but one allocation may hold at most {LARGEST_RANGE}:"
            " split it into several allocations"
        )
    return AllocationReason.INVALID_REQUEST, message


def unreadable_pin(complaint: str) -> Why:
    """A pinned range whose text means nothing."""
    return AllocationReason.INVALID_REQUEST, f"the pinned range cannot be read: {complaint}"


def unusable_record(complaint: str) -> Why:
    """An object from a backup whose record of its addresses makes no sense."""
    message = (
        f"it comes from a backup, and which addresses it had is not clear: {complaint}; correct the annotation, or"
        " remove it to ask for any addresses"
    )
    return AllocationReason.INVALID_REQUEST, message


def reversed_pin(first: str, last: str) -> Why:
    """A pinned range that ends before it begins."""
    return (
        AllocationReason.INVALID_REQUEST,
        f"{first}-{last} is pinned, but {last} comes before {first}: swap startAddress and endAddress",
    )


def out_of_pool(pinned: Range, layout: PoolLayout, pool: str) -> Why:
    """A pinned range that does not lie inside one window."""
    family = layout.family
    touched = [window for window in layout.windows if window.overlaps(pinned)]
    if not touched:
        trouble = f"it is outside what {pool} hands out ({_windows(layout)})"
        advice = "pin a range inside, or widen spec.tenantAllocation of the pool"
    elif len(touched) > 1 and touched[0].first <= pinned.first and pinned.last <= touched[-1].last:
        trouble = f"it reaches over {len(touched)} windows of {pool} ({_texts(touched, layout, WINDOWS_SHOWN)})"
        advice = "make one allocation for each window"
    else:
        window = touched[0]
        outside = pinned.first if pinned.first < window.first else window.last + 1
        trouble = f"{address_text(outside, family)} is outside what {pool} hands out ({_windows(layout)})"
        advice = "pin a range inside, or widen spec.tenantAllocation of the pool"
    return (
        AllocationReason.PINNED_RANGE_OUT_OF_POOL,
        f"{range_text(pinned, family)} is pinned, but {trouble}: {advice}",
    )


def reserved_conflict(pinned: Range, block: Reserved, layout: PoolLayout) -> Why:
    """A pinned range that a reserved block is in the way of."""
    family = layout.family
    conflict = address_text(max(pinned.first, block.addresses.first), family)
    description = _shortened(block.description)
    message = (
        f"{range_text(pinned, family)} is pinned, but {conflict} is reserved by"
        f" {range_cidr(block.addresses, family)}{f' ({description})' if description else ''}:"
        " pin a range outside that block, or take the block out of spec.reserved of the pool"
    )
    return AllocationReason.PINNED_RANGE_CONFLICT, message


def excluded_conflict(pinned: Range, address: Reserved, layout: PoolLayout) -> Why:
    """A pinned range with a gateway or a DNS server in it."""
    family = layout.family
    message = (
        f"{range_text(pinned, family)} is pinned, but {address_text(address.addresses.first, family)} is the"
        f" {_shortened(address.description)}: pin a range without it, or correct the ProviderConfig"
    )
    return AllocationReason.PINNED_RANGE_CONFLICT, message


def held_conflict(
    pinned: Range, conflict: int, holders: Sequence[str], others: Sequence[str], layout: PoolLayout
) -> Why:
    """A pinned range that others hold a part of: those with its first taken address, and those with the rest."""
    family = layout.family
    text = address_text(conflict, family)
    trouble = f"{text} is held by {_names(holders)}" if holders else f"{text} is not free"
    if others:
        trouble += f" and more of it by {_names(others)}"
    advice = "release them" if others or len(holders) > 1 else "release that allocation" if holders else "wait for it"
    return (
        AllocationReason.PINNED_RANGE_CONFLICT,
        f"{range_text(pinned, family)} is pinned, but {trouble}: pin a free range or {advice}",
    )


def no_room(count: int, free: FreeSpace, layout: PoolLayout, pool: str) -> Why:
    """A request that no hole is long enough for."""
    longest = max(layout.usable, key=lambda piece: piece.size)
    if count > layout.total:
        message = (
            f"needs {_addresses(count)}; {pool} hands out {layout.total} in all:"
            f" ask for {longest.size} or fewer, or add a window"
        )
    elif not free.free:
        message = (
            f"needs {_addresses(count)}; all {layout.total} of {pool} are taken: release an allocation or add a window"
        )
    elif free.free < count:
        message = (
            f"needs {_addresses(count)}; {pool} has {free.free} of {layout.total} free ({_holes(free, layout)}):"
            f" release an allocation, ask for {free.largest} or fewer, or add a window"
        )
    elif count > longest.size:
        message = (
            f"needs {_addresses(count)}; {pool} has {free.free} free, but even when empty no run is longer"
            f" than {longest.size} ({range_text(longest, layout.family)}):"
            f" ask for {free.largest} or fewer, or add a longer window"
        )
    else:
        message = (
            f"needs {_addresses(count)}; {pool} has {free.free} free, but the longest run is"
            f" {_holes_with_sizes(free, layout)}:"
            f" release a neighbour, ask for {free.largest} or fewer, or add a window"
        )
    enough = free.free >= count
    return AllocationReason.POOL_FRAGMENTED if enough else AllocationReason.POOL_EXHAUSTED, message


def kept_for_older(count: int, older: str, pool: str) -> Why:
    """A request that would fit, if an older one did not wait for that very space."""
    message = (
        f"needs {_addresses(count)}; {pool} keeps what is free for {older}, which has waited longer than"
        " spec.keepForOldestAfterMinutes: make room for that one, use another pool, or unset the field"
    )
    return AllocationReason.KEPT_FOR_OLDER, message


def waiting_since(asked: datetime, passed_by: int) -> str:
    """Since when a request waits, and how often it was passed. Never for how long: a duration is new every second."""
    since = f"waits for room since {asked.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if not passed_by:
        return f"{since}; no younger request has been met before it"
    return f"{since}; {passed_by} younger {'request was' if passed_by == 1 else 'requests were'} met before it"


def only_together(name: str, why: Why) -> Why:
    """A request of an unbuilt tenant that another of its requests to the same pool keeps from being granted."""
    _, message = why
    return (
        AllocationReason.OTHER_BLOCK_DOES_NOT_FIT,
        f"is granted together with {name} or not at all, and {name} {message}",
    )


def other_block_unavailable(count: int, pool: str, unavailable: str) -> Why:
    """A request that would fit, of an unbuilt tenant that cannot have its other block."""
    message = (
        f"{pool} has room for the {count} {'address' if count == 1 else 'addresses'},"
        f" but a tenant starts with all its blocks or with none, and {unavailable}"
    )
    return AllocationReason.OTHER_BLOCK_UNAVAILABLE, message


def _addresses(count: int) -> str:
    return "1 address" if count == 1 else f"{count} contiguous addresses"


def _holes(free: FreeSpace, layout: PoolLayout) -> str:
    shown = ", ".join(range_text(hole, layout.family) for hole in free.largest_holes(HOLES_SHOWN))
    return shown + _and_more(free.holes - HOLES_SHOWN)


def _holes_with_sizes(free: FreeSpace, layout: PoolLayout) -> str:
    holes = free.largest_holes(HOLES_SHOWN)
    shown = ", then ".join(f"{hole.size} ({range_text(hole, layout.family)})" for hole in holes)
    return shown + _and_more(free.holes - HOLES_SHOWN)


def _windows(layout: PoolLayout) -> str:
    return _texts(layout.windows, layout, WINDOWS_SHOWN)


def _texts(ranges: Sequence[Range], layout: PoolLayout, most: int) -> str:
    shown = ", ".join(range_text(addresses, layout.family) for addresses in ranges[:most])
    return shown + _and_more(len(ranges) - most)


def _names(names: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(names))
    return ", ".join(distinct[:HOLDERS_SHOWN]) + _and_more(len(distinct) - HOLDERS_SHOWN)


def _and_more(count: int) -> str:
    return f" and {count} more" if count > 0 else ""


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= DESCRIPTION_LENGTH else words[: DESCRIPTION_LENGTH - 1].rstrip() + "…"
