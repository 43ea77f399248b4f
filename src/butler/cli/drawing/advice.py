"""Advice about a pool as text: what is free and in which holes, and what would open a longer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.cli.drawing.fitting import fits
from butler.cli.frame.output import age, table
from butler.cli.frame.terminal import wrapped
from butler.ipam.addresses import range_text
from butler.views.advice import Use

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.views.advice import Advice, Obstacle, Opening

SHOWN = 5
"""Of holes, requests and names, so many are named before the rest is counted."""


def advice_text(advice: Advice, now: datetime) -> str:
    """Everything about one pool."""
    head = f"{advice.pool} ({advice.cidr})"
    if advice.problem or advice.capacity is None:
        return wrapped(f"{head}: {advice.problem}", "  ")
    lines = [wrapped(f"{head}: {_free(advice)}", "  "), *(wrapped(each, "  ") for each in _fits(advice))]
    if advice.openings:
        lines += ["", _openings(advice, now), "", *(wrapped(each, "  ") for each in _verdict(advice))]
    else:
        lines += [wrapped(each, "  ") for each in _nothing_to_open(advice, now)]
    return "\n".join(lines)


def _free(advice: Advice) -> str:
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


def _fits(advice: Advice) -> list[str]:
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


def _openings(advice: Advice, now: datetime) -> str:
    """A table; where a terminal is too narrow for it, sentences."""
    titles = ["Without", "Live moved", "Longest run then", "Gain", "Which is"]
    rows = [
        [
            _names(opening.blocks),
            "0" if not opening.live else f"up to {opening.live}",
            f"{opening.hole.size} ({range_text(opening.hole, advice.family)})",
            f"+{opening.gain}",
            "; ".join(dict.fromkeys(_why(block, now) for block in opening.blocks)),
        ]
        for opening in advice.openings
    ]
    if fits([titles, *rows]):
        return table(titles, rows)
    return "\n".join(
        wrapped(f"- Without {name}, a run of {run}, {gain}; live addresses moved: {live}. That is {which}.", "  ")
        for name, live, run, gain, which in rows
    )


def _names(blocks: Sequence[Obstacle]) -> str:
    return _listed([block.name for block in blocks])


def _why(block: Obstacle, now: datetime) -> str:
    since = f" for {age(block.since, now)}" if block.since else ""
    if block.use is Use.DRAINING:
        return f"being taken back{since}"
    if block.use is Use.IDLE:
        return f"idle{since}"
    if block.use is Use.OWNERLESS:
        return f"ownerless{since}: {block.note}"
    if block.use is Use.RESERVED:
        return f"RESERVED{f' ({block.note})' if block.note else ''}"
    return f"IN USE by {block.tenant or 'somebody'}{f' ({block.note})' if block.note else ''}"


def _verdict(advice: Advice) -> list[str]:
    """What to do about it, for the best that there is."""
    best = advice.openings[0]
    run = f"a run of {best.hole.size}{f', and let in {_listed(best.meets)}' if best.meets else ''}"
    if best.is_free:
        said = f"Without {_names(best.blocks)} there would be {run}. It moves no live address that Butler knows of."
        return [f"{said} {_how(best)}"]
    unused = "Nothing that is unused stands in the way."
    if best.asks_for_reserved:
        said = f"{unused} Only to hand out what is reserved would open {run}: ask whoever reserved it."
        return [said]
    live = f"up to {best.live} live {'address' if best.live == 1 else 'addresses'}"
    said = f"{unused} {_names(best.blocks)} would have to move first, with {live}, to open {run}"
    return [f"{said}: a larger window or another pool costs less."]


def _how(opening: Opening) -> str:
    uses = {block.use for block in opening.blocks}
    ownerless = [block.name for block in opening.blocks if block.use is Use.OWNERLESS]
    said = []
    if Use.DRAINING in uses or Use.IDLE in uses:
        said.append("Butler takes back what is idle by itself, after its grace time and as far as the tenant's own"
                    " size allows.")  # fmt: skip
    if ownerless:
        said.append(f"If nobody needs it: butleradm allocation release {' '.join(ownerless)}")
    return " ".join(said)


def _nothing_to_open(advice: Advice, now: datetime) -> list[str]:
    if advice.unused:
        named = _listed([f"{each.name} ({each.range.size}, {_why(each, now)})" for each in advice.unused])
        return [f"Unused, but opening nothing longer: {named}."]
    if len(advice.holes) > 1:
        return ["Nothing that could be taken away would open a longer run: add a window or another pool."]
    return []


def _listed(words: Sequence[str]) -> str:
    more = len(words) - SHOWN
    return ", ".join(words[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _plural(word: str, of: Sequence[object]) -> str:
    return word if len(of) == 1 else f"{word}s"
