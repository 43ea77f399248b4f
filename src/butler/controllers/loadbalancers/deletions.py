"""Allocations that were deleted while their tenant lives: what is said about them. They stay until they are drained.

A deletion is a wish as long as Services may use the addresses. The allocation says in its condition Deleting what it
waits for, an event says it too, and so does the condition of the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, DeletionReason
from butler.controllers.loadbalancers.next_look import ON_CHANGE, NextLook
from butler.kube.kinds import ALLOCATIONS
from butler.rules.loadbalancer.deletion import Waits, deleting

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.kube.events import EventRecorder

DELETION_WAITS: Final = "DeletionWaits"
WORDS_WAIT: Final = 5.0
"""Seconds between two writes that only name other Services."""


class Deletions:
    """Writes it on the allocations. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        ledger: Ledger,
        events: EventRecorder,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._events = events
        self._clock = clock
        self._monotonic = monotonic
        self._said: dict[str, float] = {}
        """When an allocation was last written, by its UID, as long as another write has to wait for that."""

    async def tell(self, allocation: IPAllocation, waits: Waits) -> NextLook:
        """Say it, unless it is said; and when there is more to say."""
        conditions = deleting(allocation, waits, self._clock())
        if conditions is allocation.status.conditions:
            return ON_CHANGE
        before, uid = find_condition(allocation.status.conditions, ConditionType.DELETING), allocation.metadata.uid
        is_news = before is None or before.reason != waits.reason
        now = self._monotonic()
        self._said = {said: at for said, at in self._said.items() if now - at < WORDS_WAIT}
        if not is_news and uid in self._said:
            return NextLook.within(self._said[uid] + WORDS_WAIT - now)
        await self._ledger.mark(allocation, conditions=conditions)
        self._said[uid] = self._monotonic()
        if is_news and waits.reason is not DeletionReason.DRAINING:
            self._events.record(allocation, ALLOCATIONS, DELETION_WAITS, f"deletion waits: {waits.message}", "Warning")
        return ON_CHANGE
