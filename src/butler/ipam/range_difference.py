"""Ranges taken from ranges: the one place where it is worked out what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.ipam.addresses import Range

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def without(whole: Range, parts: Iterable[Range]) -> list[Range]:
    """What of a range is in none of the parts, which may overlap and reach outside; in order of address."""
    return [Range(first, last) for first, last in gaps((whole,), sorted(parts))]


def gaps(pieces: Iterable[tuple[int, int]], taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """What the taken ranges leave of the pieces: all three are in order of their first address.

    Pieces do not overlap; taken ranges may, and may reach outside. Plain pairs, because a large pool has many.
    """
    found: list[tuple[int, int]] = []
    index = 0
    for piece_first, piece_last in pieces:
        free_from = piece_first
        while index < len(taken):
            first, last = taken[index]
            if first > piece_last:
                break
            if last < first:
                raise ValueError(f"a range cannot end ({last}) before it begins ({first})")
            if first > free_from:
                found.append((free_from, first - 1))
            if last >= free_from:
                free_from = last + 1
            if free_from > piece_last:
                break  # it may reach into the next piece, too
            index += 1
        if free_from <= piece_last:
            found.append((free_from, piece_last))
    return found
