"""Who gets what: a batch of requests against the free space of one pool.

Requests are looked at in turn: pinned ones first, then the oldest. Each sees what the grants before it left, and one
that cannot be met holds up no other. The requests of a tenant that is not built yet form one unit, which is granted
whole or not at all.

A unit with a pinned range and another block keeps its pin from the start, like every pinned request, and gets the
other block when all pins are settled, so that no block without a pin lies where a pin could have been. Should the other
block not fit, the pin is free again for who else wanted it: then the batch is decided once more without that unit.

A decision is only a proposal until it is written under the version of the pool that it was based on. Therefore
nothing is remembered here: the free space is used to try the grants out and is given back exactly as it came,
whatever happens. The caller takes the granted ranges from it once the write is acknowledged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from butler.ipam import refusals
from butler.ipam.addresses import Range
from butler.ipam.capacity import Capacity, capacity_of
from butler.ipam.refusals import Refusal
from butler.ipam.requests import AddressRequest, in_turn, objection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from butler.ipam.free_space import FreeSpace
    from butler.ipam.layout import PoolLayout
    from butler.ipam.refusals import Why

    Holders = Callable[[Range], Sequence[str]]
    Unit = tuple[AddressRequest, ...]

__all__ = ["AddressGrant", "PoolDecision", "Refusal", "decide"]


@dataclass(frozen=True, slots=True)
class AddressGrant:
    """A range for a request."""

    uid: str
    name: str
    range: Range


@dataclass(frozen=True, slots=True)
class PoolDecision:
    """What is to become of a batch of requests."""

    grants: tuple[AddressGrant, ...]
    refusals: tuple[Refusal, ...]
    left_over: tuple[AddressRequest, ...]
    """Not looked at, because the batch was full; in the order in which they are next."""
    capacity: Capacity
    """How full the pool is once the grants are made."""


def decide(
    requests: Iterable[AddressRequest],
    free: FreeSpace,
    layout: PoolLayout,
    holders: Callable[[Range], Sequence[str]],
    most: int,
) -> PoolDecision:
    """Grant or refuse the requests, granting at most so many. `holders` names who holds any part of a range."""
    units = in_turn(requests)
    without: set[str] = set()
    while True:
        trial = _Trial(free, layout, holders, most, without)
        try:
            if trial.run(units):
                return trial.decision()
        finally:
            trial.undo()


class _Trial:
    """Grants tried out on the free space. `without`: first requests of units whose pins are not kept free."""

    def __init__(self, free: FreeSpace, layout: PoolLayout, holders: Holders, most: int, without: set[str]) -> None:
        self._free = free
        self._layout = layout
        self._holders = holders
        self._most = most
        self._without = without
        self._pins: dict[str, list[AddressGrant]] = {}
        """What is kept for units that wait for their other block, by the UID of their first request."""
        self._grants: list[AddressGrant] = []
        self._refused: list[Refusal] = []
        self._granted_before: dict[str, int] = {}
        """How many grants there were when a request was refused, by its UID."""
        self._conflicts: list[Range] = []
        """Pins that were refused because something was in their way."""
        self._left_over: list[AddressRequest] = []
        self._kept_for = ""
        """Name of an aged request without room: no request behind it is granted, except at a range of its own."""
        self._no_room: dict[tuple[int, str], Why] = {}
        """What requests for so many addresses of a pool are told, until the free space changes."""

    def run(self, units: Sequence[Unit]) -> bool:
        """Look at all of them. False: a pin was kept from others for nothing, so decide again without its unit."""
        waiting: list[Unit] = []
        for place, unit in enumerate(units):
            if unit[0].pinned is None:
                waiting += units[place:]
                break
            if unit[-1].pinned is not None or unit[0].uid in self._without or self._is_full(unit):
                self._look_at(unit)
            elif self._keep_pins(unit):
                waiting.append(unit)
        for unit in waiting:
            kept = self._pins.pop(unit[0].uid, [])
            if not self._look_at(unit, kept) and any(self._was_in_the_way(grant) for grant in kept):
                self._without.add(unit[0].uid)
                return False
        return True

    def decision(self) -> PoolDecision:
        capacity = capacity_of(self._free, self._layout.total)
        refused = tuple(self._with_passed(refusal) for refusal in self._refused)
        return PoolDecision(tuple(self._grants), refused, tuple(self._left_over), capacity)

    def _with_passed(self, refusal: Refusal) -> Refusal:
        """The refusal with how many were granted behind it; none can pass a request for a range of its own."""
        passed = len(self._grants) - self._granted_before[refusal.uid]
        return replace(refusal, passed=passed) if passed and refusal.reason in refusals.NO_ROOM else refusal

    def undo(self) -> None:
        for grant in (*self._grants, *(pin for pins in self._pins.values() for pin in pins)):
            self._free.give(grant.range)

    def _is_full(self, unit: Unit) -> bool:
        return bool(self._left_over) or len(self._grants) + len(unit) > self._most

    def _look_at(self, unit: Unit, kept: Sequence[AddressGrant] = ()) -> bool:
        """Grant a unit, of which some pins may be kept already, or refuse it; whether it was granted."""
        if self._is_full(unit):
            self._give_back(kept)
            self._left_over += unit
            return False
        if self._kept_for and any(request.pinned is None for request in unit):
            self._give_back(kept)
            self._granted_before |= dict.fromkeys((request.uid for request in unit), len(self._grants))
            self._refused += [_kept(request, self._kept_for) for request in unit]
            return False
        tried = [*kept]
        for request in unit[len(kept) :]:
            answer = self._try(request, tried)
            if answer is not None:
                self._give_back(tried)
                self._refuse(unit, request, answer)
                return False
        if any(request.unavailable for request in unit):
            self._give_back(tried)
            self._granted_before |= dict.fromkeys((request.uid for request in unit), len(self._grants))
            self._refused += [_unavailable(request) for request in unit]
            return False
        self._grants += tried
        return True

    def _keep_pins(self, unit: Unit) -> bool:
        kept: list[AddressGrant] = []
        for request in unit:
            if request.pinned is None:
                break
            answer = self._try(request, kept)
            if answer is not None:
                self._give_back(kept)
                self._refuse(unit, request, answer)
                return False
        self._pins[unit[0].uid] = kept
        return True

    def _try(self, request: AddressRequest, into: list[AddressGrant]) -> Why | None:
        """Take what the request is to have, or say why there is nothing."""
        told = self._no_room.get((request.count, request.pool)) if request.pinned is None else None
        if told is not None:
            return told
        answer = _answer(request, self._free, self._layout, self._holders, self._in_the_way)
        if not isinstance(answer, Range):
            if request.pinned is None:
                self._no_room[request.count, request.pool] = answer
            return answer
        self._no_room.clear()
        self._free.take(answer)
        into.append(AddressGrant(request.uid, request.name, answer))
        return None

    def _in_the_way(self) -> list[AddressGrant]:
        return [*self._grants, *(pin for pins in self._pins.values() for pin in pins)]

    def _refuse(self, unit: Unit, culprit: AddressRequest, why: Why) -> None:
        if culprit.pinned is not None:
            self._conflicts.append(culprit.pinned)
        elif culprit.aged and not culprit.unavailable and not self._kept_for:
            self._kept_for = culprit.name
        together = refusals.only_together(culprit.name, why)
        for request in unit:
            self._granted_before[request.uid] = len(self._grants)
            self._refused.append(Refusal(request.uid, request.name, *(why if request is culprit else together)))

    def _was_in_the_way(self, pin: AddressGrant) -> bool:
        return any(pin.range.overlaps(conflict) for conflict in self._conflicts)

    def _give_back(self, tried: Iterable[AddressGrant]) -> None:
        for grant in tried:
            self._no_room.clear()
            self._free.give(grant.range)


def _kept(request: AddressRequest, older: str) -> Refusal:
    return Refusal(request.uid, request.name, *refusals.kept_for_older(request.count, older, request.pool))


def _unavailable(request: AddressRequest) -> Refusal:
    why = refusals.other_block_unavailable(request.count, request.pool, request.unavailable)
    return Refusal(request.uid, request.name, *why)


def _answer(
    request: AddressRequest,
    free: FreeSpace,
    layout: PoolLayout,
    holders: Holders,
    tried: Callable[[], Sequence[AddressGrant]],
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
    grants = tried()
    here = _holders_of(Range(conflict, conflict), holders, grants)
    others = [name for name in _holders_of(pinned, holders, grants) if name not in here]
    return refusals.held_conflict(pinned, conflict, here, others, layout)


def _holders_of(addresses: Range, holders: Holders, grants: Sequence[AddressGrant]) -> list[str]:
    return [*holders(addresses), *(grant.name for grant in grants if grant.range.overlaps(addresses))]
