"""What the deletion of a load-balancer range waits for, in the words of its condition Deleting. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType, DeletionReason
from butler.ipam.addresses import Family, range_text
from butler.rules.loadbalancer.usage import users_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.meta import Condition
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.usage import HeldBlock

MOST_NAMED: Final = 5
LONGEST: Final = 1024


class Waits(NamedTuple):
    """What a deletion waits for, as the condition says it."""

    reason: DeletionReason
    message: str


DRAINING: Final = Waits(
    DeletionReason.DRAINING, "no Service uses its addresses; they are being taken back from MetalLB on the tenant"
)


def waits_for(block: HeldBlock, services: Iterable[Balancer]) -> Waits:
    """What the deletion of a block's allocation waits for. Pure."""
    users = users_of(block, services)
    if not users:
        return DRAINING
    message = f"it stays until no Service of the tenant has or asks for one of its addresses: {in_words(users)}"
    return Waits(DeletionReason.IN_USE, message)


def unknown(why: str) -> Waits:
    """It is unknown whether a Service uses it."""
    return Waits(DeletionReason.UNKNOWN, f"whether a Service uses its addresses cannot be told, so it stays: {why}")


def in_words(users: Sequence[Balancer]) -> str:
    """`shop/web (10.40.0.20), shop/mail (asks for 10.40.0.21)`."""
    named = [
        f"{user.namespace}/{user.name} ({', '.join(user.addresses) or 'asks for ' + ', '.join(user.asks)})"
        for user in sorted(users)[:MOST_NAMED]
    ]
    more = [f"{len(users) - MOST_NAMED} more"] if len(users) > MOST_NAMED else []
    return ", ".join([*named, *more])


def named(block: HeldBlock) -> str:
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
