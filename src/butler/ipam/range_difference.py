"""Ranges taken from ranges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.ipam.addresses import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def without(whole: Range, parts: Iterable[Range]) -> Iterator[Range]:
    """What of a range is in none of the parts, which may overlap and reach outside; in order of address."""
    at = whole.first
    for part in sorted(parts):
        if part.first > whole.last:
            break
        if part.first > at:
            yield Range(at, part.first - 1)
        at = max(at, part.last + 1)
    if at <= whole.last:
        yield Range(at, whole.last)
