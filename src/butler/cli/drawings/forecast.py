"""A forecast as text: a line for each tier and block size, with its band on an axis of days, and what it rests on.

On the axis `[` and `]` are the ends of the band and `|` its middle; `>` stands where it goes on beyond the axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.cli.toolkit.cells import GAP
from butler.cli.toolkit.output import table
from butler.cli.toolkit.terminal import is_terminal, width, wrapped
from butler.ipam.capacity import THRESHOLDS
from butler.reports.forecast.forecast import BAND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.reports.forecast.forecast import ForecastMark, PoolForecast

NARROW = 12
WIDEST = 50
ENDS = (7, 14, 30, 60, 90, 180, 365)
"""Days at which an axis may end."""


def forecast_text(forecast: PoolForecast) -> str:
    """Everything about one pool."""
    capacity = forecast.capacity
    if capacity is None:
        return wrapped(f"{forecast.pool} ({forecast.cidr}): {forecast.problem}", "  ")
    head = (
        f"{forecast.pool} ({forecast.cidr}): {capacity.percent}% of {capacity.total} addresses are allocated;"
        f" the longest free run is {capacity.largest_free_block}."
    )
    lines = [wrapped(head, "  ")]
    if forecast.problem:
        lines += [wrapped(f"{forecast.problem[0].upper()}{forecast.problem[1:]}.", "  ")]
        lines += [wrapped(f"What is so already: {', '.join(map(_what, forecast.marks))}.")] if forecast.marks else []
        return "\n".join(lines)
    return "\n".join([*lines, "", _table(forecast), "", *(wrapped(line, "  ") for line in _basis(forecast))])


def _table(forecast: PoolForecast) -> str:
    cells = [[_what(mark), _band(mark, forecast.horizon), _middle(mark, forecast.horizon)] for mark in forecast.marks]
    end = _axis_end(forecast.marks, forecast.horizon)
    titles = ["Event", f"Days ({BAND}% band)", "Middle"]
    taken = sum(max(len(row[place]) for row in [titles, *cells]) + GAP for place in range(3))
    room = min(WIDEST, (width() if is_terminal() else 100) - taken)
    if room < NARROW:
        return table(titles, cells)
    axis = f"0{f'{end:.0f} days'.rjust(room - 1)}"
    return table(
        [*titles, axis], [[*row, _drawn(mark, end, room)] for row, mark in zip(cells, forecast.marks, strict=True)]
    )


def _what(mark: ForecastMark) -> str:
    if mark.tier is not None:
        return f"{THRESHOLDS[mark.tier]}% allocated"
    return f"no room for {mark.size}"


def _band(mark: ForecastMark, horizon: float) -> str:
    if mark.is_now:
        return "now"
    if mark.low is None:
        return f"more than {horizon:.0f}"
    if mark.high is None:
        return f"{_number(mark.low)} or more"
    low, high = _number(mark.low), _number(mark.high)
    return low if low == high else f"{low} to {high}"


def _middle(mark: ForecastMark, horizon: float) -> str:
    if mark.is_now:
        return "now"
    return f">{horizon:.0f}" if mark.median is None else _number(mark.median)


def _number(days: float) -> str:
    return f"{days:.0f}" if days >= 10 or not days else f"{days:.1f}"


def _axis_end(marks: Sequence[ForecastMark], horizon: float) -> float:
    """Far enough for every band that ends, and for the beginning of those that do not."""
    needed = [seconds for mark in marks for seconds in (mark.low, mark.median, mark.high) if seconds is not None]
    farthest = max(needed, default=horizon)
    return float(min((end for end in ENDS if end >= farthest), default=horizon))


def _drawn(mark: ForecastMark, end: float, room: int) -> str:
    line = [" "] * room

    def place(days: float) -> int:
        return min(room - 1, int(days / end * (room - 1)))

    if mark.low is None or mark.low > end:
        line[-1] = ">"
        return "".join(line)
    first = place(mark.low)
    last = place(mark.high) if mark.high is not None else room - 1
    line[first : last + 1] = "=" * (last - first + 1)
    line[first] = "["
    line[last] = "]" if mark.high is not None else ">"
    if mark.median is not None:
        line[place(mark.median)] = "|"
    return "".join(line)


def _basis(forecast: PoolForecast) -> list[str]:
    record, net, leaving = forecast.record, forecast.per_day, forecast.leaving
    assert record is not None
    assert net is not None
    assert leaving is not None
    addresses = sum(sum(arrival.sizes) for arrival in record.arrivals)
    window = f"{record.release_days * 24:.0f} h" if record.release_days < 3 else f"{record.release_days:.0f} days"
    left = f"{record.left} left" if record.left else "no tenant left"
    seen = (
        f"It rests on {len(record.arrivals)} arrivals with {addresses} addresses in {record.days:.0f} days (blocks that"
        f" one tenant was granted within an hour are one arrival), and on the last {window}, in which {left}."
    )
    guessed = (
        "Older releases are no longer on record: from the ages of what is left,"
        f" {leaving[0]:.1%} to {leaving[1]:.1%} of all arrivals leave in a day."
        f" That makes {net[0]:.1f} to {net[2]:.1f} addresses more each day at present."
    )
    played = (
        f"{forecast.futures} futures were played through; {BAND} of 100 lie within the band, if things go on as they"
        " were. What people intend is not on record."
    )
    said = [seen, guessed, played]
    if record.pinned:
        blocks = f"{record.pinned} pinned {'block is' if record.pinned == 1 else 'blocks are'}"
        said.insert(1, f"{blocks} not taken for demand.")
    return said
