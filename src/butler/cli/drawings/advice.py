"""Advice about a pool as text: what is free and in which holes, and what would open a longer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.cli.toolkit.output import table
from butler.cli.toolkit.screen import fits
from butler.cli.toolkit.terminal import wrapped
from butler.ipam.addresses import range_text
from butler.reports.pool.advice_text import fits_text, free_text, names_of, nothing_to_open, verdict, why

if TYPE_CHECKING:
    from datetime import datetime

    from butler.reports.pool.advice import PoolAdvice


def advice_text(advice: PoolAdvice, now: datetime) -> str:
    """Everything about one pool."""
    head = f"{advice.pool} ({advice.cidr})"
    if advice.problem or advice.capacity is None:
        return wrapped(f"{head}: {advice.problem}", "  ")
    lines = [wrapped(f"{head}: {free_text(advice)}", "  "), *(wrapped(line, "  ") for line in fits_text(advice))]
    if advice.openings:
        lines += ["", _openings(advice, now), "", *(wrapped(line, "  ") for line in verdict(advice))]
    else:
        lines += [wrapped(line, "  ") for line in nothing_to_open(advice, now)]
    return "\n".join(lines)


def _openings(advice: PoolAdvice, now: datetime) -> str:
    """A table; where a terminal is too narrow for it, sentences."""
    titles = ["Without", "Live moved", "Longest run then", "Gain", "Which is"]
    rows = [
        [
            names_of(opening.blocks),
            "0" if not opening.live else f"up to {opening.live}",
            f"{opening.hole.size} ({range_text(opening.hole, advice.family)})",
            f"+{opening.gain}",
            "; ".join(dict.fromkeys(why(block, now) for block in opening.blocks)),
        ]
        for opening in advice.openings
    ]
    if fits([titles, *rows]):
        return table(titles, rows)
    return "\n".join(
        wrapped(f"- Without {name}, a run of {run}, {gain}; live addresses moved: {live}. That is {which}.", "  ")
        for name, live, run, gain, which in rows
    )
