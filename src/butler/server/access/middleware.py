"""Finds out who sends a request, before any route is asked: `scope["user"]` is the `Person`, or None."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from litestar.connection import ASGIConnection
from litestar.types import ASGIApp, Middleware, Receive, Scope, Send

from butler.server.access.person import Person

Who = Callable[[ASGIConnection[Any, Any, Any, Any]], Awaitable[Person | None]]


def knowing(who: Who) -> Middleware:
    """The middleware that asks `who`."""

    def wrap(app: ASGIApp) -> ASGIApp:
        async def called(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] in ("http", "websocket"):
                scope["user"] = await who(ASGIConnection(scope))
            await app(scope, receive, send)

        return called

    return wrap
