"""Ways into the console that are made at a terminal: links and passwords. The server itself is not loaded for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from butler.cli.frame.exits import Exit
from butler.cli.frame.session import Failure, Session
from butler.kube.errors import NotFound
from butler.kube.resource import CONFIGMAPS
from butler.server.access.keys import shared_key
from butler.server.access.links import ADDRESS, Links, link_of
from butler.server.access.passwords import reset_admin
from butler.server.access.sessions import RESERVED

if TYPE_CHECKING:
    from butler.server.access.passwords import Admin


async def make_link(session: Session) -> str:
    """A link into the console that runs on this machine, as whoever asks."""
    try:
        found = await session.client.get(CONFIGMAPS, ADDRESS, session.home)
    except NotFound:
        raise Failure(
            f"no console in namespace {session.home} takes links: `make run` or `butleradm server run --local` has one",
            Exit.NOT_FOUND,
        ) from None
    key = await shared_key(session.client, session.home)
    token = await Links(session.client, session.home, key, now=lambda: datetime.now(UTC)).make()
    return link_of((found.get("data") or {}).get("url") or "", token)


async def new_password(
    session: Session, login: str | None, user: str | None, groups: tuple[str, ...]
) -> tuple[Admin, str]:
    """The local administrator's account with a new password."""
    for each in (user or "", *groups):
        if each.lower().startswith(RESERVED):
            raise click.UsageError(f"{each} is a name that Kubernetes keeps for itself: bind a role to another one")
    return await reset_admin(session.client, session.home, login=login, user=user, groups=groups)
