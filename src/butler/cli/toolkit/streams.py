"""The one exit of both programs: what is printed, by whatever command or library, leaves through these streams.

Nothing that steers a terminal gets through, no matter where the text comes from: it is shown as `\\x1b`. What the
program itself has to say to a terminal, colours and the return of a progress line, it marks with `own`. The mark is
another one in every run and is never printed, so text of others cannot have it.
"""

from __future__ import annotations

import codecs
import os
import sys
from io import TextIOWrapper
from typing import Any

from butler.api.printable import visible

_FIRST, _LAST = 0xF0000, 0xFFFFD
"""Characters for private use: no text has them by chance."""
_mark = ""


def own(sequence: str) -> str:
    """A control sequence of the program's own; it begins with the control character."""
    return _mark + sequence


class CleanStream(TextIOWrapper):
    """Standard output or error, cleaned."""

    declared: str
    """The encoding that the terminal asked for."""

    def write(self, text: str, /) -> int:
        super().write(cleaned(text, _mark))
        return len(text)


def cleaned(text: str, mark: str) -> str:
    """Text without what a terminal would obey, but for what has the mark. Pure."""
    if not mark or mark not in text:
        return visible(text)
    first, *marked = text.split(mark)
    return visible(first) + "".join(part[:1] + visible(part[1:]) for part in marked)


def install() -> None:
    """Clean what is printed from now on; streams that are not plain ones, such as in tests, stay as they are."""
    global _mark  # noqa: PLW0603
    if type(sys.stdout) is not TextIOWrapper or type(sys.stderr) is not TextIOWrapper:
        return
    numbers = os.urandom(12)
    _mark = "".join(
        chr(_FIRST + int.from_bytes(numbers[at : at + 4], "big") % (_LAST - _FIRST)) for at in range(0, 12, 4)
    )
    sys.stdout, sys.stderr = _clean(sys.stdout), _clean(sys.stderr)


def _clean(stream: TextIOWrapper) -> CleanStream:
    stream.flush()
    is_ascii = codecs.lookup(stream.encoding).name == "ascii"
    made = CleanStream(
        stream.buffer,
        # For ASCII click would open a stream of its own, with UTF-8, past this one.
        encoding="utf-8" if is_ascii else stream.encoding,
        errors="replace",  # a terminal without UTF-8 shows ? for what it does not have
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    made.declared = stream.encoding
    return made


def encoding_of(stream: Any) -> str:
    """The encoding that the terminal asked for."""
    return getattr(stream, "declared", None) or stream.encoding or ""
