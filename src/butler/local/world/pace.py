"""How long something still takes.

Times in objects are whole seconds, too coarse for a machine that takes one; the memory of this process is exact, but
ends with it. So both are asked: what was seen to begin here takes exactly as long as it should, and after a restart
the time written in the object says when it is certainly over. Forgetting costs a moment and never anything else.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable


class Pace:
    """Stopwatches by subject: start by asking, end with `forget`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._began: dict[Hashable, float] = {}

    def remaining(self, subject: Hashable, since: str | None, seconds: float) -> float:
        """Seconds until `seconds` have passed since `since` (as an object has it) or, if earlier, since first asked."""
        if seconds <= 0:
            return 0.0
        began = self._began.setdefault(subject, self._monotonic())
        left = began + seconds - self._monotonic()
        if since:
            # The second that was cut off: what is written as :07 may have happened just before :08.
            left = min(left, moment(since) + 1 + seconds - self._wall())
        return max(0.0, left)

    def forget(self, subject: Hashable) -> None:
        self._began.pop(subject, None)


def moment(text: str) -> float:
    """Unix seconds of a Kubernetes time."""
    return datetime.fromisoformat(text).timestamp()


def timestamp(seconds: float) -> str:
    """A Kubernetes time."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
