"""When a tenant has to be looked at again, if nothing is heard of it before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from butler.kube.controller import After

if TYPE_CHECKING:
    from typing import Self


@dataclass(frozen=True, slots=True, order=True)
class NextLook:
    """At once, in so many seconds, or only when something changes; `min` of several is the soonest."""

    seconds: float

    @classmethod
    def within(cls, seconds: float) -> Self:
        """In so many seconds; a moment that has passed is now."""
        return cls(max(0.0, seconds))

    @property
    def is_due(self) -> bool:
        """Whether that is now."""
        return self.seconds <= 0.0

    def after(self) -> After | None:
        """As the queue is told it; None: it waits for a change."""
        return None if math.isinf(self.seconds) else After(self.seconds)


AT_ONCE: Final = NextLook(0.0)
ON_CHANGE: Final = NextLook(math.inf)
"""The clock alone changes nothing."""
SOON: Final = NextLook(1.0)
SELDOM: Final = NextLook(30.0)


def pause(tries: int) -> NextLook:
    """When to try again what failed so many times in a row; a tenant may be without MetalLB for weeks."""
    return min(SELDOM, NextLook(SOON.seconds * 2.0 ** min(tries - 1, 10)))
