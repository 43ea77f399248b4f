"""`butlerctl cluster events`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


@click.command("events", short_help="Show what happened to a cluster lately.")
@click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))
@options.access(options.IN_PLACE)
@options.watch
@options.output()
def events(name: str, access: ClusterAccess, watch: bool, output: Output) -> None:
    """Show what happened to a cluster lately, the latest last.

    Only of this very cluster, not of an earlier one of its name. API servers forget events after a while, most after
    an hour.

    \b
    Examples:
      butlerctl cluster events web
      butlerctl cluster events web --watch
      butlerctl cluster events web -o custom-columns=REASON:.reason,MESSAGE:.message
    """

    async def work(session: CommandSession) -> None:
        from butler.cli.estate.events import TOLD, about, events_table, read_events
        from butler.cli.toolkit.follow import follow_table
        from butler.cli.toolkit.objects import read_one
        from butler.kube.kinds import CLUSTERS

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        if watch:
            await follow_table(session, TOLD, session.place, events_table(), output, where=about(cluster))
        empty = f"No event about cluster {name} is kept: `butlerctl cluster get {name}` tells where it stands."
        events_table().many(await read_events(session, cluster), output, empty=empty)

    run(access, work)
