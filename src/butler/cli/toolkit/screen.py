"""One thing told on one screen: facts, and lists below titles. On a terminal, sentences are wrapped to its width.

A table that is too wide loses the ends of its cells, which is right for lists. Here the last column is a sentence that
the user has to read, so it goes on in the next line. In a pipe nothing is wrapped: one line is one fact.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from butler.api.printable import one_line
from butler.cli.toolkit.cells import GAP, cell_text
from butler.cli.toolkit.terminal import is_terminal, painted, width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NARROWEST_TEXT = 24
"""Below this many columns a sentence stands in a line of its own, below what it is about."""
INDENT = 2
NOTHING = cell_text(None)


def facts(pairs: Iterable[tuple[str, object]], inset: int = INDENT) -> str:
    """Names and values below each other; pairs without a value are left out. `inset`: how far it will be indented."""
    listed = [(name, cell_text(value)) for name, value in pairs if value not in (None, "")]
    size = max((len(name) for name, _ in listed), default=0) + 2
    return "\n".join(_hanging(f"{name + ':':<{size}} ", value, inset) for name, value in listed)


def section(title: str, body: str) -> str:
    """A title in its own line, and what belongs to it, indented."""
    return f"{painted(title, bold=True)}\n{textwrap.indent(body, ' ' * INDENT)}"


def listed(titles: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Columns whose last one is text that may be long, to stand below a title.

    Where a terminal has no room for that text beside the others, it stands below them, where it needs no title; where
    it has no room for the others either, every cell gets a line of its own.
    """
    cells = [[cell_text(cell) for cell in row] for row in rows]
    head = [title.upper() for title in titles]
    sizes = [max(len(row[index]) for row in [head, *cells]) for index in range(len(titles) - 1)]
    taken, longest = sum(sizes) + GAP * len(sizes), max(len(row[-1]) for row in [head, *cells])
    room = width() - INDENT - taken
    if not is_terminal() or longest <= room or room >= NARROWEST_TEXT:
        return "\n".join(_hanging(_head(row, sizes), row[-1]) for row in [head, *cells])
    if taken - GAP <= width() - INDENT:
        return "\n".join([_head(head, sizes).rstrip(), *(_below(_head(row, sizes), row[-1]) for row in cells)])
    return cards(titles, cells, INDENT)


def cards(titles: Sequence[str], rows: Iterable[Sequence[str]], inset: int = 0) -> str:
    """Each row as lines: the first cell that names it, the others below; what has nothing to say is left out."""
    words = [title if title[:1].isupper() else title.capitalize() for title in titles]
    return "\n".join(_card(words, row, inset) for row in rows)


def sentence(text: str) -> str:
    """Text that may be longer than a line."""
    return _hanging("", text)


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows, titles included, stand side by side with nothing cut; a pipe is as wide as it takes."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return not is_terminal() or sum(widest) + GAP * (len(widest) - 1) <= width()


def _head(cells: Sequence[str], sizes: Sequence[int]) -> str:
    return "".join(cell.ljust(size + GAP) for cell, size in zip(cells, sizes, strict=False))


def _hanging(head: str, text: str, inset: int = INDENT) -> str:
    """A sentence behind a head; what does not fit goes on below its beginning."""
    text = one_line(text)
    room = width() - inset - len(head)
    if not is_terminal() or len(text) <= room:
        return (head + text).rstrip()
    if head and (room < NARROWEST_TEXT or max(map(len, text.split()), default=0) > room):
        return _below(head, text, inset)
    lines = _wrapped(text, room)
    return "\n".join([head + lines[0], *(" " * len(head) + line for line in lines[1:])])


def _below(head: str, text: str, inset: int = INDENT) -> str:
    """A head, and a sentence in the lines below it."""
    space = " " * (2 * INDENT)
    lines = _wrapped(text, width() - inset - len(space)) if text != NOTHING else []
    return "\n".join([head.rstrip(), *(space + line for line in lines)])


def _card(titles: Sequence[str], cells: Sequence[str], inset: int) -> str:
    rest = [(title, cell) for title, cell in zip(titles[1:], cells[1:], strict=True) if cell not in ("", NOTHING)]
    told = textwrap.indent(facts(rest, inset + INDENT), " " * INDENT)
    named = f"{titles[0]}: {cells[0]}" if titles[0] else cells[0]
    return "\n".join(filter(None, [named, told]))


def _wrapped(text: str, room: int) -> list[str]:
    """In lines of so many columns; a name that is longer stays in one piece, so that it can be copied."""
    return textwrap.wrap(text, max(room, 8), break_on_hyphens=False, break_long_words=False) or [""]
