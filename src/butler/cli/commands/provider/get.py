"""`butleradm provider get`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import HOME, ClusterAccess, CommandSession, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.providerconfig import ProviderConfig
    from butler.cli.toolkit.output import Output


IN_HOME = f"Namespace of the provider.  [default: {HOME}]"


@click.command("get", short_help="Tell all about one provider, on one screen.")
@click.argument("name", shell_complete=names_of("providerconfigs"))
@options.access(IN_HOME)
@options.output()
def get(name: str, access: ClusterAccess, output: Output) -> None:
    """Tell all about one provider, on one screen.

    Whether clusters can be put there and why not; its pools in the order in which they are tried, what they are for
    and how full they are; what a tenant gets and may have; and the clusters that are on it. The room is counted now,
    not taken from the status. Other formats give the object as the server has it.

    \b
    Examples:
      butleradm provider get harvester-production
      butleradm provider get harvester-production -o yaml
    """
    from butler.cli.tables.providers import providers_table
    from butler.cli.toolkit.objects import read_one
    from butler.kube.kinds import PROVIDERS

    async def work(session: CommandSession) -> None:
        found = await read_one(session, PROVIDERS, name, session.home)
        if output.is_table:
            await _show(session, found.obj)
        else:
            providers_table().one(found, output)

    run(access, work)


async def _show(session: CommandSession, config: ProviderConfig) -> None:
    import asyncio
    from datetime import UTC, datetime

    from butler.api.objects import key_of
    from butler.cli.drawings.provider import screen
    from butler.cli.estate.permissions import PermittedReads
    from butler.cli.toolkit.objects import read_all
    from butler.kube.kinds import CLUSTERS
    from butler.reports.provider.summary import provider_view

    reads = PermittedReads(session)
    pools = await reads.pools()
    allocations, providers, clusters = await asyncio.gather(
        reads.allocations(),
        reads.providers(),
        reads.allowed(read_all(session, CLUSTERS, ""), "TenantClusters", "all namespaces"),
    )
    known = {key_of(config), *(providers or {})}
    on_it = None if clusters is None else [cluster.obj for cluster in clusters]
    view = provider_view(config, pools or (), allocations if pools is not None else None, on_it, known, HOME)
    click.echo(screen(config, view, datetime.now(UTC)))
    if reads.note:
        say(reads.note)
