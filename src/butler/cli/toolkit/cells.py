"""The cells of tables, on lists and on screens of one thing."""

from __future__ import annotations

from butler.api.printable import one_line

GAP = 3
"""Columns between two cells."""


def cell_text(value: object) -> str:
    """What stands in a cell; nothing to say is `-`."""
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return one_line(str(value))
