"""Which addresses are not needed any more. Pure.

A growth allocation goes back when all of its addresses have been unused for the grace time. The moment at which it
fell idle is stored on it, so that a restart does not begin the wait anew; but only when it has been idle for a moment,
because Services that come and go by the second would otherwise cost the API server a write each time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.usage import HeldBlock, Usage

WORTH_STORING: Final = timedelta(seconds=5)
"""How long a block has to be idle before that is written down; less where the grace time is short."""


@dataclass(frozen=True, slots=True)
class IdleMark:
    """What an allocation should say about being idle, and says otherwise."""

    block: HeldBlock
    since: datetime | None


def idle_marks(
    found: Usage, idle_since: Mapping[str, datetime], now: datetime, grace: timedelta
) -> tuple[IdleMark, ...]:
    """What to write down; `idle_since` says, by UID, since when a block has been seen to be idle."""
    worth = min(WORTH_STORING, grace / 4)
    marks = []
    for block in found.blocks:
        stored = block.allocation.status.idle_since
        if not block.may_go:
            continue
        if block.claimed and stored is not None:
            marks.append(IdleMark(block, None))
        elif not block.claimed and stored is None and now - idle_since.get(block.uid, now) >= worth:
            marks.append(IdleMark(block, idle_since[block.uid]))
    return tuple(marks)


def due(found: Usage, policy: LoadBalancerPolicy, now: datetime, grace: timedelta) -> tuple[HeldBlock, ...]:
    """The blocks that can go now: those that were deleted and that no Service uses, else those idle for long enough."""
    if found.draining or found.is_held_up:
        return ()
    return tuple(block for block in found.going if not block.claimed) or _idle(found, policy, now, grace)


def _idle(found: Usage, policy: LoadBalancerPolicy, now: datetime, grace: timedelta) -> tuple[HeldBlock, ...]:
    """Those that were idle for long enough, and are not needed to serve a Service, nor to hold what was asked for."""
    if not policy.shrinks or found.demand or found.requests:
        return ()
    going, left = [], sum(block.range.size for block in found.blocks if not block.is_going)
    for block in found.blocks:
        since = block.allocation.status.idle_since
        if not block.may_go or block.claimed or since is None or now - since < grace:
            continue
        if left - block.range.size >= policy.least:
            going.append(block)
            left -= block.range.size
    return tuple(going)


def still_idle(found: Usage, before: Mapping[str, datetime], now: datetime) -> dict[str, datetime]:
    """Since when each block has been seen to be idle, by UID, after another look."""
    return {block.uid: before.get(block.uid, now) for block in found.blocks if not block.claimed}


def when_idle_changes(
    found: Usage, idle_since: Mapping[str, datetime], now: datetime, grace: timedelta
) -> datetime | None:
    """When the clock alone will change something about idle blocks; None: it will not."""
    worth, moments = min(WORTH_STORING, grace / 4), []
    for block in found.blocks:
        if not block.may_go or block.claimed:
            continue
        stored = block.allocation.status.idle_since
        if stored is None:
            moments.append(idle_since.get(block.uid, now) + worth)
        elif stored + grace > now:
            moments.append(stored + grace)
    return max(now, min(moments)) if moments else None
