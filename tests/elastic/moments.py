"""When things happened on two API servers, as far as that can be known, and what follows from it.

One store numbers its writes, so the order of what is in it is exact. Two stores have two counters, and no watch tells
which of two writes in different stores came first: what arrives first may have happened last. What can be known is a
time before which a write had not happened and a time by which it had, both on the clock of the one machine that all of
this runs on. A `Moment` is that pair. Where both sides share a store, its two ends are the write's number, and
everything below is exact without a special case.

Something is a violation only if it is certain: two periods *surely meet* when, wherever in its bounds each beginning
and each end was, there was an instant inside both. So a checker that rests on this never accuses wrongly; what it can
miss is an overlap shorter than the bounds are wide.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import NamedTuple


class Moment(NamedTuple):
    """Some instant of these two or between them."""

    earliest: float
    latest: float

    @classmethod
    def exact(cls, when: float) -> Moment:
        return cls(when, when)

    def surely_before(self, other: Moment) -> bool:
        return self.latest < other.earliest

    def maybe_within(self, begin: Moment, end: Moment) -> bool:
        return not (self.surely_before(begin) or end.surely_before(self))


NEVER_BEGAN = Moment.exact(float("-inf"))
NEVER_ENDED = Moment.exact(float("inf"))


class Period(NamedTuple):
    """From one moment to the next: the first is in it, the last no more."""

    begin: Moment
    end: Moment = NEVER_ENDED

    def surely_meets(self, other: Period) -> bool:
        return max(self.begin.latest, other.begin.latest) < min(self.end.earliest, other.end.earliest)


def gaps(periods: list[Period]) -> list[Period]:
    """What is between some periods of one thing, before the first and after the last; they do not overlap."""
    found, begin = [], NEVER_BEGAN
    for period in sorted(periods, key=lambda item: item.begin.latest):
        found.append(Period(begin, period.begin))
        begin = period.end
    return [*found, Period(begin, NEVER_ENDED)] if begin != NEVER_ENDED else found


@dataclass
class Clock:
    """Tells when a version of one store was written, from looks at the store's counter.

    A look that began at `began` and ended at `ended` and saw the counter at `version` proves: what has a higher
    version was not written at `began`, and what has this one or a lower one was written by `ended`.
    """

    _versions: list[int] = field(default_factory=list)
    _began: list[float] = field(default_factory=list)
    _ended: list[float] = field(default_factory=list)

    def looked(self, version: int, began: float, ended: float) -> None:
        if self._versions and version == self._versions[-1]:
            self._began[-1] = began  # nothing happened in between: a later proof of "not yet"
            return
        self._versions.append(version)
        self._began.append(began)
        self._ended.append(ended)

    def moment(self, version: int, seen: float) -> Moment:
        """When a version was written that a watch showed at `seen`."""
        place = bisect_left(self._versions, version)
        earliest = self._began[place - 1] if place else float("-inf")
        latest = min(seen, self._ended[place]) if place < len(self._ended) else seen
        return Moment(earliest, latest)
