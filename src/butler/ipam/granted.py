"""The record of a grant in an IPAllocation's metadata, which backups and moves keep when they drop its status. Pure.

The annotation holds the range and the UID of the object that it was granted to. While there is a status, the status has
the word and the record only repeats it. An object that comes back without status gets exactly the recorded range, or
waits. Where the recorded UID is not the object's own, the object is from another life: whatever else it says about UIDs
(its tenant's, in a label or in a status that came along) is of that life, too.

The record of an allocation that was released says so in place of a range: it must not come back as a new request.

What a person writes into the annotation of an object that was never granted anything has no more weight than a pinned
range, and has to agree with the request.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.ipallocation import IPAllocationPhase, PinnedIPRange
from butler.api.labels import Annotation
from butler.ipam.addresses import BadAddress, parse_range

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.ipam.addresses import Family, Range

RELEASED = "released"
CLOCKS_DIFFER: Final = timedelta(hours=1)
"""By how much the clock of a controller may be behind that of the API server: what it grants to new objects must not
look as if it came from a backup, which clusters do not use before an administrator says so."""
WAITING = (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED)


class GrantRecord(NamedTuple):
    """What an object was granted, and the UID that it had then."""

    range: str
    uid: str

    @property
    def text(self) -> str:
        return f"{self.range} {self.uid}"


class BadRecord(ValueError):
    """A record that cannot be kept, and why."""


def recorded_grant(allocation: IPAllocation) -> GrantRecord | None:
    """The record as it stands, sensible or not."""
    text = allocation.metadata.annotations.get(Annotation.GRANTED)
    if not text:
        return None
    addresses, _, uid = text.partition(" ")
    return GrantRecord(addresses, uid)


def due_record(allocation: IPAllocation) -> GrantRecord | None:
    """What the record of an allocation should be; None for one that never held anything, or has no record to change.

    A status that makes no sense is not recorded: what was granted before stays on record, and can be read again.
    """
    status = allocation.status
    if status.phase is IPAllocationPhase.RELEASED and recorded_grant(allocation) is not None:
        return GrantRecord(RELEASED, allocation.metadata.uid)
    if status.phase is not IPAllocationPhase.ALLOCATED or not status.start_address or not status.end_address:
        return None
    try:
        parse_range(status.start_address, status.end_address)
    except BadAddress:
        return None
    return GrantRecord(f"{status.start_address}-{status.end_address}", allocation.metadata.uid)


def is_from_another_life(allocation: IPAllocation) -> bool:
    """Whether the object was granted its addresses under another UID, and comes from a backup or another cluster.

    Without a record (the backup is older than records, or was made in the moment before one was written) a status that
    came along tells: nothing is granted to an object before it is created.
    """
    record = recorded_grant(allocation)
    if record is None:
        return _was_granted_before_it_was_made(allocation)
    return record.range != RELEASED and record.uid != allocation.metadata.uid


def _was_granted_before_it_was_made(allocation: IPAllocation) -> bool:
    created, granted = allocation.metadata.creation_timestamp, allocation.status.allocated_at
    if allocation.status.phase is not IPAllocationPhase.ALLOCATED or created is None or granted is None:
        return False
    return created - granted > CLOCKS_DIFFER


def was_released(allocation: IPAllocation) -> bool:
    """Whether an object that looks like a new request is what a backup kept of one that was released."""
    record = recorded_grant(allocation)
    return allocation.status.phase in WAITING and record is not None and record.range == RELEASED


def comes_back(allocation: IPAllocation) -> bool:
    """Whether an object waits for addresses that it had before."""
    return (
        allocation.status.phase in WAITING
        and allocation.metadata.deletion_timestamp is None
        and recorded_grant(allocation) is not None
        and not was_released(allocation)
    )


def had_range(allocation: IPAllocation) -> tuple[Family, Range] | None:
    """What an object that comes back had, as far as that can be told; None for every other."""
    if not comes_back(allocation):
        return None
    try:
        wanted = wanted_range(allocation)
        return parse_range(wanted.start_address, wanted.end_address) if wanted else None
    except (BadRecord, BadAddress):
        return None


def wanted_range(allocation: IPAllocation) -> PinnedIPRange | None:
    """The very addresses that a request asks for: those that it had, or those that it is pinned to.

    Raises BadRecord where its record means nothing, or does not agree with what is asked for.
    """
    spec, record = allocation.spec, recorded_grant(allocation)
    if record is None:
        return spec.pinned_range
    first, _, last = record.range.partition("-")
    try:
        _, addresses = parse_range(first, last)
    except BadAddress as error:
        raise BadRecord(f"annotation {Annotation.GRANTED} cannot be read: {error}") from None
    recorded = PinnedIPRange(start_address=first, end_address=last)
    if spec.pinned_range not in (None, recorded):
        raise BadRecord(f"annotation {Annotation.GRANTED} says {record.range}, but spec.pinnedRange says otherwise")
    if spec.pinned_range is None and spec.count not in (None, addresses.size):
        raise BadRecord(f"annotation {Annotation.GRANTED} says {record.range}, but spec.count is {spec.count}")
    return recorded
