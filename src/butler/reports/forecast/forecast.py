"""In how many days a pool reaches its tiers, and refuses blocks of a size: a band, from the record. Pure and seeded.

Many futures are played through, on the allocator's own free space, and the days counted in each. A future's days
repeat days of the record, drawn at random, so that busy days, quiet ones and bursts come as often as they did. That
it is unknown how typical the record is shows in the band: each future trusts some of its days more than others
(a Bayesian bootstrap).

Some tenants leave again, and most who left are no longer on record. How many leave per day is therefore estimated from
two things: who left lately, and the ages of those who are left, which thin out the more the shorter tenants stay
(if demand was steady). Each future takes a rate that fits both, and days of long ago count for as many more arrivals
as will have left since.

The band says what happens if things go on as they were. It knows nothing of what people intend.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from random import Random
from typing import TYPE_CHECKING

from butler.api.networkpool import CapacityTier
from butler.api.objects import key_of
from butler.ipam.capacity import THRESHOLDS, Capacity, capacity_of
from butler.ipam.free_space import FreeSpace, NotTaken
from butler.reports.forecast.demand_record import read_record
from butler.rules.allocation.held import readable_range, unreadable, why_nothing
from butler.rules.pool.intents import promised
from butler.rules.pool.next_status import intent_range, layout_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from butler.api.networkpool import NetworkPool
    from butler.ipam.addresses import Range
    from butler.ipam.layout import PoolLayout
    from butler.reports.estate import Estate
    from butler.reports.forecast.demand_record import DemandRecord

BAND = 80
"""Percent of the futures that lie within the band."""
FEWEST_DAYS = 7
FEWEST_ARRIVALS = 5
FARTHEST = 365.0
"""Days that are looked ahead."""
_MOST_EVENTS = 4_000
"""Arrivals in one future, at most: where many come each day, fewer days are looked ahead."""
_EFFORT = 150_000
_FUTURES = (40, 400)
"""Fewest and most futures; in between, as many as an effort of a second or so allows."""
_LARGEST_SIZE = 256
_RATES = tuple(10 ** (-5 + place / 10) for place in range(51))
"""Parts of all tenants that leave in a day, from next to none to all."""


Day = tuple[float, tuple[tuple[int, ...], ...]]
"""How many days ago it was, and the sizes of the blocks of each arrival."""


@dataclass(frozen=True, slots=True)
class ForecastMark:
    """Something that will happen, and in how many days: the band and its middle. None: not within the horizon."""

    tier: CapacityTier | None
    size: int | None
    low: float | None
    median: float | None
    high: float | None
    share: float
    """Of all futures, the part in which it happens within the horizon."""

    @property
    def is_now(self) -> bool:
        return self.high == 0


@dataclass(frozen=True, slots=True)
class PoolForecast:
    """About one pool; without marks where `problem` says why."""

    pool: str
    cidr: str
    problem: str
    capacity: Capacity | None = None
    record: DemandRecord | None = None
    per_day: tuple[float, float, float] | None = None
    """Addresses that come and stay per day, less those that leave: low, middle and high."""
    leaving: tuple[float, float] | None = None
    """The part of all tenants that leaves in a day: low and high."""
    horizon: float = 0.0
    futures: int = 0
    marks: tuple[ForecastMark, ...] = ()


def forecast(
    pool: NetworkPool, estate: Estate, now: datetime, *, size: int | None = None, seed: int = 0, futures: int = 0
) -> PoolForecast:
    """What is to be expected of a pool; `size`: of blocks of this size only."""
    name, cidr = pool.metadata.name, pool.spec.cidr
    layout, invalid = layout_of(pool)
    if layout is None:
        return PoolForecast(name, cidr, f"it hands out nothing: {invalid.message if invalid else ''}")
    if problem := why_nothing(unreadable(key_of(pool), estate.allocations)):
        return PoolForecast(name, cidr, f"it hands out nothing: {problem}")
    taken = _taken(pool, estate)
    free = FreeSpace.without(layout.usable, taken)
    capacity = capacity_of(free, layout.total)
    record = read_record(pool, estate.allocations, now)
    sizes = [size] if size is not None else _sizes(layout)
    if problem := _too_little(record):
        return PoolForecast(name, cidr, problem, capacity, record, marks=_known_already(capacity, sizes))
    return _look_ahead(pool, layout, taken, record, sizes, Random(seed), futures)  # noqa: S311 (no secret)


def _too_little(record: DemandRecord) -> str:
    """Why nothing can be said, as a sentence; empty when it can."""
    seen = len(record.arrivals)
    if record.days >= FEWEST_DAYS and seen >= FEWEST_ARRIVALS:
        return ""
    return (
        f"not enough is on record to say: {seen} {'arrival' if seen == 1 else 'arrivals'} in {record.days:.1f} days,"
        f" and it takes {FEWEST_ARRIVALS} arrivals in {FEWEST_DAYS} days"
    )


def _sizes(layout: PoolLayout) -> list[int]:
    longest = min(_LARGEST_SIZE, max(piece.size for piece in layout.usable))
    return [1 << bits for bits in range(longest.bit_length()) if 1 << bits <= longest]


def _taken(pool: NetworkPool, estate: Estate) -> list[Range]:
    intents = [intent_range(intent)[1] for intent in promised(pool, estate.allocations)]
    return [*intents, *(found[1] for allocation in estate.allocations if (found := readable_range(allocation)))]


def _known_already(capacity: Capacity, sizes: Iterable[int]) -> tuple[ForecastMark, ...]:
    """What has happened, which needs no record."""
    tiers = [tier for tier, percent in THRESHOLDS.items() if _is_above(capacity.allocated, capacity.total, percent)]
    marks = [ForecastMark(tier, None, 0.0, 0.0, 0.0, 1.0) for tier in tiers]
    return (
        *marks,
        *(ForecastMark(None, size, 0.0, 0.0, 0.0, 1.0) for size in sizes if size > capacity.largest_free_block),
    )


def _is_above(allocated: int, total: int, percent: int) -> bool:
    return total > 0 and allocated * 100 >= percent * total


# Many futures.


def _look_ahead(
    pool: NetworkPool,
    layout: PoolLayout,
    taken: Sequence[Range],
    record: DemandRecord,
    sizes: Sequence[int],
    random: Random,
    futures: int,
) -> PoolForecast:
    # A day with one arrival more than was seen: a short record leans neither way then, and errs by warning early.
    days = [*_days(record), (0.0, (random.choice(record.arrivals).sizes,))]
    rate_of = _leaving_rates(record)
    busy = sum(len(sizes) for _, arrivals in days for sizes in arrivals) / len(days) + len(record.held) * 0.02
    horizon = min(FARTHEST, max(30.0, float(_MOST_EVENTS // max(busy, 1e-9))))
    least, most = _FUTURES
    count = futures or max(least, min(most, int(_EFFORT / (horizon * (1 + busy)))))
    seen: list[list[float]] = []
    rates: list[float] = []
    net: list[float] = []
    for _ in range(count):
        rate = rate_of(random)
        weights = [random.expovariate(1.0) for _ in days]
        rates.append(rate)
        net.append(_net_per_day(days, weights, rate, record))
        future = _Future(layout, taken, record.held, sizes)
        seen.append(future.play(days, list(accumulate(weights)), rate, record.release_days, int(horizon), random))
    every: list[CapacityTier | int] = [*THRESHOLDS, *sizes]
    marks = [_mark(what, sorted(days_of[place] for days_of in seen), horizon) for place, what in enumerate(every)]
    return PoolForecast(
        pool.metadata.name,
        pool.spec.cidr,
        "",
        capacity_of(FreeSpace.without(layout.usable, taken), layout.total),
        record,
        (_quantile(sorted(net), 10), _quantile(sorted(net), 50), _quantile(sorted(net), 90)),
        (_quantile(sorted(rates), 10), _quantile(sorted(rates), 90)),
        horizon,
        count,
        tuple(marks),
    )


def _mark(what: CapacityTier | int, days: Sequence[float], horizon: float) -> ForecastMark:
    low, median, high = (
        found if (found := _quantile(days, part)) < horizon else None for part in (50 - BAND // 2, 50, 50 + BAND // 2)
    )
    share = sum(day < horizon for day in days) / len(days)
    tier = what if isinstance(what, CapacityTier) else None
    return ForecastMark(tier, None if tier else int(what), low, median, high, share)


def _quantile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) - 1, round((len(ordered) - 1) * percent / 100))]


def _days(record: DemandRecord) -> list[Day]:
    """The whole days of the record, the latest first."""
    days: list[list[tuple[int, ...]]] = [[] for _ in range(int(record.days))]
    for arrival in record.arrivals:
        if arrival.age < len(days):
            days[int(arrival.age)].append(arrival.sizes)
    return [(age + 0.5, tuple(arrivals)) for age, arrivals in enumerate(days)]


def _leaving_rates(record: DemandRecord) -> Callable[[Random], float]:
    """Rates at which tenants leave, as likely as the record makes each.

    The likelihood of a rate: so many left in the time of which all releases are on record, out of all who were there;
    and those that arrived earlier have the ages of what is left of a steady stream.
    """
    window, reach = record.release_days, record.days
    exposure = (len(record.held) + record.left / 2) * window
    older = [max(0.0, arrival.age - window) for arrival in record.arrivals]
    logs = []
    for rate in _RATES:
        seen = window + (1 - math.exp(-rate * max(0.0, reach - window))) / rate
        likelihood = record.left * math.log(rate) - rate * exposure - rate * sum(older) - len(older) * math.log(seen)
        # The prior leans to few: with it, pools that no tenant leaves and pools that many leave are met equally well.
        logs.append(likelihood + 0.25 * math.log(rate))
    highest = max(logs)
    steps = list(accumulate(math.exp(log - highest) for log in logs))
    return lambda random: _RATES[bisect_left(steps, random.random() * steps[-1])]


def _more(age: float, rate: float, window: float) -> float:
    """For each arrival that is left of a day, how many there were."""
    return math.exp(min(4.0, rate * max(0.0, age - window)))


def _net_per_day(days: Sequence[Day], weights: Sequence[float], rate: float, record: DemandRecord) -> float:
    come = sum(
        weight * _more(age, rate, record.release_days) * sum(map(sum, arrivals))
        for (age, arrivals), weight in zip(days, weights, strict=True)
    )
    return come / sum(weights) - rate * sum(span.size for ranges in record.held for span in ranges)


class _Future:
    """One way in which it may go on."""

    def __init__(
        self, layout: PoolLayout, taken: Sequence[Range], held: Sequence[tuple[Range, ...]], sizes: Sequence[int]
    ) -> None:
        self._free = FreeSpace.without(layout.usable, taken)
        self._total = layout.total
        inside = [tuple(span for span in ranges if _lies_in(span, layout)) for ranges in held]
        self._held = [ranges for ranges in inside if ranges]
        self._sizes = sizes
        self._found = [math.inf] * (len(THRESHOLDS) + len(sizes))

    def play(
        self,
        days: Sequence[Day],
        weights: Sequence[float],
        rate: float,
        window: float,
        horizon: int,
        random: Random,
    ) -> list[float]:
        """When each thing happens first, in days; infinite: not within the horizon. `weights` are summed up."""
        self._note(0.0)
        for today in range(horizon):
            if math.inf not in self._found:
                break
            self._let_go(rate, random)
            age, seen = days[bisect_left(weights, random.random() * weights[-1])]
            more = _more(age, rate, window)
            arrivals = [sizes for sizes in seen for _ in range(int(more + random.random()))]
            for place, sizes in enumerate(arrivals):
                self._let_in(sizes)
                self._note(today + (place + 1) / (len(arrivals) + 1))
        return self._found

    def _let_in(self, sizes: Iterable[int]) -> None:
        got = []
        for size in sizes:
            place = self._free.best_fit(size)
            if place is not None:
                self._free.take(place)
                got.append(place)
        if got:
            self._held.append(tuple(got))

    def _let_go(self, rate: float, random: Random) -> None:
        """All leave with the same chance; the next who does comes after a run, of random length, of those who stay."""
        stay = -rate
        at = int(math.log(1.0 - random.random()) / stay)
        while at < len(self._held):
            self._held[at], self._held[-1] = self._held[-1], self._held[at]
            for span in self._held.pop():
                with suppress(NotTaken):  # two hold the same, because a status was edited by hand
                    self._free.give(span)
            at += int(math.log(1.0 - random.random()) / stay)

    def _note(self, day: float) -> None:
        allocated = self._total - self._free.free
        for place, percent in enumerate(THRESHOLDS.values()):
            if self._found[place] == math.inf and _is_above(allocated, self._total, percent):
                self._found[place] = day
        largest = self._free.largest
        for place, size in enumerate(self._sizes, len(THRESHOLDS)):
            if self._found[place] == math.inf and largest < size:
                self._found[place] = day


def _lies_in(addresses: Range, layout: PoolLayout) -> bool:
    return any(piece.contains(addresses) for piece in layout.usable)
