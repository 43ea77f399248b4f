"""Allocations that were deleted while their tenant lives: what is said about them. They stay until they are drained.

A deletion is a wish as long as Services may use the addresses. The allocation says in its condition Deleting what it
waits for, an event says it too, and so does the condition of the cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.conditions import find_condition, with_condition
from butler.api.labels import ConditionType, DeletionReason
from butler.controllers.kinds import ALLOCATIONS
from butler.controllers.loadbalancers.survey import users_of
from butler.ipam.addresses import Family, range_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.meta import Condition
    from butler.controllers.loadbalancers.ledger import Ledger
    from butler.controllers.loadbalancers.memory import Memory
    from butler.controllers.loadbalancers.survey import Block
    from butler.kube.events import EventRecorder
    from butler.tenant.services import Balancer

DELETION_WAITS: Final = "DeletionWaits"
MOST_NAMED: Final = 5
LONGEST: Final = 1024
WORDS_WAIT: Final = 5.0
"""Seconds between two writes that only name other Services."""


class Waits(NamedTuple):
    """What a deletion waits for, as the condition says it."""

    reason: DeletionReason
    message: str


DRAINING: Final = Waits(
    DeletionReason.DRAINING, "no Service uses its addresses; they are being taken back from MetalLB on the tenant"
)


def waits_for(block: Block, services: Iterable[Balancer]) -> Waits:
    """What the deletion of a block's allocation waits for. Pure."""
    users = users_of(block, services)
    if not users:
        return DRAINING
    message = f"it stays until no Service of the tenant has or asks for one of its addresses: {in_words(users)}"
    return Waits(DeletionReason.IN_USE, message)


def unknown(why: str) -> Waits:
    """Nobody can tell whether it is used."""
    return Waits(DeletionReason.UNKNOWN, f"whether a Service uses its addresses cannot be told, so it stays: {why}")


def in_words(users: Sequence[Balancer]) -> str:
    """`shop/web (10.40.0.20), shop/mail (asks for 10.40.0.21)`."""
    named = [
        f"{user.namespace}/{user.name} ({', '.join(user.addresses) or 'asks for ' + ', '.join(user.asks)})"
        for user in sorted(users)[:MOST_NAMED]
    ]
    more = [f"{len(users) - MOST_NAMED} more"] if len(users) > MOST_NAMED else []
    return ", ".join([*named, *more])


def named(block: Block) -> str:
    """`IPAllocation web-lb (10.40.0.20-10.40.0.23)`."""
    return f"IPAllocation {block.allocation.metadata.name} ({range_text(block.range, Family.V4)})"


def deleting(allocation: IPAllocation, waits: Waits, now: datetime) -> tuple[Condition, ...]:
    """The conditions of an allocation whose deletion waits; the very same tuple when that changes nothing. Pure."""
    return with_condition(
        allocation.status.conditions,
        type=ConditionType.DELETING,
        status=True,
        reason=waits.reason,
        message=waits.message[:LONGEST],
        now=now,
    )


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

    async def tell(self, allocation: IPAllocation, waits: Waits, memory: Memory) -> float | None:
        """Say it, unless it is said; in how many seconds there is more to say, None when that is all."""
        conditions = deleting(allocation, waits, self._clock())
        if conditions is allocation.status.conditions:
            return None
        before, uid = find_condition(allocation.status.conditions, ConditionType.DELETING), allocation.metadata.uid
        is_news = before is None or before.reason != waits.reason
        left = memory.deletions_told.get(uid, -WORDS_WAIT) + WORDS_WAIT - self._monotonic()
        if not is_news and left > 0:
            return left
        await self._ledger.mark(allocation, conditions=conditions)
        memory.deletions_told[uid] = self._monotonic()
        if is_news and waits.reason is not DeletionReason.DRAINING:
            self._events.record(allocation, ALLOCATIONS, DELETION_WAITS, f"deletion waits: {waits.message}", "Warning")
        return None
