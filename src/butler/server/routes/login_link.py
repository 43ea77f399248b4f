"""The one-time link, as a browser meets it.

Programs that look at links before people do (previews, scanners) send a GET: it uses nothing up, it shows a button. A
script of our own presses it at once, a person without scripts does it by hand; the POST uses the link up.
"""

from __future__ import annotations

from html import escape
from typing import Annotated, Any, Final
from urllib.parse import parse_qs

from litestar import Request, Response, Router, get, post
from litestar.enums import MediaType
from litestar.params import QueryParameter

from butler.server.access.logins import Logins, address_of, with_cookie
from butler.server.access.pages import page
from butler.server.routes.people import need_a_try
from butler.server.services import TheServices

Token = Annotated[str, QueryParameter(description="As it was printed.", max_length=200)]
PRESS: Final = "document.querySelector('form').requestSubmit();\n"
SENDER: Final = "strict-origin"
"""With no-referrer a browser would post the form as coming from nowhere, which is refused."""


@get("/link", include_in_schema=False)
async def show_link(services: TheServices, token: Token = "") -> Response[str]:
    """The button."""
    if services.logins.links is None:
        return _not_here()
    form = (
        '<form method="post" action="/link">'
        f'<input type="hidden" name="token" value="{escape(token, quote=True)}">'
        "<p>This link opens the console once, in this browser.</p>"
        '<button autofocus>Open the console</button></form><script src="/link.js" defer></script>'
    )
    return page("Welcome", form, referrer=SENDER)


@get("/link.js", include_in_schema=False)
async def press() -> Response[str]:
    return Response(PRESS, media_type="text/javascript", headers={"Cache-Control": "no-cache"})


@post("/link", include_in_schema=False, status_code=303, request_max_body_size=4096)
async def use_link(request: Request[Any, Any, Any], services: TheServices) -> Response[Any]:
    """Use the link up, and open the console."""
    logins = services.logins
    if logins.links is None:
        return _not_here()
    need_a_try(logins, request)
    form = parse_qs((await request.body()).decode("ascii", "replace"))
    who = await logins.links.take(form.get("token", [""])[0])
    if who is None:
        return _refused(logins, address_of(request))
    cookie, _ = await logins.let_in(request, who)
    return with_cookie(Response(None, status_code=303, headers={"Location": "/"}, media_type=MediaType.TEXT), cookie)


def _refused(logins: Logins, address: str) -> Response[str]:
    why = "the link is unknown, used or too old"
    logins.tell_refusal("log in", "", "link", status=403, why=why, detail=f"from {address}")
    return page(
        "This link does not open anything",
        "<p>A link works once, and for ten minutes. Get a new one in a terminal, on the machine on which Butler runs:"
        "</p><p><code>butleradm server link</code></p><p><code>make run</code> prints one at each start, too.</p>"
        '<p><a class="go" href="/">To the console</a></p>',
        status=403,
    )


def _not_here() -> Response[str]:
    return page(
        "Links are not taken here",
        '<p>This server wants you to log in.</p><p><a class="go" href="/">Log in</a></p>',
        status=404,
    )


router = Router("/", route_handlers=[show_link, press, use_link])
