"""How often a client may try or do something: a bucket for each address or person, in memory.

Memory is enough here: with several replicas a client may try as many times more, and after a restart anew. What must
not be forgotten, failed passwords, is counted in a record (see passwords.py).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST: Final = 20_000


class Limit:
    """So many at once, and then so many a second, for each who asks."""

    def __init__(
        self, burst: float, per_second: float, *, most: int = MOST, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._most = most
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str) -> float:
        """0 when they may; else how many seconds to wait."""
        now = self._clock()
        left, since = self._left.pop(who, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._per_second)
        allowed = left >= 1
        self._left[who] = (left - 1 if allowed else left, now)
        if len(self._left) > self._most:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._per_second
