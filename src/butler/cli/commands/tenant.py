"""`butleradm tenant`: the clusters of all teams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.frame import options
from butler.cli.frame.exits import Exit
from butler.cli.frame.lazy import CONTEXT
from butler.cli.frame.names import names_of
from butler.cli.frame.session import HOME, Access, Failure, Session, run
from butler.cli.frame.terminal import say

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.frame.output import Output
    from butler.cli.frame.reading import Item

EVERYWHERE = "Only clusters of this namespace.  [default: all]"


@click.group(context_settings=CONTEXT)
def tenant() -> None:
    """The clusters of all teams."""


@tenant.command("list", short_help="List the clusters of all teams, what they hold and what is wrong.")
@options.access(EVERYWHERE)
@options.selector
@options.watch
@options.output()
def list_(access: Access, selector: str | None, watch: bool, output: Output) -> None:
    """List the clusters of all teams, what they hold and what is wrong.

    NODE IPS and LB IPS count the addresses that a cluster holds, IN USE the load-balancer addresses that its Services
    have, WAITING the Services that have none. TROUBLE says in words what somebody should look at; a cluster that is
    only on its way has none. With --watch, NODE IPS is left out: allocations are not followed.

    \b
    Examples:
      butleradm tenant list
      butleradm tenant list -n team-shop -o wide
      butleradm tenant list --watch
    """
    from butler.cli.frame.following import follow_table
    from butler.cli.frame.reading import read_all
    from butler.cli.seeing import Sight
    from butler.cli.tables.clusters import tenants_table
    from butler.kube.kinds import CLUSTERS
    from butler.rules.provider.placement import placement

    where = access.namespace or ""

    async def work(session: Session) -> None:
        sight = Sight(session)
        providers = await sight.providers() or {}

        def place(cluster: TenantCluster) -> ProviderConfig | None:
            key = placement(cluster, providers, HOME)
            return providers.get(key) if key else None

        if watch:
            showing = tenants_table(place, None, HOME)
            await follow_table(session, CLUSTERS, where, showing, output, selector=selector)
        found = await read_all(session, CLUSTERS, where, selector=selector)
        showing = tenants_table(place, await sight.allocations(), HOME)
        named = f"namespace {where}" if where else "any namespace"
        showing.many(found, output, empty=f"There are no tenants in {named}: `butlerctl cluster create` makes one.")
        if sight.note and output.is_table:
            say(sight.note)

    run(access, work)


@tenant.command("get", short_help="Tell all about one cluster of a team, on one screen.")
@click.argument("name", metavar="[NAMESPACE/]NAME", shell_complete=names_of("tenantclusters", everywhere=True))
@options.access("Namespace of the cluster.  [default: wherever there is one of that name]")
@options.output()
def get(name: str, access: Access, output: Output) -> None:
    """Tell all about one cluster of a team, on one screen: what its team sees with `butlerctl cluster get`.

    A name alone is looked for in all namespaces; where several have a cluster of that name, say which one.

    \b
    Examples:
      butleradm tenant get web
      butleradm tenant get team-shop/web
      butleradm tenant get web -o yaml
    """
    from butler.cli.tables.clusters import clusters_table

    async def work(session: Session) -> None:
        found = await _find(session, name)
        if not output.is_table:
            clusters_table(namespaces=True).one(found, output)
            return
        from butler.cli.tenants import show_tenant

        await show_tenant(session, found.obj)

    run(access, work)


async def _find(session: Session, text: str) -> Item[TenantCluster]:
    """The cluster of that name, wherever it is."""
    from difflib import get_close_matches

    from butler.cli.frame.reading import read_all, read_one
    from butler.kube.kinds import CLUSTERS

    namespace, _, name = text.rpartition("/")
    given = session.access.namespace
    if namespace and given not in (None, namespace):
        raise click.UsageError(f"{text} is in namespace {namespace}, and -n says {given}: leave one of them out")
    if namespace or given:
        return await read_one(session, CLUSTERS, name, namespace or given or "")
    every = await read_all(session, CLUSTERS, "")
    named = [item for item in every if item.name == name]
    if not named:
        close = get_close_matches(name, {item.name for item in every}, 3, 0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "`butleradm tenant list` shows all"
        raise Failure(f"there is no TenantCluster {name} in any namespace: {hint}", Exit.NOT_FOUND)
    if len(named) > 1:
        choice = " or ".join(f"{item.obj.metadata.namespace}/{name}" for item in named)
        raise Failure(f"there are {len(named)} clusters called {name}: say {choice}", Exit.USAGE)
    return named[0]
