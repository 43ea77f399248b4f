"""A pool as rows of cells in true positions, with a legend. Pure: segments and a width in, text out.

A cell is one address, or as large a power of two of them as it takes to stay within `MOST_ROWS` rows; a row begins
at a multiple of its own length, and is labelled with its first address. Everything is said by signs; colour only
repeats it. Signs are ASCII where the terminal has no more.

A cell whose addresses are not all alike shows how much of it is held, in tenths of what could be. What should not be
(addresses held twice, or held although they are not handed out) is never averaged away: one such address is enough
to mark its cell.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from butler.cli.drawings.map_legend import FULL, OTHERS, PARTS, UNHELD, WRONG, legend
from butler.cli.toolkit.terminal import styled
from butler.ipam.addresses import address_text, range_cidr, range_text
from butler.reports.pool.segments import HELD, Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from butler.ipam.addresses import Family, Range
    from butler.reports.pool.segments import PoolSegments, Segment

MOST_ROWS = 32
GROUP = 8
"""Cells that stand together, with a space before the next ones."""
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ASCII = {Kind.FREE: ".", Kind.RESERVED: "#", Kind.OUTSIDE: "-", Kind.GRANTING: "+", Kind.DRAINING: "~"}
UNICODE = {**ASCII, Kind.FREE: "·", Kind.RESERVED: "▒"}
_PALETTE = ("green", "cyan", "yellow", "magenta", "blue", "bright_green", "bright_cyan", "bright_yellow")


class Grid(NamedTuple):
    """How the addresses are laid out."""

    cell: int
    """Addresses of a cell."""
    cells: int
    """Cells of a row."""
    first: int
    """The first address of the first row: at or before the first that is shown."""
    rows: int

    @property
    def row(self) -> int:
        return self.cell * self.cells


@dataclass(slots=True)
class _Content:
    """What lies in a cell, in addresses."""

    free: int = 0
    held: int = 0
    kinds: int = 0
    """How many different things, up to two: more makes no difference."""
    what: tuple[Kind, str] | None = None
    wrong: bool = False

    def add(self, segment: Segment, size: int, tenant: str) -> None:
        what = (segment.kind, tenant)
        if what != self.what:
            self.what, self.kinds = what, self.kinds + 1
        if segment.kind in HELD:
            self.held += size
        elif segment.kind is Kind.FREE:
            self.free += size
        self.wrong = self.wrong or is_wrong(segment)


def is_wrong(segment: Segment) -> bool:
    """Whether something is held that should not be: twice, or outside what is handed out."""
    return segment.stranded or segment.held_by > 1


def draw(shown: PoolSegments, width: int, *, unicode: bool = True, colour: bool = False) -> str:
    """The map of a pool, or of the part of it that `shown` was cut to."""
    assert shown.network is not None
    signs = UNICODE if unicode else ASCII
    letters = _letters(shown)
    grid = lay_out(shown.network, shown.family, width)
    drawn = [_sign(content, signs, letters) for content in _contents(shown, grid)]
    lines = [f"{_sizes(grid)}.", "", *_rows(shown.family, grid, drawn, width, letters, colour=colour), ""]
    for line in legend(shown, width, signs=signs, letters=letters, drawn=set(drawn)):
        sign = _styled(line.sign, line.sign, letters) if colour else line.sign
        lines.append(f"{sign}{' ' * (3 - len(line.sign))}  {line.text}".rstrip())
    return "\n".join(lines)


def headline(part: PoolSegments, whole: PoolSegments, width: int) -> str:
    """What is shown, and how much of it is held."""
    assert part.network is not None
    name = f"{whole.pool} ({whole.cidr})"
    if part.network != whole.network:
        name = f"{range_cidr(part.network, part.family) or range_text(part.network, part.family)} of {name}"
    stranded = sum(segment.size for segment in part.segments if segment.stranded)
    held, free = part.addresses(*HELD) - stranded, part.addresses(Kind.FREE)
    said = f"{held:,} of {held + free:,} addresses held, {free:,} free"
    if whole.problems:
        said = f"hands out nothing, {held:,} addresses held"
    elif held + free:
        said = f"{held:,} of {held + free:,} addresses held ({held * 100 // (held + free)}%), {free:,} free"
    more = f"; {stranded:,} held that are not handed out" if stranded else ""
    return textwrap.fill(f"{name}: {said}{more}", width, break_on_hyphens=False)


def lay_out(network: Range, family: Family, width: int) -> Grid:
    """The longest rows that fit, and the smallest cells that keep all within `MOST_ROWS`."""
    cells = 1 << (max(GROUP, min(width, network.size)) - 1).bit_length()
    while True:
        grid = _grid(network, cells)
        if cells <= GROUP or _label_width(grid, family) + 2 + cells <= width:
            return grid
        cells //= 2


def _grid(network: Range, cells: int) -> Grid:
    cell = 1
    while True:
        row = cell * cells
        first = network.first - network.first % row
        rows = (network.last - first) // row + 1
        if rows <= MOST_ROWS:
            return Grid(cell, cells, first, rows)
        cell *= 2


def _label_width(grid: Grid, family: Family) -> int:
    return max(len(address_text(grid.first + row * grid.row, family)) for row in range(grid.rows))


def _sizes(grid: Grid) -> str:
    cell = "1 address" if grid.cell == 1 else f"{grid.cell:,} addresses"
    return f"Each cell is {cell}" if grid.rows == 1 else f"Each cell is {cell}, each row {grid.row:,}"


# Cells.


def _letters(shown: PoolSegments) -> dict[str, str]:
    """A letter for each of the largest tenants, by how much they hold of what is shown."""
    held: Counter[str] = Counter()
    for segment in shown.segments:
        if segment.kind is Kind.ALLOCATED:
            held[segment.holders[0].tenant] += segment.size
    ranked = sorted(held, key=lambda tenant: (-held[tenant], tenant))
    return dict(zip(ranked, LETTERS, strict=False))


def _contents(shown: PoolSegments, grid: Grid) -> list[_Content]:
    """What lies in each cell; one pass over the segments."""
    contents = [_Content() for _ in range(grid.rows * grid.cells)]
    for segment in shown.segments:
        tenant = segment.holders[0].tenant if segment.holders else ""
        at = segment.first
        while at <= segment.last:
            index = (at - grid.first) // grid.cell
            end = min(segment.last, grid.first + (index + 1) * grid.cell - 1)
            contents[index].add(segment, end - at + 1, tenant)
            at = end + 1
    return contents


def _sign(content: _Content, signs: Mapping[Kind, str], letters: Mapping[str, str]) -> str:
    if content.what is None:
        return " "
    if content.wrong:
        return WRONG
    if content.kinds == 1:
        kind, tenant = content.what
        return letters.get(tenant, OTHERS) if kind is Kind.ALLOCATED else signs[kind]
    if not content.held:
        return UNHELD
    if not content.free:
        return FULL
    return PARTS[content.held * 10 // (content.held + content.free)]


# Lines.


def _rows(
    family: Family, grid: Grid, drawn: Sequence[str], width: int, letters: Mapping[str, str], *, colour: bool
) -> Iterator[str]:
    label = _label_width(grid, family)
    grouped = label + 2 + grid.cells + (grid.cells - 1) // GROUP <= width
    ruler = _ruler(grid, GROUP if grouped else 2 * GROUP, grouped=grouped)
    if ruler:
        yield " " * (label + 2) + ruler
    for row in range(grid.rows):
        cells = drawn[row * grid.cells : (row + 1) * grid.cells]
        groups = [cells[at : at + GROUP] for at in range(0, len(cells), GROUP)]
        text = (" " if grouped else "").join(_painted(group, letters, colour=colour) for group in groups)
        yield f"{address_text(grid.first + row * grid.row, family):<{label}}  {text}".rstrip()


def _ruler(grid: Grid, step: int, *, grouped: bool) -> str:
    """How far from the row's first address the cells below are; empty where there is no room to say it."""
    if grid.cells <= step:
        return ""
    room = step + (1 if grouped else 0)
    texts = [f"+{at * grid.cell}" for at in range(0, grid.cells, step)]
    if max(map(len, texts)) >= room:
        return ""
    return "".join(text.ljust(room) for text in texts).rstrip()


def _painted(cells: Sequence[str], letters: Mapping[str, str], *, colour: bool) -> str:
    if not colour:
        return "".join(cells)
    return "".join(_styled(sign * len(list(run)), sign, letters) for sign, run in groupby(cells))


def _styled(text: str, sign: str, letters: Mapping[str, str]) -> str:
    if sign == WRONG:
        return styled(text, fg="red", bold=True)
    if sign in letters.values():
        return styled(text, fg=_PALETTE[LETTERS.index(sign) % len(_PALETTE)])
    if sign in (ASCII[Kind.RESERVED], UNICODE[Kind.RESERVED], ASCII[Kind.OUTSIDE]):
        return styled(text, dim=True)
    return text
