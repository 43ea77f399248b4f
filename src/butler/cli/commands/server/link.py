"""`butleradm server link`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options

if TYPE_CHECKING:
    from butler.cli.toolkit.session import ClusterAccess
from butler.cli.commands.server import IN_RECORDS, RECORDS
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run


@click.command(short_help="Make a link that opens the console on this machine once.")
@options.access(IN_RECORDS)
def link(access: ClusterAccess) -> None:
    """Make a link that opens the console on this machine once, within ten minutes.

    In the console, the person who opens it is the user that the kubeconfig stands for. It has to be a console that
    takes links: that of `make run`, or of `butleradm server run --local`.

    \b
    Examples:
      butleradm server link
      xdg-open "$(butleradm server link)"
    """
    click.echo(run(access, make_link))


async def make_link(session: CommandSession) -> str:
    """A link into the console that runs on this machine, for the user of the kubeconfig."""
    from datetime import UTC, datetime

    from butler.kube.errors import NotFound
    from butler.kube.resource import CONFIGMAPS
    from butler.server.access.links import ADDRESS, Links, link_of
    from butler.server.access.store import open_store

    namespace = session.access.namespace or RECORDS
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
    from urllib.parse import urlsplit

    from butler.server.access.public_url import is_loopback

    try:
        at = urlsplit(url)
        return at.scheme in ("http", "https") and is_loopback(at.hostname or "")
    except ValueError:
        return False
