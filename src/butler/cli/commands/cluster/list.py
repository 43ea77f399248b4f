"""`butlerctl cluster list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command("list", short_help="List clusters, where they stand and what they hold.")
@options.access(options.IN_PLACE, all_namespaces=True)
@options.selector
@options.watch
@options.output()
def list_(access: ClusterAccess, selector: str | None, watch: bool, output: Output) -> None:
    """List clusters, where they stand and what they hold.

    VERSION is what the control plane runs, with an arrow to where it goes. WORKERS counts those that are ready and
    those that are wanted. LB IPS counts the load-balancer addresses that Services have and those that are held;
    WAITING the Services that have none yet. `-o wide` adds the endpoint, and what is wrong, in words.

    \b
    Examples:
      butlerctl cluster list
      butlerctl cluster list -A -o wide
      butlerctl cluster list --watch
      butlerctl cluster list -o custom-columns=NAME:.metadata.name,PHASE:.status.phase
    """
    from butler.cli.tables.clusters import clusters_table
    from butler.cli.toolkit.follow import follow_table
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import CLUSTERS

    showing = clusters_table(namespaces=access.all_namespaces)

    async def work(session: CommandSession) -> None:
        if watch:
            await follow_table(session, CLUSTERS, session.places, showing, output, selector=selector)
        found = await read_all(session, CLUSTERS, session.places, selector=selector)
        where = "any namespace" if access.all_namespaces else f"namespace {session.place}"
        more = "" if access.all_namespaces else ", -A looks everywhere"
        showing.many(
            found, output, empty=f"There are no clusters in {where}: `butlerctl cluster create` makes one{more}."
        )

    run(access, work)
