"""`butleradm provider list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


IN_HOME = f"Namespace of the provider.  [default: {HOME}]"


@click.command("list", short_help="List providers, and how many tenants they have room for.")
@options.access(IN_HOME, all_namespaces=True)
@options.selector
@options.watch
@options.output()
def list_(access: ClusterAccess, selector: str | None, watch: bool, output: Output) -> None:
    """List providers, and how many tenants they have room for.

    MODE is ipam where Butler hands out addresses, cloud where the provider does. ROOM is about how many more tenants
    the pools have addresses for, each of the usual size. POOLS are named in the order in which they are tried. `-o
    wide` adds who may use it, whether it answers, and why it is not ready.

    \b
    Examples:
      butleradm provider list
      butleradm provider list -o wide --watch
    """
    from butler.cli.tables.providers import providers_table
    from butler.cli.toolkit.follow import follow_table
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import PROVIDERS

    showing = providers_table(namespaces=access.all_namespaces)

    async def work(session: CommandSession) -> None:
        if watch:
            await follow_table(session, PROVIDERS, session.homes, showing, output, selector=selector)
        found = await read_all(session, PROVIDERS, session.homes, selector=selector)
        where = "any namespace" if access.all_namespaces else f"namespace {session.home}"
        hint = "`butleradm provider create --example harvester` prints one to start from"
        showing.many(found, output, empty=f"There are no providers in {where}: {hint}.")

    run(access, work)
