"""How much history to keep. Pure.

Clients resume a watch from the last revision they saw; what they may have missed has to be kept for a while.
Time is the promise (five minutes, as Kubernetes), size is the limit: a flood of writes must not fill the disk,
so when both cannot be had, the size wins and slow clients list again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Retention:
    """Keep `seconds` of history, unless that would be more than `changes` changes or `bytes` bytes."""

    seconds: float = 300.0
    changes: int = 100_000
    bytes: int = 256 << 20


class Mark(NamedTuple):
    """How far the store had come at one time; `changes` and `bytes` count from the start of the process."""

    time: float
    revision: int
    changes: int
    bytes: int


def horizon(marks: Iterable[Mark], now: Mark, keep: Retention) -> int:
    """The newest marked revision whose past may go; 0 if nothing may."""
    return max((mark.revision for mark in marks if _is_past(mark, now, keep)), default=0)


def worth_a_mark(last: Mark, now: Mark, keep: Retention) -> bool:
    """Whether enough has happened since the last mark. Sixteenths keep the marks few and the limits close."""
    return (
        now.time - last.time >= keep.seconds / 16
        or now.changes - last.changes >= keep.changes / 16
        or now.bytes - last.bytes >= keep.bytes / 16
    )


def _is_past(mark: Mark, now: Mark, keep: Retention) -> bool:
    return (
        now.time - mark.time >= keep.seconds
        or now.changes - mark.changes >= keep.changes
        or now.bytes - mark.bytes >= keep.bytes
    )
