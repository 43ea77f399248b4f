"""Who is there: coming in, going out, and the person's sessions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final

from litestar import Request, Response, Router, delete, get, post
from litestar.params import JSONBody, PathParameter

from butler import __version__
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.resource import SECRETS, Resource
from butler.server.access.guard import too_many
from butler.server.access.logins import Logins, address_of, with_cookie
from butler.server.access.passwords import LoginWait
from butler.server.access.person import Person
from butler.server.models.people import LoginMethods, Me, PasswordLogin, Permissions, Session, SessionList
from butler.server.problems import RequestRefused
from butler.server.services import Services, ThePerson, TheServices

PERMISSIONS: Final[dict[str, tuple[str, Resource[Any], bool]]] = {
    "read_pools": ("list", POOLS, True),
    "create_pools": ("create", POOLS, True),
    "edit_pools": ("patch", POOLS, True),
    "delete_pools": ("delete", POOLS, True),
    "read_allocations": ("list", ALLOCATIONS, True),
    "create_allocations": ("create", ALLOCATIONS, True),
    "release_allocations": ("delete", ALLOCATIONS, True),
    "read_tenants": ("list", CLUSTERS, False),
    "create_tenants": ("create", CLUSTERS, False),
    "edit_tenants": ("patch", CLUSTERS, False),
    "delete_tenants": ("delete", CLUSTERS, False),
    "read_providers": ("list", PROVIDERS, True),
    "read_secrets": ("get", SECRETS, False),
}
"""What each permission asks of Kubernetes: verb, kind, and whether in Butler's own namespace; else in all."""
SessionId = Annotated[str, PathParameter(description="`id` of one of your sessions.", max_length=80)]


async def me_of(services: Services, person: Person) -> Me:
    """Everything about the person that the console needs to begin."""
    asked = [
        services.permissions.may(person, verb, kind, services.home if at_home else "")
        for verb, kind, at_home in PERMISSIONS.values()
    ]
    allowed = dict(zip(PERMISSIONS, await asyncio.gather(*asked), strict=True))
    return Me(
        user=person.user,
        groups=list(person.groups),
        via=person.via,
        session=person.session,
        since=person.since,
        expires_at=person.expires_at,
        csrf_token=person.csrf_token,
        home=services.home,
        version=__version__,
        world=services.world,
        permissions=Permissions(**allowed),
    )


@get("/login-methods", operation_id="getLoginMethods", security=[])
async def login_methods(services: TheServices) -> LoginMethods:
    """How people can log in here. No login is needed to ask."""
    logins = services.logins
    return LoginMethods(
        local=logins.links is not None,
        password=logins.passwords is not None,
        oidc=logins.oidc is not None,
        oidc_name=logins.oidc.settings.name if logins.oidc is not None else "",
    )


@post("/login/password", operation_id="logInWithPassword", status_code=200, request_max_body_size=4096, security=[])
async def log_in(request: Request[Any, Any, Any], services: TheServices, data: JSONBody[PasswordLogin]) -> Response[Me]:
    """Come in as the local administrator."""
    logins = services.logins
    if logins.passwords is None:
        raise RequestRefused(404, "there is no login with a password here: see /api/v1/login-methods")
    need_a_try(logins, request)
    try:
        who = await logins.passwords.check(data.user, data.password)
    except LoginWait as wait:
        _tell_wrong(logins, request, data.user, 429, "too many wrong passwords")
        raise too_many(wait.seconds) from None
    if who is None:
        known = data.user if await logins.passwords.is_admin(data.user) else ""
        _tell_wrong(logins, request, known, 401, "wrong name or password")
        raise RequestRefused(
            401, "the name or the password is wrong: try again, or get a new one with `butleradm server password`"
        )
    cookie, person = await logins.let_in(request, who)
    return with_cookie(Response(await me_of(services, person)), cookie)


def need_a_try(logins: Logins, request: Request[Any, Any, Any]) -> None:
    """Refuses an address that tries to come in too often."""
    if (wait := logins.tries.take(address_of(request))) > 0:
        raise too_many(wait)


def _tell_wrong(logins: Logins, request: Request[Any, Any, Any], user: str, status: int, why: str) -> None:
    logins.tell_refusal("log in", user, "password", status=status, why=why, detail=f"from {address_of(request)}")


@get("/me", operation_id="getMe")
async def get_me(services: TheServices, person: ThePerson) -> Me:
    """Who you are, what you may do, and the token that writes need."""
    return await me_of(services, person)


@post("/logout", operation_id="logOut", status_code=204)
async def log_out(services: TheServices, person: ThePerson) -> Response[None]:
    """End the session, for every replica and every copy of the cookie."""
    gone = await services.logins.let_out(person)
    return with_cookie(Response(None, status_code=204, headers={"Clear-Site-Data": '"cache", "storage"'}), gone)


@get("/sessions", operation_id="listSessions")
async def list_sessions(services: TheServices, person: ThePerson) -> SessionList:
    """Your own sessions, newest first."""
    found = await services.logins.sessions.of(person)
    return SessionList(
        items=[
            Session(
                id=name,
                via=record.via,
                since=record.created,
                expires_at=ends,
                user_agent=record.user_agent,
                current=name == person.session,
            )
            for name, record, ends in found
        ]
    )


@delete("/sessions/{id:str}", operation_id="endSession", status_code=204)
async def end_session(
    services: TheServices,
    person: ThePerson,
    id: SessionId,  # noqa: A002
) -> None:
    """End one of your own sessions: the browser that uses it is logged out within seconds."""
    if not await services.logins.sessions.end(person, id):
        raise RequestRefused(404, "you have no such session: it may have ended a moment ago")
    services.logins.tell("end session", person, name=id)


router = Router(
    "/", route_handlers=[login_methods, log_in, get_me, log_out, list_sessions, end_session], tags=["people"]
)
