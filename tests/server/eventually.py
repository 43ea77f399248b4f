"""Waiting for what comes a moment later."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


async def eventually(check: Callable[[], Awaitable[None]], *, seconds: float = 20.0) -> None:
    """Try until it holds; the last failure is told."""
    until = time.monotonic() + seconds
    while True:
        try:
            await check()
        except (AssertionError, LookupError):  # what is looked at may not be there yet
            if time.monotonic() > until:
                raise
            await asyncio.sleep(0.05)
        else:
            return
