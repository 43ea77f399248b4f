"""What routes have in common in the OpenAPI document: told here once, for every route.

A route says in its docstring what it is for, and by its type what it answers when all is well. What else may come
follows from its shape: a request that names an object may name one that is not there, a write may come too late, and
any client may not be logged in.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec
from litestar.plugins import ReceiveRoutePlugin
from litestar.routes import BaseRoute, HTTPRoute

from butler.server.models.common import Problem
from butler.server.problems import MEDIA_TYPE, TYPES

ALWAYS: Final = (401, 403, 421, 429, 503)
ASKED: Final = (400, 422)
"""Where something can be asked wrongly."""
NAMED: Final = (404,)
WRITTEN: Final = (404, 409, 412, 413, 415, 428, 502, 504)


class ApiDocs(ReceiveRoutePlugin):
    """Adds it to each route of the API as it is registered."""

    def receive_route(self, route: BaseRoute) -> None:
        if isinstance(route, HTTPRoute):
            for handler in route.route_handlers:
                if handler.include_in_schema is not False:
                    handler.responses = {**_common(route, handler), **(handler.responses or {})}
                    handler.summary, handler.description = _words(handler)


def _words(handler: HTTPRouteHandler) -> tuple[str, str | None]:
    """Its docstring: the first sentence as the summary, all of it as the description where there is more."""
    said = " ".join((inspect.getdoc(handler.fn) or "").split())
    first = said.partition(". ")[0].removesuffix(".")
    return first, said if len(said) > len(first) + 1 else None


def _common(route: HTTPRoute, handler: HTTPRouteHandler) -> dict[int, ResponseSpec]:
    found = {status: _problem(status) for status in sorted(set(_statuses(route, handler)))}
    if "GET" in handler.http_methods and "request" in handler.parsed_fn_signature.parameters:
        found[304] = ResponseSpec(None, description="It is as it was when it had the ETag in If-None-Match.")
    if handler.status_code == 204:
        found[204] = ResponseSpec(None, description="It is done, and there is nothing to say.")
    return found


def _statuses(route: HTTPRoute, handler: HTTPRouteHandler) -> Iterator[int]:
    yield from ALWAYS
    names = handler.parsed_fn_signature.parameters
    if set(names) - {"request", "services", "person"}:
        yield from ASKED
    if route.path_parameters:
        yield from NAMED
    if handler.http_methods - {"GET", "HEAD", "OPTIONS"}:
        yield from WRITTEN


def _problem(status: int) -> ResponseSpec:
    title = TYPES[status][1]
    return ResponseSpec(Problem, generate_examples=False, description=f"{title}.", media_type=MEDIA_TYPE)
