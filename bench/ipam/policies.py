"""Ways to choose a place for a range, for comparison: ours is best fit, the others are here.

First fit takes the lowest hole that is long enough, next fit the first such after the place of the last grant, both
from the hole's start. A buddy system rounds every request up to a power of two and keeps blocks aligned, which is
what handing out CIDR blocks amounts to. All share one form: `place` a length and get the first address, `free` it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Protocol

from butler.ipam.addresses import Range
from butler.ipam.free_space import FreeSpace


class Policy(Protocol):
    """Chooses places in a pool that begins at 0 and whose size is a power of two."""

    name: str

    def __init__(self, size: int) -> None: ...

    def place(self, length: int) -> int | None:
        """The first address of a range that is now taken, or None."""

    def free(self, first: int, length: int) -> None:
        """Give back what was placed."""

    def footprint(self, length: int) -> int:
        """How many addresses a request really takes."""


class BestFit:
    """Ours: the engine's own free space."""

    name = "best fit (Butler)"

    def __init__(self, size: int) -> None:
        self._space = FreeSpace([Range(0, size - 1)])

    def place(self, length: int) -> int | None:
        found = self._space.best_fit(length)
        if found is None:
            return None
        self._space.take(found)
        return found.first

    def free(self, first: int, length: int) -> None:
        self._space.give(Range(first, first + length - 1))

    def footprint(self, length: int) -> int:
        return length


class FirstFit:
    """A tree over all addresses whose nodes know the longest hole that begins below them."""

    name = "first fit"

    def __init__(self, size: int) -> None:
        self._size = size
        self._longest = [0] * (2 * size)
        self._lasts: dict[int, int] = {}
        self._firsts: dict[int, int] = {}
        self._add(0, size - 1)

    def place(self, length: int) -> int | None:
        if self._longest[1] < length:
            return None
        return self._take(self._below(1, length), length)

    def free(self, first: int, length: int) -> None:
        last = first + length - 1
        after = self._lasts.get(last + 1)
        if after is not None:
            self._drop(last + 1, after)
            last = after
        before = self._firsts.get(first - 1)
        if before is not None:
            self._drop(before, first - 1)
            first = before
        self._add(first, last)

    def footprint(self, length: int) -> int:
        return length

    def _take(self, first: int, length: int) -> int:
        last = self._lasts[first]
        self._drop(first, last)
        if last - first + 1 > length:
            self._add(first + length, last)
        return first

    def _below(self, node: int, length: int) -> int:
        """The lowest address below a node at which a hole of the length begins, of which there must be one."""
        longest = self._longest
        while node < self._size:
            node *= 2
            if longest[node] < length:
                node += 1
        return node - self._size

    def _add(self, first: int, last: int) -> None:
        self._lasts[first] = last
        self._firsts[last] = first
        self._set(first, last - first + 1)

    def _drop(self, first: int, last: int) -> None:
        del self._lasts[first], self._firsts[last]
        self._set(first, 0)

    def _set(self, first: int, length: int) -> None:
        longest = self._longest
        node = first + self._size
        longest[node] = length
        while node > 1:
            other = longest[node ^ 1]
            node >>= 1
            most = max(length, other)
            if longest[node] == most:
                return
            longest[node] = length = most


class NextFit(FirstFit):
    """First fit that goes on where it stopped, and round."""

    name = "next fit"

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._cursor = 0

    def place(self, length: int) -> int | None:
        if self._longest[1] < length:
            return None
        first = self._take(self._from_cursor(length), length)
        self._cursor = (first + length) % self._size
        return first

    def _from_cursor(self, length: int) -> int:
        longest = self._longest
        node = self._cursor + self._size
        if longest[node] >= length:
            return self._cursor
        while node > 1:
            if not node & 1 and longest[node + 1] >= length:
                return self._below(node + 1, length)
            node >>= 1
        return self._below(1, length)


class Buddy:
    """Aligned powers of two: split a larger block in halves, join halves that are both free."""

    name = "buddy (CIDR blocks)"

    def __init__(self, size: int) -> None:
        self._top = size.bit_length() - 1
        self._free: list[set[int]] = [set() for _ in range(self._top + 1)]
        self._lowest: list[list[int]] = [[] for _ in range(self._top + 1)]
        self._put(self._top, 0)

    def place(self, length: int) -> int | None:
        wanted = (length - 1).bit_length()
        for order in range(wanted, self._top + 1):
            if self._free[order]:
                break
        else:
            return None
        first = self._pop(order)
        while order > wanted:
            order -= 1
            self._put(order, first + (1 << order))
        return first

    def free(self, first: int, length: int) -> None:
        order = (length - 1).bit_length()
        while order < self._top and first ^ (1 << order) in self._free[order]:
            self._free[order].remove(first ^ (1 << order))
            first &= ~(1 << order)
            order += 1
        self._put(order, first)

    def footprint(self, length: int) -> int:
        return 1 << (length - 1).bit_length()

    def _put(self, order: int, first: int) -> None:
        self._free[order].add(first)
        heappush(self._lowest[order], first)

    def _pop(self, order: int) -> int:
        free, lowest = self._free[order], self._lowest[order]
        while lowest[0] not in free:
            heappop(lowest)
        first = heappop(lowest)
        free.remove(first)
        return first


POLICIES: tuple[type[Policy], ...] = (BestFit, FirstFit, NextFit, Buddy)
