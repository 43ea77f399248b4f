"""Who gets what: a batch of requests against the free space of one pool.

Requests are looked at one by one, in order: pinned ones first, then the oldest. Each sees what the grants before it
left, and one that cannot be met holds up no other.

A decision is only a proposal until it is written under the version of the pool that it was based on. Therefore
nothing is remembered here: the free space is used to try the grants out and is given back exactly as it came,
whatever happens. The caller takes the granted ranges from it once the write is acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.ipam import refusals
from butler.ipam.addresses import Range
from butler.ipam.capacity import Capacity, capacity_of
from butler.ipam.refusals import Refusal
from butler.ipam.requests import Request, in_order, objection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.ipam.free_space import FreeSpace
    from butler.ipam.layout import PoolLayout
    from butler.ipam.refusals import Why

    Holders = Callable[[Range], Sequence[str]]

__all__ = ["Decision", "Grant", "Refusal", "decide"]


@dataclass(frozen=True, slots=True)
class Grant:
    """A range for a request."""

    uid: str
    name: str
    range: Range


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of a batch of requests."""

    grants: tuple[Grant, ...]
    refusals: tuple[Refusal, ...]
    left_over: tuple[Request, ...]
    """Not looked at, because the batch was full; in the order in which they are next."""
    capacity: Capacity
    """How full the pool is once the grants are made."""


def decide(
    requests: Iterable[Request],
    free: FreeSpace,
    layout: PoolLayout,
    holders: Callable[[Range], Sequence[str]],
    most: int,
) -> Decision:
    """Grant or refuse the requests, granting at most so many. `holders` names who holds any part of a range."""
    ordered = in_order(requests)
    grants: list[Grant] = []
    refused: list[Refusal] = []
    looked_at = 0
    try:
        for request in ordered:
            if len(grants) >= most:
                break
            looked_at += 1
            answer = _answer(request, free, layout, holders, grants)
            if isinstance(answer, Range):
                free.take(answer)
                grants.append(Grant(request.uid, request.name, answer))
            else:
                refused.append(Refusal(request.uid, request.name, *answer))
        capacity = capacity_of(free, layout.total)
    finally:
        for grant in reversed(grants):
            free.give(grant.range)
    return Decision(tuple(grants), tuple(refused), tuple(ordered[looked_at:]), capacity)


def _answer(
    request: Request, free: FreeSpace, layout: PoolLayout, holders: Holders, grants: Sequence[Grant]
) -> Range | Why:
    """The range to grant, or why there is none."""
    why = objection(request, layout)
    if why is not None:
        return why
    pinned = request.pinned
    if pinned is None:
        return free.best_fit(request.count) or refusals.no_room(request.count, free, layout, request.pool)
    conflict = free.first_taken(pinned)
    if conflict is None:
        return pinned
    # Pinned requests come first, so the grants of this batch that can be in the way are few.
    here = _holders_of(Range(conflict, conflict), holders, grants)
    others = [name for name in _holders_of(pinned, holders, grants) if name not in here]
    return refusals.held_conflict(pinned, conflict, here, others, layout)


def _holders_of(addresses: Range, holders: Holders, grants: Sequence[Grant]) -> list[str]:
    return [*holders(addresses), *(grant.name for grant in grants if grant.range.overlaps(addresses))]
