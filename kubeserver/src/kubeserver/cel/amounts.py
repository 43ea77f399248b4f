"""Arithmetic of estimates: whole numbers that stop at the largest of 64 bits instead of running over.

A size is known within bounds only; a cost is an upper bound. Rounding and the places where Kubernetes does run over
are as there, because an estimate that differs by one may decide over a definition.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = 2**64 - 1
_CHARACTER: Final = 0.1  # what it costs to go past one character
_PATTERN_CHARACTER: Final = 0.25  # how much dearer each character of a pattern makes a character of the text


class Size(NamedTuple):
    """How many elements or characters a value has, at least and at most."""

    low: int
    high: int

    def __or__(self, other: Size) -> Size:
        return Size(min(self.low, other.low), max(self.high, other.high))

    def plus(self, other: Size) -> Size:
        return Size(plus(self.low, other.low), plus(self.high, other.high))

    def times(self, other: Size) -> Size:
        return Size(times(self.low, other.low), times(self.high, other.high))


UNKNOWN: Final = Size(0, MOST)


def exactly(amount: int) -> Size:
    return Size(amount, amount)


def plus(*amounts: int) -> int:
    return min(sum(amounts), MOST)


def times(one: int, other: int) -> int:
    return min(one * other, MOST)


def scaled(amount: int, factor: float) -> int:
    """An amount times a factor, rounded up."""
    product = float(amount) * factor
    return MOST if product >= 2.0**64 else min(math.ceil(product), MOST)


def scanning(length: int) -> int:
    """The cost of going through a text once."""
    return scaled(length, _CHARACTER)


def matching(text: int, pattern: int) -> int:
    """The cost of holding a text against a pattern, by their lengths."""
    return times(scanning(plus(text, 1)), scaled(pattern, _PATTERN_CHARACTER))


def wrapped(amount: int) -> int:
    """What is left of an amount in 64 bits, where Kubernetes does not look whether it fits."""
    return amount & MOST
