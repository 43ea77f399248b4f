"""One thing told on one screen: facts, and lists below titles. On a terminal, sentences are wrapped to its width.

A table that is too wide loses the ends of its cells, which is right for lists. Here the last column is a sentence that
somebody has to read, so it goes on in the next line. In a pipe nothing is wrapped: one line is one fact.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from butler.cli.frame.output import GAP, cell_text
from butler.cli.frame.terminal import is_terminal, painted, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NARROWEST_TEXT = 24
"""Below this many columns a sentence stands in a line of its own, below what it is about."""
INDENT = 2


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values below each other; pairs without a value are left out."""
    listed = [(name, cell_text(value)) for name, value in pairs if value not in (None, "")]
    size = max((len(name) for name, _ in listed), default=0) + 2
    return "\n".join(_hanging(f"{name + ':':<{size}} ", value) for name, value in listed)


def section(title: str, body: str) -> str:
    """A title in its own line, and what belongs to it, indented."""
    return f"{painted(title, bold=True)}\n{textwrap.indent(body, ' ' * INDENT)}"


def listed(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns whose last one is text that may be long, to stand below a title."""
    cells = [[cell_text(cell) for cell in row] for row in rows]
    every = [[title.upper() for title in titles], *cells]
    sizes = [max(len(row[index]) for row in every) for index in range(len(titles) - 1)]
    return "\n".join(_row(row, sizes) for row in every)


def sentence(text: str) -> str:
    """Text that may be longer than a line."""
    return _hanging("", text)


def _row(cells: Sequence[str], sizes: Sequence[int]) -> str:
    head = "".join(cell.ljust(size + GAP) for cell, size in zip(cells, sizes, strict=False))
    return _hanging(head, cells[-1])


def _hanging(head: str, text: str) -> str:
    """A sentence behind a head; what does not fit goes on below its beginning."""
    room = width() - INDENT - len(head)
    if not is_terminal() or len(text) <= room:
        return (head + text).rstrip()
    if room < NARROWEST_TEXT:
        inset = " " * (2 * INDENT)
        lines = _wrapped(text, width() - INDENT - len(inset))
        return "\n".join([head.rstrip(), *(inset + line for line in lines)])
    lines = _wrapped(text, room)
    return "\n".join([head + lines[0], *(" " * len(head) + line for line in lines[1:])])


def _wrapped(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, max(room, 8), break_on_hyphens=False) or [""]
