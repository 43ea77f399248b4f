"""`butleradm pool list`: all pools, a row each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command("list", short_help="List pools and how full they are.")
@options.access(all_namespaces=True)
@options.selector
@options.watch
@options.output()
def list_(access: ClusterAccess, selector: str | None, watch: bool, output: Output) -> None:
    """List pools and how full they are.

    USE is the part of the addresses that tenants hold; LARGEST the longest run of free ones, and so the largest
    request that can be met now.

    \b
    Examples:
      butleradm pool list
      butleradm pool list -o wide --watch
      butleradm pool list -o custom-columns=NAME:.metadata.name,FREE:.status.availableIPs
    """
    from butler.cli.tables.pools import pools_table
    from butler.cli.toolkit.follow import follow_table
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import POOLS

    showing = pools_table(namespaces=access.all_namespaces)

    async def work(session: CommandSession) -> None:
        if watch:
            await follow_table(session, POOLS, session.homes, showing, output, selector=selector)
        found = await read_all(session, POOLS, session.homes, selector=selector)
        where = "any namespace" if access.all_namespaces else f"namespace {session.home}"
        showing.many(found, output, empty=f"There are no pools in {where}. `butleradm pool create` makes one.")

    run(access, work)
