"""Which addresses does an allocation hold? The one answer, for the allocator, admission, MetalLB and every report.

A status can be edited by hand, and then say what cannot be: an address that is none, a start without an end, an end
before its start. Such a status may stand for any address of its pool. So there are two questions:

    `held_addresses`   what nothing else may be given: the range, or, where the status makes no sense, every address,
                       with the reason. The pool that the allocation names hands out nothing meanwhile
    `readable_range`   what may be announced, counted and shown: the range, or nothing where it cannot be read

Pure.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.ipallocation import IPAllocationPhase
from butler.api.objects import Key
from butler.ipam.addresses import BadAddress, Family, Range, parse_range

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.api.ipallocation import IPAllocation, IPAllocationStatus

EVERY_ADDRESS: Final = Range(0, (1 << Family.V4.bits) - 1)
NO_RANGE: Final = "it is Allocated, and startAddress or endAddress is missing"


class HeldAddresses(NamedTuple):
    """What an allocation holds."""

    family: Family
    range: Range
    problem: str = ""
    """Why the status makes no sense, and every address counts as held; empty where the range is what it says."""


def addresses_in(status: IPAllocationStatus) -> HeldAddresses:
    """The addresses that a status names, whatever its phase: as wide as it could mean where it makes no sense."""
    return _addresses(status.start_address, status.end_address)


@lru_cache(1 << 16)  # the server reads the same ten thousand texts at every change of a pool: this saves a third
def _addresses(start: str | None, end: str | None) -> HeldAddresses:
    if start is None or end is None:
        return HeldAddresses(Family.V4, EVERY_ADDRESS, NO_RANGE)
    try:
        return HeldAddresses(*parse_range(start, end))
    except BadAddress as error:
        return HeldAddresses(Family.V4, EVERY_ADDRESS, str(error))


def held_addresses(allocation: IPAllocation) -> HeldAddresses | None:
    """What nothing else may be given because of an allocation; None when it holds nothing."""
    status = allocation.status
    return addresses_in(status) if status.phase is IPAllocationPhase.ALLOCATED else None


def readable_range(allocation: IPAllocation) -> tuple[Family, Range] | None:
    """What an allocation holds, where that can be read; None where it holds nothing, or its status makes no sense."""
    held = held_addresses(allocation)
    return (held.family, held.range) if held is not None and not held.problem else None


def granted_range(allocation: IPAllocation) -> tuple[Family, Range] | None:
    """What an allocation holds, or held before it was released, where that can be read."""
    granted = addresses_in(allocation.status)
    return None if granted.problem else (granted.family, granted.range)


def named_addresses(status: IPAllocationStatus) -> str:
    """The text of a status, for messages: `10.40.1.0-?` where the end is missing."""
    return f"{status.start_address or '?'}-{status.end_address or '?'}"


def pool_key(allocation: IPAllocation) -> Key:
    """The pool that an allocation asks: by name, in its own namespace."""
    return Key(allocation.metadata.namespace, allocation.spec.pool_ref.name)


def unreadable(pool: Key, allocations: Iterable[IPAllocation]) -> dict[str, str]:
    """Why a pool hands out nothing: the problems, by name, of its allocations whose status makes no sense."""
    return {
        allocation.metadata.name: held.problem
        for allocation in allocations
        if (held := held_addresses(allocation)) is not None and held.problem and pool_key(allocation) == pool
    }


def why_nothing(unreadable_ones: dict[str, str]) -> str:
    """Why a pool with such allocations hands out nothing, as the rest of a sentence; empty where it has none."""
    if not unreadable_ones:
        return ""
    name, problem = next(iter(unreadable_ones.items()))
    more = f", and {len(unreadable_ones) - 1} more" if len(unreadable_ones) > 1 else ""
    return f"the status of IPAllocation {name} does not say which addresses it holds ({problem}){more}"
