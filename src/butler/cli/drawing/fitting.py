"""Whether something has room where it is to be shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.cli.frame.output import GAP
from butler.cli.frame.terminal import is_terminal, width

if TYPE_CHECKING:
    from collections.abc import Sequence


def fits(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows, titles included, stand side by side with nothing cut; a pipe is as wide as it takes."""
    widest = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return not is_terminal() or sum(widest) + GAP * (len(widest) - 1) <= width()
