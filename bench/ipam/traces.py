"""Requests and releases to replay: who asks for how many addresses and when they go, whatever they were given.

A trace knows nothing of the pool that it will meet except its size, so every policy meets the same one: a request
that was refused is released later like any other. Demand comes in tides: it rises from 60 % of the pool to 105 %,
falls back, and rises again, so that there is a first failure in every tide, in a pool as worn as the tides before
have left it.

An event is `(number, length)`: a request of that many addresses, or with length 0 the release of that number.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import accumulate

Event = tuple[int, int]
Trace = Callable[[int, int, int, int], Iterator[list[Event]]]

LOW, HIGH = 0.60, 1.05


class _Live:
    """Numbers that can be drawn at random, and their lengths."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._numbers: list[int] = []
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int) -> None:
        self._place[number] = len(self._numbers)
        self._numbers.append(number)

    def draw(self) -> int:
        return self._numbers[int(self._source.random() * len(self._numbers))]

    def remove(self, number: int) -> None:
        place = self._place.pop(number)
        last = self._numbers.pop()
        if last != number:
            self._numbers[place] = last
            self._place[last] = place


def wanted(step: int, steps: int) -> float:
    """Demand at one step of a tide, as a share of the pool."""
    return LOW + (HIGH - LOW) * step / steps


def zipf(pool: int, events: int, tides: int, seed: int) -> Iterator[list[Event]]:
    """Lengths 1 to 64, the k-th as frequent as k to the power of -1.1; each leaves on its own."""
    source = random.Random(seed)
    lengths = range(1, 65)
    weights = list(accumulate(length**-1.1 for length in lengths))
    live, sizes, demand, number = _Live(source), dict[int, int](), 0, 0
    for _ in range(tides):
        tide: list[Event] = []
        while len(tide) < events // tides:
            if demand < pool * wanted(len(tide), events // tides):
                (length,) = source.choices(lengths, cum_weights=weights)
                number += 1
                live.add(number)
                sizes[number] = length
                demand += length
                tide.append((number, length))
            else:
                leaving = live.draw()
                live.remove(leaving)
                demand -= sizes.pop(leaving)
                tide.append((leaving, 0))
        yield tide


class _Tenancy:
    """Clusters that come, grow by one, shrink by one and go; every step appends to a list of events."""

    def __init__(self, source: random.Random) -> None:
        self.demand = 0
        self._source = source
        self._clusters, self._growths = _Live(source), _Live(source)
        self._parts: dict[int, dict[int, int]] = {}  # of a cluster: its allocations and their lengths
        self._owner: dict[int, int] = {}  # of a growth allocation: its cluster
        self._number = 0

    def rise(self, events: list[Event]) -> None:
        """A tenant comes, or one grows."""
        if len(self._clusters) and self._source.random() < 0.6:
            cluster = self._clusters.draw()
            grown = self._ask(cluster, 1, events)
            self._growths.add(grown)
            self._owner[grown] = cluster
            return
        cluster = self._number + 1
        self._clusters.add(cluster)
        self._parts[cluster] = {}
        self._ask(cluster, 5, events)
        self._ask(cluster, self._source.randint(2, 16), events)

    def fall(self, events: list[Event]) -> None:
        """A growth allocation goes, or a tenant with all it has."""
        if len(self._growths) and self._source.random() < 0.6:
            grown = self._growths.draw()
            self._release(self._owner[grown], grown, events)
            return
        cluster = self._clusters.draw()
        self._clusters.remove(cluster)
        for part in list(self._parts[cluster]):
            self._release(cluster, part, events)
        del self._parts[cluster]

    def _ask(self, cluster: int, length: int, events: list[Event]) -> int:
        self._number += 1
        self._parts[cluster][self._number] = length
        self.demand += length
        events.append((self._number, length))
        return self._number

    def _release(self, cluster: int, part: int, events: list[Event]) -> None:
        self.demand -= self._parts[cluster].pop(part)
        if self._owner.pop(part, None) is not None:
            self._growths.remove(part)
        events.append((part, 0))


def tenants(pool: int, events: int, tides: int, seed: int) -> Iterator[list[Event]]:
    """Tenants of 5 nodes and 2 to 16 load-balancer addresses, which grow and shrink by 1 and leave as a whole."""
    tenancy = _Tenancy(random.Random(seed))
    for _ in range(tides):
        tide: list[Event] = []
        while len(tide) < events // tides:
            if tenancy.demand < pool * wanted(len(tide), events // tides):
                tenancy.rise(tide)
            else:
                tenancy.fall(tide)
        yield tide


TRACES: dict[str, Trace] = {"lengths 1..64 after Zipf": zipf, "tenants: 5 nodes, 2..16 lb, growth 1": tenants}
