"""All ways to log in, put together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from litestar import Request, Response
from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie

from butler.kube.errors import KubeError
from butler.server import audit
from butler.server.access.links import Links
from butler.server.access.oidc import Oidc
from butler.server.access.passwords import Passwords
from butler.server.access.person import Person
from butler.server.access.public_url import PublicUrl
from butler.server.access.sessions import Identity, Sessions
from butler.server.problems import RequestRefused
from butler.server.rate_limit import Limit

log = logging.getLogger(__name__)
SWEEP_EVERY: Final = 600.0


@dataclass(frozen=True, slots=True)
class Logins:
    """Who is in, and how one comes in."""

    where: PublicUrl
    sessions: Sessions
    links: Links | None
    """None: links are not taken here."""
    passwords: Passwords | None
    """None: there is no local administrator."""
    oidc: Oidc | None
    tries: Limit
    """For each address: how often it may try to come in."""
    now: Callable[[], datetime]

    async def who(self, connection: ASGIConnection[Any, Any, Any, Any]) -> Person | None:
        token = connection.cookies.get(self.where.session_cookie)
        return await self.sessions.find(token) if token else None

    async def let_in(self, request: Request[Any, Any, Any], identity: Identity) -> tuple[Cookie, Person]:
        """Begin a session, end the one that the browser had, and write it down."""
        before = await self.who(request)
        if before is not None:
            await self.sessions.end(before, before.session)
        token, person = await self.sessions.begin(identity, request.headers.get("user-agent", ""))
        self.tell("log in", person, detail=f"from {address_of(request)}")
        return self._cookie(token), person

    async def let_out(self, person: Person) -> Cookie:
        await self.sessions.end(person, person.session)
        self.tell("log out", person)
        return self._cookie("", max_age=0)

    async def keep_sweeping(self) -> None:
        """Delete what is over, from time to time. Every replica may: to delete twice is to delete once."""
        while True:
            try:
                await self.sessions.sweep()
                for links in (self.links, self.oidc):
                    if links is not None:
                        await links.sweep()
            except KubeError as error:
                log.info("sessions that are over stay for now: %s", error)
            await asyncio.sleep(SWEEP_EVERY)

    def login_cookie(self, sealed: str, max_age: int) -> Cookie:
        """What a browser carries to the provider's page and back; it comes back from another site."""
        return self._kept(self.where.login_cookie, sealed, "lax", max_age)

    def _cookie(self, token: str, max_age: int | None = None) -> Cookie:
        return self._kept(self.where.session_cookie, token, "strict", max_age)

    def _kept(self, name: str, value: str, sites: Literal["lax", "strict"], max_age: int | None) -> Cookie:
        return Cookie(
            key=name,
            value=value,
            path="/",
            httponly=True,
            secure=self.where.secure,
            samesite=sites,
            max_age=max_age,
        )

    def tell(self, verb: str, person: Person, *, detail: str = "", name: str = "") -> None:
        """One line of the audit about a session."""
        self._write(verb, person.user, person.groups, person.via, person.session, detail, "done", 200, "", name)

    def tell_refusal(self, verb: str, user: str, via: str, *, status: int, why: str, detail: str) -> None:
        """One line of the audit about a user who was not let in; `user` only where it is known to be a name."""
        self._write(verb, user, (), via, "", detail, "refused", status, why, "")

    def tell_forgery(self, person: Person, what: str, refused: RequestRefused) -> None:
        """One line of the audit about a request that some other page made in a user's name."""
        why = refused.detail
        self._write("ask", person.user, person.groups, person.via, person.session, what, "refused", 403, why, "")

    def _write(
        self,
        verb: str,
        user: str,
        groups: tuple[str, ...],
        via: str,
        session: str,
        detail: str,
        outcome: audit.Outcome,
        status: int,
        message: str,
        name: str,
    ) -> None:
        entry = audit.AuditEntry(
            time=self.now(),
            user=user,
            groups=groups,
            via=via,
            session=session,
            verb=verb,
            kind="Session",
            namespace="",
            name=name or session,
            detail=detail,
            outcome=outcome,
            status=status,
            message=message,
        )
        audit.write_line(entry)


def address_of(request: ASGIConnection[Any, Any, Any, Any]) -> str:
    return str(request.scope["state"].get("address", ""))


def with_cookie(response: Response[Any], *cookies: Cookie) -> Response[Any]:
    for cooky in cookies:
        response.set_cookie(cooky)
    return response
