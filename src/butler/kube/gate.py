"""A door through which only a few go at a time: for things that are dear to start and cheap to have.

A process that starts, or whose network comes back, wants a thousand TLS connections at the same moment. Begun together
they starve each other until all run out of time, and begin again. So they queue here, and one that has its connection
makes room for the next. None may block the door: after `hold` seconds a place is given on, whatever became of it,
so that servers that never answer delay the others by little. And one that failed before uses a door apart: of those
that are down there may be hundreds, for hours, and those that are well must not queue behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Leave = Callable[[], None]


class Gate:
    """So many places in either door, each for so many seconds at most."""

    def __init__(self, places: int = 16, hold: float = 0.5) -> None:
        self._doors = {doubtful: asyncio.Semaphore(places) for doubtful in (False, True)}
        self._hold = hold

    async def enter(self, *, doubtful: bool = False) -> Leave:
        """Wait for a place; call what comes back to leave it, once or more often. `doubtful`: it failed before."""
        door = self._doors[doubtful]
        await door.acquire()
        left = False

        def leave() -> None:
            nonlocal left
            if not left:
                left = True
                timer.cancel()
                door.release()

        timer = asyncio.get_running_loop().call_later(self._hold, leave)
        return leave


def nothing() -> None:
    """To leave where there is no gate."""
