"""Ranges that may overlap, each with a key: which of them touch given addresses?

Ranges stand apart by their length, in powers of two, and within a length in order of their first address. One that
touches the wanted addresses begins at most its own length before them, so of each length only a short stretch has
to be looked at: what is found, and at most two beside it where ranges of one length do not overlap each other, as
networks and holdings never should. So a question costs a few binary searches and the answer, whatever else there is;
overlaps, which people can write by hand, cost no more than their number and never hide anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from butler.ipam.addresses import Range
from butler.ipam.ordered import Ordered

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

K = TypeVar("K", bound="SupportsRichComparison")


class RangeIndex(Generic[K]):
    """Keys by the addresses that they stand for. A key may have several ranges, each once."""

    __slots__ = ("_by_length",)

    def __init__(self) -> None:
        self._by_length: dict[int, Ordered[tuple[int, int, Any]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_length)

    def add(self, addresses: Range, key: K) -> None:
        """Take in a range, which this key must not have yet."""
        entry = (addresses.first, addresses.last, key)
        known = self._by_length.get(addresses.size.bit_length())
        if known is None:
            self._by_length[addresses.size.bit_length()] = Ordered([entry])
        else:
            known.add(entry)

    def remove(self, addresses: Range, key: K) -> None:
        """Forget a range, which this key must have."""
        length = addresses.size.bit_length()
        known = self._by_length[length]
        known.remove((addresses.first, addresses.last, key))
        if not known:
            del self._by_length[length]

    def touching(self, wanted: Range) -> list[tuple[Range, K]]:
        """The ranges that share an address with this one, in order, with their keys."""
        found = [
            (Range(first, last), key)
            for length, ranges in self._by_length.items()
            for first, last, key in ranges.between((wanted.first - (1 << length) + 2,), (wanted.last + 1,))
            if last >= wanted.first
        ]
        return sorted(found)
