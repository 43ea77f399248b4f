"""How many large requests of one caller run at once: only the further requests of that caller wait.

A large body takes memory from its first byte until it is answered. A client that sends many, or sends them slowly,
uses up its own places, and what waits has not been read yet.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PLACES: Final = 8


@dataclass(slots=True)
class _Door:
    places: asyncio.Semaphore
    users: int = field(default=0)  # inside and outside


class Places:
    def __init__(self, each: int = _PLACES) -> None:
        self._each = each
        self._doors: dict[str, _Door] = {}

    @asynccontextmanager
    async def one(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place of this caller's and hold it."""
        door = self._doors.setdefault(caller, _Door(asyncio.Semaphore(self._each)))
        door.users += 1
        try:
            async with door.places:
                yield
        finally:
            door.users -= 1
            if not door.users:
                self._doors.pop(caller, None)
