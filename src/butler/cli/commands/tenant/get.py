"""`butleradm tenant get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.objects import LoadedObject
    from butler.cli.toolkit.output import Output


@click.command("get", short_help="Tell all about one cluster of a team, on one screen.")
@click.argument("name", metavar="[NAMESPACE/]NAME", shell_complete=names_of("tenantclusters", everywhere=True))
@options.access("Namespace of the cluster.  [default: wherever there is one of that name]")
@options.output()
def get(name: str, access: ClusterAccess, output: Output) -> None:
    """Tell all about one cluster of a team, on one screen: what its team sees with `butlerctl cluster get`.

    A name alone is looked for in all namespaces; where several have a cluster of that name, say which one.

    \b
    Examples:
      butleradm tenant get web
      butleradm tenant get team-shop/web
      butleradm tenant get web -o yaml
    """
    from butler.cli.tables.clusters import clusters_table

    async def work(session: CommandSession) -> None:
        found = await _find(session, name)
        if not output.is_table:
            clusters_table(namespaces=True).one(found, output)
            return
        from butler.cli.commands.shared.tenant_overview import show_tenant

        await show_tenant(session, found.obj)

    run(access, work)


async def _find(session: CommandSession, text: str) -> LoadedObject[TenantCluster]:
    """The cluster of that name, wherever it is."""
    from difflib import get_close_matches

    from butler.cli.toolkit.objects import read_all, read_one
    from butler.kube.kinds import CLUSTERS

    namespace, _, name = text.rpartition("/")
    given = session.access.namespace
    if namespace and given not in (None, namespace):
        raise click.UsageError(f"{text} is in namespace {namespace}, and -n says {given}: leave one of them out")
    if namespace or given:
        return await read_one(session, CLUSTERS, name, namespace or given or "")
    every = await read_all(session, CLUSTERS, "")
    named = [cluster for cluster in every if cluster.name == name]
    if not named:
        close = get_close_matches(name, {cluster.name for cluster in every}, 3, 0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "`butleradm tenant list` shows all"
        raise Failure(f"there is no TenantCluster {name} in any namespace: {hint}", Exit.NOT_FOUND)
    if len(named) > 1:
        choice = " or ".join(f"{cluster.obj.metadata.namespace}/{name}" for cluster in named)
        raise Failure(f"there are {len(named)} clusters called {name}: say {choice}", Exit.USAGE)
    return named[0]
