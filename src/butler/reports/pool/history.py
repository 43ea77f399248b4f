"""How many addresses of a pool were held, and who came and went, as far as the record reaches. Pure.

The record is the allocations themselves, with its gaps (`views.record`): what Butler released stays for a day, what a
person deleted is gone at once. So the curve of long ago counts only those that are still held, and is too low.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.ipallocation import IPAllocationPhase
from butler.reports.estate import tenant_of
from butler.rules.allocation.held import granted_range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.ipam.addresses import Family, Range

GRANTED, RELEASED = "granted", "released"


@dataclass(frozen=True, slots=True)
class Moment:
    """Addresses that came or went."""

    at: datetime
    action: str
    allocation: str
    tenant: str
    type: str
    family: Family
    range: Range

    @property
    def change(self) -> int:
        return self.range.size if self.action == GRANTED else -self.range.size


@dataclass(frozen=True, slots=True)
class FillLevel:
    """How many addresses were held from a time on."""

    at: datetime
    allocated: int


def moments(pool: str, allocations: Iterable[IPAllocation], now: datetime) -> list[Moment]:
    """All that is on record, oldest first. Clocks differ: nothing has happened in the future."""
    found = [
        Moment(
            min(at, now),
            action,
            allocation.metadata.name,
            tenant_of(allocation),
            allocation.spec.type.value,
            granted[0],
            granted[1],
        )
        for allocation in allocations
        if allocation.spec.pool_ref.name == pool and (granted := granted_range(allocation)) is not None
        for at, action in _times(allocation)
    ]
    return sorted(found, key=lambda moment: (moment.at, moment.action, moment.allocation))


def _times(allocation: IPAllocation) -> Iterable[tuple[datetime, str]]:
    status = allocation.status
    begin = status.allocated_at or allocation.metadata.creation_timestamp
    if begin is not None:
        yield begin, GRANTED
    if status.phase is IPAllocationPhase.RELEASED and status.released_at is not None:
        yield status.released_at, RELEASED


def levels(found: Sequence[Moment], now: datetime, most: int) -> list[FillLevel]:
    """The steps of the curve, oldest first, the last one now; of more than `most`, the last in each stretch of time."""
    held, steps = 0, list[FillLevel]()
    for moment in found:
        held += moment.change
        if steps and steps[-1].at == moment.at:
            steps[-1] = FillLevel(moment.at, held)
        else:
            steps.append(FillLevel(moment.at, held))
    if len(steps) > most:
        begin, span = steps[0].at, max((now - steps[0].at).total_seconds(), 1.0)
        stretches = {int((step.at - begin).total_seconds() / span * (most - 1)): step for step in steps}
        steps = list(stretches.values())
    return [*steps, FillLevel(now, held)] if not steps or steps[-1].at < now else steps


def note(found: Sequence[Moment]) -> str:
    """What the record cannot tell."""
    if not found:
        return "Nothing is on record: no allocation of this pool has addresses, and none was released lately."
    return (
        "Allocations that were released more than a day ago, or deleted by hand, are no longer on record: the further"
        " back, the more was held than this shows."
    )
