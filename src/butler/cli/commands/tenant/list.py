"""`butleradm tenant list`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.output import Output


EVERYWHERE = "Only clusters of this namespace.  [default: all]"


@click.command("list", short_help="List the clusters of all teams, what they hold and what is wrong.")
@options.access(EVERYWHERE)
@options.selector
@options.watch
@options.output()
def list_(access: ClusterAccess, selector: str | None, watch: bool, output: Output) -> None:
    """List the clusters of all teams, what they hold and what is wrong.

    NODE IPS and LB IPS count the addresses that a cluster holds, IN USE the load-balancer addresses that its Services
    have, WAITING the Services that have none. TROUBLE says in words what an administrator should look at; a cluster
    that is only on its way has none. With --watch, NODE IPS is left out: allocations are not followed.

    \b
    Examples:
      butleradm tenant list
      butleradm tenant list -n team-shop -o wide
      butleradm tenant list --watch
    """
    from butler.cli.estate.permissions import PermittedReads
    from butler.cli.tables.clusters import tenants_table
    from butler.cli.toolkit.follow import follow_table
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import CLUSTERS
    from butler.rules.provider.placement import placement

    where = access.namespace or ""

    async def work(session: CommandSession) -> None:
        reads = PermittedReads(session)
        providers = await reads.providers() or {}

        def place(cluster: TenantCluster) -> ProviderConfig | None:
            key = placement(cluster, providers, HOME)
            return providers.get(key) if key else None

        if watch:
            showing = tenants_table(place, None, HOME)
            await follow_table(session, CLUSTERS, where, showing, output, selector=selector)
        found = await read_all(session, CLUSTERS, where, selector=selector)
        showing = tenants_table(place, await reads.allocations(), HOME)
        named = f"namespace {where}" if where else "any namespace"
        showing.many(found, output, empty=f"There are no tenants in {named}: `butlerctl cluster create` makes one.")
        if reads.note and output.is_table:
            say(reads.note)

    run(access, work)
