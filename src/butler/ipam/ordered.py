"""A set of integers that can say which member comes next, at a cost that does not grow with the set.

Members are bits in words of 256. Above the words of members stands a level of words that say which of those are not
empty, above it another, up to a single word at the top. Adding and removing touch one word, and go up only when a
word becomes filled or empty; finding the next member goes up as far as the gap is wide and down again. A pool of
2^24 addresses needs three levels. A sorted list has to move half of itself on every insertion, and a heap cannot be
asked for what lies next to a given number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_BITS = 8
_MASK = (1 << _BITS) - 1
_FLAGS = tuple(1 << place for place in range(_MASK + 1))


class OrderedIntegers:
    """A set of integers from 0 up to, but not including, a limit."""

    __slots__ = ("_levels", "_lowest")

    def __init__(self, members: Iterable[int], limit: int) -> None:
        """The members may come in any order."""
        level: dict[int, int] = {}
        for member in members:
            key = member >> _BITS
            level[key] = level.get(key, 0) | _FLAGS[member & _MASK]
        self._lowest = level
        self._levels = [level]
        while (limit - 1) >> (_BITS * len(self._levels)):
            above: dict[int, int] = {}
            for below in level:
                key = below >> _BITS
                above[key] = above.get(key, 0) | _FLAGS[below & _MASK]
            level = above
            self._levels.append(level)

    def add(self, member: int) -> None:
        """Take in an integer, which may be a member already."""
        for level in self._levels:
            place = member & _MASK
            member >>= _BITS
            word = level.get(member)
            if word is not None:
                level[member] = word | _FLAGS[place]
                return
            level[member] = _FLAGS[place]

    def remove(self, member: int) -> None:
        """Let go of an integer, which must be a member."""
        for level in self._levels:
            place = member & _MASK
            member >>= _BITS
            word = level[member] & ~_FLAGS[place]
            if word:
                level[member] = word
                return
            del level[member]

    def at_or_after(self, value: int) -> int | None:
        """The smallest member that is not below the value, or None."""
        word = self._lowest.get(value >> _BITS, 0) >> (value & _MASK)
        if word:
            return value + (word & -word).bit_length() - 1
        return self._beyond(value >> _BITS)

    def _beyond(self, key: int) -> int | None:
        """The smallest member in a word after this one of the lowest level."""
        levels = self._levels
        for height in range(1, len(levels)):
            word = levels[height].get(key >> _BITS, 0) >> (key & _MASK) >> 1
            if word:
                key += (word & -word).bit_length()
                for level in levels[height - 1 :: -1]:
                    word = level[key]
                    key = key << _BITS | ((word & -word).bit_length() - 1)
                return key
            key >>= _BITS
        return None
