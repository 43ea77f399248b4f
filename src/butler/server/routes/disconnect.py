"""Work that is worth doing only while the client that asked is there."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from litestar import Request

from butler.server.problems import RequestRefused

T = TypeVar("T")


async def while_connected(request: Request[Any, Any, Any], work: Coroutine[Any, Any, T]) -> T:
    """What comes of the work, which is cancelled when the client hangs up. The body has to have been read before."""
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise RequestRefused(400, "the client went away")  # which no client will read
        return task.result()
    finally:
        for pending in (task, left):
            pending.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


async def _left(request: Request[Any, Any, Any]) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
