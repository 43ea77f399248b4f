"""Coming in through an identity provider, as a browser meets it: two redirects, and a page where it goes wrong."""

from __future__ import annotations

import logging
from html import escape
from typing import Annotated, Any
from urllib.parse import quote

from litestar import Request, Response, Router, get
from litestar.enums import MediaType
from litestar.params import QueryParameter

from butler.server.access.id_token import NotLetIn
from butler.server.access.logins import Logins, address_of, with_cookie
from butler.server.access.oidc import GOOD_FOR, Oidc
from butler.server.access.pages import page
from butler.server.access.provider import ProviderTrouble
from butler.server.problems import RequestRefused
from butler.server.routes.people import need_a_try
from butler.server.services import TheServices

log = logging.getLogger(__name__)
State = Annotated[str, QueryParameter(name="state", max_length=200)]  # the name itself is Litestar's
Short = Annotated[str, QueryParameter(max_length=200)]
Code = Annotated[str, QueryParameter(max_length=4000)]
Next = Annotated[str, QueryParameter(name="next", max_length=2000)]
Issuer = Annotated[str | None, QueryParameter(max_length=500)]


def _oidc(logins: Logins) -> Oidc:
    if logins.oidc is None:
        raise RequestRefused(404, "there is no identity provider here: see /api/v1/login-methods")
    return logins.oidc


@get("/login/oidc", include_in_schema=False)
async def begin(request: Request[Any, Any, Any], services: TheServices, then: Next = "/") -> Response[Any]:
    """Send the browser to the provider, and from there to the page that it wanted."""
    oidc = _oidc(services.logins)
    need_a_try(services.logins, request)
    try:
        there, sealed = await oidc.begin(_within(then))
    except ProviderTrouble as trouble:
        return _trouble(trouble)
    return with_cookie(_to(there), services.logins.login_cookie(sealed, int(GOOD_FOR.total_seconds())))


@get("/login/oidc/callback", include_in_schema=False)
async def come_back(
    request: Request[Any, Any, Any],
    services: TheServices,
    returned: State = "",
    code: Code = "",
    error: Short = "",
    iss: Issuer = None,
) -> Response[Any]:
    """The browser is back: find out who it is, and open the console."""
    logins, oidc = services.logins, _oidc(services.logins)
    need_a_try(logins, request)
    cookie = request.cookies.get(logins.where.login_cookie, "")
    done = logins.login_cookie("", 0)
    try:
        if error or not code:
            raise NotLetIn(f"the identity provider did not log you in ({error or 'it gave no code'})")
        who, then = await oidc.finish(cookie, state=returned, code=code, issuer=iss)
    except NotLetIn as refused:
        detail = f"from {address_of(request)}"
        logins.tell_refusal("log in", "", "oidc", status=403, why=str(refused), detail=detail)
        return with_cookie(_not_let_in(refused), done)
    except ProviderTrouble as trouble:
        return with_cookie(_trouble(trouble), done)
    session, _ = await logins.let_in(request, who)
    return with_cookie(_to(then), session, done)


def _within(path: str) -> str:
    """A page of this console, and never of another site: browsers take a backslash for a slash, and skip tabs."""
    is_ours = path.startswith("/") and not path.startswith("//") and path.isprintable() and "\\" not in path
    return quote(path, safe="/?&=%:,+@~*!$'();-._") if is_ours else "/"


def _to(location: str) -> Response[Any]:
    return Response(None, status_code=303, headers={"Location": location}, media_type=MediaType.TEXT)


def _not_let_in(refused: NotLetIn) -> Response[str]:
    said = escape(str(refused))
    return page(
        "You were not let in", f'<p>{said[:1].upper()}{said[1:]}.</p><p><a class="go" href="/">Back</a></p>', status=403
    )


def _trouble(trouble: ProviderTrouble) -> Response[str]:
    log.warning("no user can log in: %s", trouble)
    return page(
        "The identity provider does not answer as it should",
        "<p>Try again in a moment. If it stays so, an administrator finds the reason in the server's log.</p>"
        '<p><a class="go" href="/">Back</a></p>',
        status=502,
    )


router = Router("/", route_handlers=[begin, come_back], tags=["people"])
