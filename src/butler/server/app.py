"""The whole application: routes under /api/v1, errors as problem+json, headers that keep browsers safe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from litestar import Litestar, Request, Response, Router
from litestar.config.app import AppConfig
from litestar.di import Provide
from litestar.exceptions import HTTPException, InternalServerException, ValidationException
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.types import ControllerRouterHandler

from butler import __version__
from butler.kube.errors import KubeError
from butler.kube.resource import BadName
from butler.server.access.person import Person
from butler.server.api_docs import ApiDocs
from butler.server.cache import read_your_writes
from butler.server.models.common import FieldError
from butler.server.problems import MEDIA_TYPE, RequestRefused, from_bad_name, from_kubernetes, problem
from butler.server.routes import (
    activity,
    addresses,
    allocation_writes,
    allocations,
    identity,
    overview,
    people,
    plan,
    pool_outlook,
    pool_tables,
    pool_writes,
    pools,
    providers,
    stream,
    tenant_writes,
    tenants,
)
from butler.server.services import Services
from butler.server.stream_schema import DocumentWithStream

log = logging.getLogger(__name__)
LARGEST_BODY: Final = 1_000_000
ROUTES: Final[Sequence[ControllerRouterHandler]] = (
    overview.router,
    pools.router,
    pool_writes.router,
    allocations.router,
    allocation_writes.router,
    tenants.router,
    tenant_writes.router,
    plan.router,
    providers.router,
    activity.router,
    people.router,
    identity.router,
    stream.follow,
    addresses.router,
    pool_outlook.router,
    pool_tables.router,
)


def build(
    services: Services,
    *,
    outside: Sequence[ControllerRouterHandler] = (),
) -> Litestar:
    """The application. `outside` are routes beside the API, such as the console's files."""

    async def catch_up(request: Request[Any, Any, Any]) -> None:
        await read_your_writes.catch_up(services.state, request.headers.get(read_your_writes.HEADER))

    return Litestar(
        [Router("/api/v1", route_handlers=ROUTES, before_request=catch_up), *outside],
        dependencies={
            "services": Provide(lambda: services, sync_to_thread=False),
            "person": Provide(_person, sync_to_thread=False),
        },
        openapi_config=_openapi(),
        plugins=[ApiDocs()],
        exception_handlers={Exception: _explain},
        request_max_body_size=LARGEST_BODY,
        on_app_init=[_without_signatures],
        logging_config=None,  # the caller decides what is logged, and where
    )


def _person(request: Request[Any, Any, Any]) -> Person:
    found = request.scope.get("user")
    if not isinstance(found, Person):
        raise RequestRefused(401, "you are not logged in: open the link that Butler printed, or log in")
    return found


def _without_signatures(config: AppConfig) -> AppConfig:
    config.signature_types = [*config.signature_types, Person, Services]
    return config


def _openapi() -> OpenAPIConfig:
    session = SecurityScheme(type="apiKey", name="__Host-butler-session", security_scheme_in="cookie")
    return OpenAPIConfig(
        title="Butler",
        version=__version__,
        description="Addresses and tenant clusters: what the console shows and does.",
        openapi_router=Router("/api/v1", route_handlers=[], include_in_schema=False, after_request=_no_page),
        render_plugins=[DocumentWithStream()],
        components=Components(security_schemes={"session": session}),
        security=[{"session": []}],
    )


def _no_page(response: Response[Any]) -> Response[Any]:
    """Unknown paths end where the document is, and Litestar would show a page there."""
    return (
        _told(RequestRefused(404, "there is nothing here: /api/v1/openapi.json tells what there is"))
        if response.status_code == 404
        else response
    )


def _explain(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    """Any error as a problem."""
    refused = _refused(error)
    if refused.status >= 500 and not isinstance(error, RequestRefused | KubeError):
        log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _told(refused)


def _told(refused: RequestRefused) -> Response[bytes]:
    told = problem(refused.status, refused.detail, refused.fields)
    return Response(
        msgspec.json.encode(told), status_code=refused.status, media_type=MEDIA_TYPE, headers=refused.headers
    )


def _spelled(parameter: str) -> str:
    """A parameter as people write it; Litestar keeps `state` for itself."""
    return "state" if parameter == "in_state" else parameter


def _refused(error: Exception) -> RequestRefused:
    if isinstance(error, RequestRefused):
        return error
    if isinstance(error, KubeError):
        return from_kubernetes(error)
    if isinstance(error, BadName):
        return from_bad_name(error)
    if isinstance(error, ValidationException):
        wrong: Any = error.extra if isinstance(error.extra, list) else []
        fields = [
            FieldError(field=_spelled(str(mistake.get("key", ""))), message=str(mistake.get("message", "")))
            for mistake in wrong
        ]
        said = "; ".join(f"{field.field}: {field.message}" if field.field else field.message for field in fields)
        return RequestRefused(422, said or str(error.detail), *fields)
    if isinstance(error, RecursionError) and "deserializing" in str(error):  # msgspec's word for a body
        return RequestRefused(400, "the body is nested too deeply: send what the API describes")
    if isinstance(error, InternalServerException) and "disconnected" in str(error.detail):
        return RequestRefused(400, "the body of the request did not arrive: send it again")  # which no client will read
    if isinstance(error, HTTPException):
        return RequestRefused(error.status_code, str(error.detail), headers=dict(error.headers or {}))
    return RequestRefused(
        500, "something went wrong here, and was written to the server's log: try again, or tell an administrator"
    )
