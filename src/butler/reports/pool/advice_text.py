"""Advice about a pool in sentences: how much is free and in which holes, what fits, and what would help. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.ipam.addresses import range_text
from butler.reports.ages import age
from butler.reports.pool.advice import NEVER_SEEN, ObstacleUse

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.reports.pool.advice import AddressObstacle, HoleOpening, PoolAdvice

SHOWN = 5
"""Of holes, requests and names, so many are named before the rest is counted."""


def says(advice: PoolAdvice, now: datetime) -> list[str]:
    """All of it; what a table of openings shows beside it is not repeated."""
    if advice.problem or advice.capacity is None:
        return [advice.problem]
    last = verdict(advice) if advice.openings else nothing_to_open(advice, now)
    return [free_text(advice), *fits_text(advice), *last]


def free_text(advice: PoolAdvice) -> str:
    """How much is free, and in which holes."""
    capacity, holes = advice.capacity, advice.holes
    assert capacity is not None
    if not holes:
        return f"all {capacity.total} addresses are taken."
    if len(holes) == 1:
        where = f"in one run ({range_text(holes[0], advice.family)})"
    else:
        sizes = _listed([f"{hole.size} ({range_text(hole, advice.family)})" for hole in holes])
        where = f"in {len(holes)} holes: {sizes}"
    return f"{capacity.available} of {capacity.total} addresses are free, {where}."


def fits_text(advice: PoolAdvice) -> list[str]:
    """The largest request that fits, and those that wait."""
    capacity = advice.capacity
    assert capacity is not None
    said = []
    largest, free = capacity.largest_free_block, capacity.available
    if largest and largest < free:
        more = f"{largest + 1} to {free}" if largest + 1 < free else f"{free}"
        said.append(f"The largest request that fits is {largest}; {more} would fail, though {free} are free.")
    elif largest:
        said.append(f"The largest request that fits is {largest}: everything that is free. It is not fragmented.")
    if advice.waiting:
        names = _listed([f"{name} (needs {count})" for name, count in advice.waiting])
        said.append(f"{len(advice.waiting)} {_plural('request', advice.waiting)} cannot be met: {names}.")
    return said


def names_of(blocks: Sequence[AddressObstacle]) -> str:
    return _listed([block.name for block in blocks])


def why(block: AddressObstacle, now: datetime) -> str:
    """What a block is, in a few words."""
    since = f" for {age(block.since, now)}" if block.since else ""
    if block.use is ObstacleUse.DRAINING:
        return f"being taken back{since}"
    if block.use is ObstacleUse.IDLE:
        return f"idle{since}"
    if block.use is ObstacleUse.OWNERLESS:
        return f"ownerless{since}: {block.note}"
    if block.use is ObstacleUse.RESERVED:
        return f"RESERVED{f' ({block.note})' if block.note else ''}"
    in_use = "may be IN USE" if block.note == NEVER_SEEN else "IN USE"
    return f"{in_use} by {block.tenant or 'another'}{f' ({block.note})' if block.note else ''}"


def verdict(advice: PoolAdvice) -> list[str]:
    """What to do about it, for the best that there is."""
    best = advice.openings[0]
    run = f"a run of {best.hole.size}{f', and let in {_listed(best.meets)}' if best.meets else ''}"
    if best.is_free:
        said = f"Without {names_of(best.blocks)} there would be {run}. It moves no live address that Butler knows of."
        return [f"{said} {_how(best)}"]
    unused = "Nothing that is unused stands in the way."
    if best.asks_for_reserved:
        said = f"{unused} Only to hand out what is reserved would open {run}: ask the administrator who reserved it."
        return [said]
    live = f"up to {best.live} live {'address' if best.live == 1 else 'addresses'}"
    said = f"{unused} {names_of(best.blocks)} would have to move first, with {live}, to open {run}"
    return [f"{said}: a larger window or another pool costs less."]


def _how(opening: HoleOpening) -> str:
    uses = {block.use for block in opening.blocks}
    ownerless = [block.name for block in opening.blocks if block.use is ObstacleUse.OWNERLESS]
    said = []
    if ObstacleUse.DRAINING in uses or ObstacleUse.IDLE in uses:
        said.append("Butler takes back what is idle by itself, after its grace time and as far as the tenant's own"
                    " size allows.")  # fmt: skip
    if ownerless:
        said.append(f"If it is not needed: butleradm allocation release {' '.join(ownerless)}")
    return " ".join(said)


def nothing_to_open(advice: PoolAdvice, now: datetime) -> list[str]:
    """What to say where nothing would open a longer run."""
    if advice.unused and len(advice.holes) == 1 and not advice.waiting:
        named = _listed(
            [f"{obstacle.name} ({obstacle.range.size}, {why(obstacle, now)})" for obstacle in advice.unused]
        )
        return [f"Unused: {named}."]
    if advice.unused:
        named = _listed(
            [f"{obstacle.name} ({obstacle.range.size}, {why(obstacle, now)})" for obstacle in advice.unused]
        )
        return [f"Unused, but opening nothing longer: {named}."]
    if len(advice.holes) > 1:
        return ["Nothing that could be taken away would open a longer run: add a window or another pool."]
    return []


def _listed(words: Sequence[str]) -> str:
    more = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _plural(word: str, of: Sequence[object]) -> str:
    return word if len(of) == 1 else f"{word}s"
