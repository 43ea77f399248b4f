"""Ways into the console that are made at a terminal: links and passwords. The server itself is not loaded for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from butler.cli.frame.exits import Exit
from butler.cli.frame.session import Failure, Session
from butler.kube.errors import NotFound
from butler.kube.resource import CONFIGMAPS
from butler.server.access.links import ADDRESS, Links, link_of
from butler.server.access.passwords import reset_admin
from butler.server.access.records import NAMESPACE
from butler.server.access.sessions import RESERVED
from butler.server.access.store import open_store
from butler.server.access.where import is_loopback

if TYPE_CHECKING:
    from butler.server.access.passwords import Admin


async def make_link(session: Session) -> str:
    """A link into the console that runs on this machine, as whoever asks."""
    namespace = session.access.namespace or NAMESPACE
    try:
        found = await session.client.get(CONFIGMAPS, ADDRESS, namespace)
    except NotFound:
        raise Failure(
            f"no console of namespace {namespace} takes links: `make run` or `butleradm server run --local` has one",
            Exit.NOT_FOUND,
        ) from None
    url = str((found.get("data") or {}).get("url") or "")
    if not is_on_this_machine(url):
        raise Failure(
            f"ConfigMap {namespace}/{ADDRESS} says that the console is at {url!r}, which is not this machine: a link"
            " there would let that server in; start the console again, which writes the ConfigMap anew"
        )
    store = await open_store(session.client, namespace)
    return link_of(url, await Links(store, now=lambda: datetime.now(UTC)).make())


def is_on_this_machine(url: str) -> bool:
    """Whether it is the address of a server on this machine, as one that takes links always is. Pure."""
    try:
        at = urlsplit(url)
        return at.scheme in ("http", "https") and is_loopback(at.hostname or "")
    except ValueError:
        return False


async def new_password(
    session: Session, login: str | None, user: str | None, groups: tuple[str, ...]
) -> tuple[Admin, str]:
    """The local administrator's account with a new password."""
    for group in (user or "", *groups):
        if group.lower().startswith(RESERVED):
            raise click.UsageError(f"{group} is a name that Kubernetes keeps for itself: bind a role to another one")
    store = await open_store(session.client, session.access.namespace or NAMESPACE)
    return await reset_admin(store, login=login, user=user, groups=groups)
