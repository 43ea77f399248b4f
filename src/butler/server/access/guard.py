"""What stands before every route, known or not: in this order, as plain ASGI around the whole application.

    1. the Host is ours, and the request came over https where it has to
    2. no address asks too often
    3. who is it? (`scope["user"]`)
    4. a page of another site may not make them do anything: Origin, Sec-Fetch-Site, and the session's CSRF token
    5. nothing below /api/ answers without a session, but for the few paths by which users log in

A WebSocket has to come from a page of ours, and is refused before it is accepted; it ends soon after its session does.
Every answer leaves with headers that tell browsers to be strict; a route may have said something stricter or, for
pages, more exact.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from litestar.connection import ASGIConnection
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from butler.kube.errors import KubeError
from butler.server.access.person import Person
from butler.server.access.public_url import PublicUrl, client_address, sent_by_another
from butler.server.problems import MEDIA_TYPE, RequestRefused, from_kubernetes, problem
from butler.server.rate_limit import Limit

Who = Callable[[ASGIConnection[Any, Any, Any, Any]], Awaitable[Person | None]]
"""Tells who sends a request; None without a session."""
API: Final = "/api/"
PROBES: Final = ("/healthz", "/readyz")
OPEN: Final = frozenset(
    {
        "/api/v1/login-methods",
        "/api/v1/login/password",
        "/api/v1/login/oidc",
        "/api/v1/login/oidc/callback",
    }
)
"""The paths below /api/ that answer without a session: users log in by these."""
WITHOUT_SESSION: Final = OPEN | {"/link"}
"""What may be posted without a CSRF token, as there is no session that it could belong to."""
SAFE: Final = ("GET", "HEAD", "OPTIONS")
LOOK_AGAIN: Final = 4.0
"""How often an open WebSocket asks whether its session still is."""
SESSION_OVER: Final = 4401
MOST_AT_ONCE: Final = 200
"""Requests of one person that are answered at once."""

HEADERS: Final = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-embedder-policy": "require-corp",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cache-control": "no-store",
}
HSTS: Final = "max-age=31536000"


@dataclass(frozen=True, slots=True)
class Guard:
    """The application with everything before it."""

    app: ASGIApp
    where: PublicUrl
    who: Who
    usual: Limit
    """For everything that an address asks."""
    still: Callable[[Person], Awaitable[bool]] | None = None
    """Whether a person's session goes on; None: for ever."""
    tell: Callable[[Person, str, RequestRefused], None] | None = None
    """Writes down what was refused in a user's name."""
    under_way: Counter[str] = field(default_factory=Counter)
    """Requests of each person."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        if kind == "lifespan":
            await self.app(scope, receive, send)
            return
        strict = self._strict(send)
        try:
            await self._admit(scope)
        except RequestRefused as refused:
            self._write_down(scope, refused)
            await _refuse(scope, strict, refused)
            return
        person = scope.get("user")
        if kind == "websocket" and isinstance(person, Person):
            await self._while_it_lasts(scope, receive, send, person)
        elif isinstance(person, Person):
            await self._as_one_of_few(person.user, scope, receive, strict)
        else:
            await self._to_the_end(scope, receive, strict)

    async def _as_one_of_few(self, user: str, scope: Scope, receive: Receive, send: Send) -> None:
        """A request of a person, of whom so many are answered at once."""
        if self.under_way[user] >= MOST_AT_ONCE:
            await _refuse(scope, send, too_many(1.0))
            return
        self.under_way[user] += 1
        try:
            await self._to_the_end(scope, receive, send)
        finally:
            self.under_way[user] -= 1
            if not self.under_way[user]:
                del self.under_way[user]

    async def _to_the_end(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request; one that takes longer than a server that is stopped waits is told so."""
        answered = False

        async def noting(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except asyncio.CancelledError:
            if answered:
                raise
            said = "this server is being stopped: look whether it was done, then try again in a moment"
            await _refuse(scope, send, RequestRefused(503, said, headers={"Retry-After": "2"}))

    async def _admit(self, scope: Scope) -> None:
        """Sets who it is; raises `Refused` for what no route shall see."""
        scope["user"] = None
        if scope["path"] in PROBES:
            return  # a kubelet asks by the pod's address, and learns nothing
        if "//" in scope["path"]:
            raise RequestRefused(
                404, "there is nothing here"
            )  # routes would take it for the path without, and it is not
        connection: ASGIConnection[Any, Any, Any, Any] = ASGIConnection(scope)
        sent = connection.headers
        host = sent.get("host", "").lower()
        if host not in self.where.hosts:
            raise RequestRefused(421, f"this server is not called {host[:100]!r}: open {self.where.url}")
        if self.where.behind_proxy and sent.get("x-forwarded-proto", "https") != "https":
            raise RequestRefused(308, f"open {self.where.url}", headers={"Location": self.where.url})
        address = client_address(self.where, scope["client"][0] if scope["client"] else "", sent.get("x-forwarded-for"))
        scope.setdefault("state", {})["address"] = address
        if (wait := self.usual.take(address)) > 0:
            raise too_many(wait)
        try:
            person = await self.who(connection)
        except KubeError as error:
            raise from_kubernetes(error) from error
        scope["user"] = person
        needs_person = scope["path"].startswith(API) and scope["path"].rstrip("/") not in OPEN
        if person is None and needs_person:
            raise RequestRefused(401, "you are not logged in: open the link that Butler printed, or log in")
        self._check_sender(scope, connection, host, person)

    def _check_sender(
        self, scope: Scope, connection: ASGIConnection[Any, Any, Any, Any], host: str, person: Person | None
    ) -> None:
        kind: str = scope["type"]
        sent, socket = connection.headers, kind == "websocket"
        origin = sent.get("origin")
        if scope.get("method") in SAFE:
            return
        site = sent.get("sec-fetch-site")
        if sent_by_another(self.where, host=host, origin=origin, site=site) or (socket and origin is None):
            raise RequestRefused(
                403, f"this came from a page that is not Butler's: open {self.where.url} and do it there"
            )
        if socket or scope["path"] in WITHOUT_SESSION:
            return
        token = person.csrf_token if person is not None else ""
        if not token or not hmac.compare_digest(sent.get("x-csrf-token", "").encode(), token.encode()):
            raise RequestRefused(403, "the header X-CSRF-Token is not the one of your session: load the page again")

    def _write_down(self, scope: Scope, refused: RequestRefused) -> None:
        """A request in a user's name that they did not send themselves is worth a line."""
        person = scope.get("user")
        if self.tell is not None and isinstance(person, Person) and refused.status == 403:
            method = scope.get("method", "WebSocket")
            self.tell(person, f"{method} {scope['path'][:200]} from {scope['state']['address']}", refused)

    def _strict(self, send: Send) -> Send:
        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                given = list(message.get("headers") or ())
                known = {name.lower() for name, _ in given}
                given += [header for header in self._headers() if header[0] not in known]
                message["headers"] = given
            await send(message)

        return with_headers

    def _headers(self) -> Iterable[tuple[bytes, bytes]]:
        for name, value in HEADERS.items():
            yield name.encode(), value.encode()
        if self.where.secure:
            yield b"strict-transport-security", HSTS.encode()

    async def _while_it_lasts(self, scope: Scope, receive: Receive, send: Send, person: Person) -> None:
        """A WebSocket, until it ends or its session does."""
        closed = False

        async def noting(message: Message) -> None:
            nonlocal closed
            closed = closed or message["type"] == "websocket.close"
            await send(message)

        running = asyncio.ensure_future(_called(self.app, scope, receive, self._strict(noting)))
        try:
            while not running.done():
                await asyncio.wait({running}, timeout=LOOK_AGAIN)
                if not running.done() and not await self._goes_on(person):
                    break
        finally:
            running.cancel()
            ended = await asyncio.gather(running, return_exceptions=True)
        if isinstance(ended[0], Exception):
            raise ended[0]
        if isinstance(ended[0], asyncio.CancelledError) and not closed:
            with contextlib.suppress(Exception):  # the browser may have gone at the same moment
                await send({"type": "websocket.close", "code": SESSION_OVER, "reason": "the session is over"})

    async def _goes_on(self, person: Person) -> bool:
        try:
            return self.still is None or await self.still(person)
        except KubeError:
            return True  # unknown: the API server is away, and nothing new comes over this stream


async def _called(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def too_many(wait: float) -> RequestRefused:
    seconds = max(1, round(wait + 0.5))
    return RequestRefused(
        429, f"too many tries: wait {seconds} s, then try again", headers={"Retry-After": str(seconds)}
    )


async def _refuse(scope: Scope, send: Send, refused: RequestRefused) -> None:
    """Answer at once, and for a WebSocket before it is one."""
    body = msgspec.json.encode(problem(refused.status, refused.detail, refused.fields))
    headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in refused.headers.items()]
    kind: str = scope["type"]
    if kind == "websocket" and "websocket.http.response" not in (scope.get("extensions") or {}):
        await send({"type": "websocket.close", "code": SESSION_OVER, "reason": ""})
        return
    before = "websocket." if kind == "websocket" else ""
    start: Any = {"type": f"{before}http.response.start", "status": refused.status, "headers": headers}
    end: Any = {"type": f"{before}http.response.body", "body": body}
    await send(start)
    await send(end)
