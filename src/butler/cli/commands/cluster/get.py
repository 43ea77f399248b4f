"""`butlerctl cluster get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run

if TYPE_CHECKING:
    from butler.cli.toolkit.output import Output


cluster_name = click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))


@click.command("get", short_help="Tell all about one cluster, on one screen.")
@cluster_name
@options.access(options.IN_PLACE)
@options.output()
def get(name: str, access: ClusterAccess, output: Output) -> None:
    """Tell all about one cluster, on one screen.

    First where it stands and why; then its conditions in the order in which they turned, its addresses,
    how many of them its Services use, its addons and what happened lately. Addresses are kept in Butler's own
    namespace; who may not read there sees their numbers only. Other formats give the object as the server has it.

    \b
    Examples:
      butlerctl cluster get web
      butlerctl cluster get web -n team-shop -o yaml
      butlerctl cluster get web -o jsonpath='{.status.controlPlaneEndpoint}'
    """
    from butler.cli.tables.clusters import clusters_table
    from butler.cli.toolkit.objects import read_one
    from butler.kube.kinds import CLUSTERS

    async def work(session: CommandSession) -> None:
        found = await read_one(session, CLUSTERS, name, session.place)
        if not output.is_table:
            clusters_table().one(found, output)
            return
        from butler.cli.commands.shared.tenant_overview import show_tenant

        await show_tenant(session, found.obj)

    run(access, work)
