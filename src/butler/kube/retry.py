"""When to ask again, and how long to wait first. Pure but for the budget's counter.

The rule that must never bend: a write whose outcome is unknown is not repeated unless repeating it cannot hurt.
A 429 says that the server did nothing, so anything may follow it; a 503 with Retry-After comes from before any
handler ran; every other 5xx leaves a write in doubt. A budget shared by all requests keeps a client from
multiplying its load just when the server is weakest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from butler.kube.errors import ApiError


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with jitter: a random point in the upper half of [0, first * factor**n], never above `cap`."""

    first: float = 0.2
    factor: float = 2.0
    cap: float = 5.0

    def delay(self, attempt: int, rng: random.Random) -> float:
        # The exponent is bounded so that a key failing for weeks does not overflow a float.
        full = min(self.cap, self.first * self.factor ** min(attempt, 64))
        return full * (0.5 + 0.5 * rng.random())


@dataclass(slots=True)
class Budget:
    """Retries paid from what successes bring in: a healthy server pays for many, a sick one soon for none."""

    tokens: float = 50.0
    most: float = 50.0
    earned_per_success: float = 0.2

    def earn(self) -> None:
        self.tokens = min(self.most, self.tokens + self.earned_per_success)

    def spend(self) -> bool:
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


@dataclass(slots=True)
class Allowance:
    """So much a second, and some in advance: what is taken beyond that has to be waited for."""

    rate: float
    advance: float
    left: float = 0.0
    at: float = float("-inf")

    def take(self, amount: float, now: float) -> float:
        """Take it in any case; the seconds to wait before taking more."""
        self.left = min(self.advance, self.left + (now - self.at) * self.rate) - amount
        self.at = now
        return max(0.0, -self.left / self.rate)


def is_worth_repeating(error: ApiError, *, repeatable: bool) -> bool:
    """Whether asking again may help and cannot hurt. `repeatable`: doing it twice is the same as doing it once."""
    if error.code == 429:
        return True
    if error.code == 503:
        return repeatable or error.retry_after is not None
    return repeatable and error.code >= 500


def pause(attempt: int, retry_after: float | None, backoff: Backoff, rng: random.Random) -> float:
    """Seconds to wait: what the server asked for, plus jitter so that its clients do not come back as one."""
    jittered = backoff.delay(attempt, rng)
    return jittered if retry_after is None else retry_after + min(jittered, 0.25 * retry_after + 0.05)
