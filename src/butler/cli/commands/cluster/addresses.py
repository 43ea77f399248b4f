"""`butlerctl cluster addresses`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.output import Output
    from butler.reports.tenant.addresses import TenantAddressReport


@click.command("addresses", short_help="Show every address of a cluster and who has it.")
@click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))
@options.access(options.IN_PLACE)
@options.output("table", "json", "yaml", "jsonpath")
def addresses(name: str, access: ClusterAccess, output: Output) -> None:
    """Show every address of a cluster and who has it.

    The ranges come from Butler; which node or Service has an address is asked of the cluster itself, with the
    kubeconfig that Butler keeps of it. Who may not read one of the two, or whose cluster does not answer, sees the
    other, and what is missing is said.

    IN USE is an address that a node or a Service has, IDLE one that none has. NOT HELD is in use without being the
    cluster's: it was given out by hand.

    \b
    Examples:
      butlerctl cluster addresses web
      butlerctl cluster addresses web -o json
      butlerctl cluster addresses web -o jsonpath='{.waitingServices}'
    """

    async def work(session: CommandSession) -> None:
        from butler.cli.drawings.tenant_addresses import screen
        from butler.cli.toolkit.objects import read_one
        from butler.cli.toolkit.output import structured
        from butler.kube.kinds import CLUSTERS
        from butler.reports.tenant.addresses import addresses_json

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        found = await _look(session, cluster)
        if output.format == "table":
            click.echo(screen(found, cluster.status.load_balancers))
        else:
            structured(addresses_json(found), output)
        for text in found.unseen:
            say(text)

    run(access, work)


async def _look(session: CommandSession, cluster: TenantCluster) -> TenantAddressReport:
    """Ask both sides."""
    import asyncio

    from butler.api.objects import key_of
    from butler.cli.estate.inventories import inventories
    from butler.cli.estate.permissions import PermittedReads
    from butler.reports.tenant.addresses import tenant_addresses
    from butler.reports.tenant.summary import blocks
    from butler.rules.loadbalancer.policy import terms_of

    reads = PermittedReads(session)
    allocations, provider, asked = await asyncio.gather(
        reads.allocations(), reads.provider(cluster), inventories(session, [cluster])
    )
    return tenant_addresses(
        cluster.metadata.namespace,
        cluster.metadata.name,
        None if allocations is None else blocks(cluster, allocations),
        asked[key_of(cluster)],
        served_class=terms_of(cluster, provider).served_class if provider else "",
        unseen=[reads.note] if allocations is None else (),
    )
