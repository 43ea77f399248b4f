"""`butlerctl cluster delete`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit import options
from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run
from butler.cli.toolkit.terminal import say

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster


@click.command("delete", short_help="Delete a cluster with everything on it.")
@click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))
@options.access(options.IN_PLACE)
@options.dry_run
@options.yes
@options.wait(900.0)
def delete(name: str, access: ClusterAccess, dry_run: str, yes: bool, wait: bool, timeout: float) -> None:
    """Delete a cluster with everything on it.

    Shows what goes, and asks for the cluster's name. Then, in this order: its load balancers, addons, control plane,
    machines and namespace, and last its addresses, because a machine that still runs must never share its own. With
    --wait, each stage is shown, and the command returns when the cluster is gone.

    \b
    Examples:
      butlerctl cluster delete web
      butlerctl cluster delete web --yes --wait
      butlerctl cluster delete web --dry-run=client
    """

    async def work(session: CommandSession) -> None:
        from butler.cli.toolkit.objects import read_one
        from butler.cli.toolkit.output import done
        from butler.cli.toolkit.terminal import confirm_by_name
        from butler.kube.kinds import CLUSTERS

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        meta = cluster.metadata
        if meta.deletion_timestamp is None:
            await _tell_what_goes(session, cluster)
            if dry_run == "client":
                done(CLUSTERS, name, "deleted", dry_run)
                return
            if dry_run == "none":
                confirm_by_name("cluster", name, yes=yes)
            await session.client.delete(CLUSTERS, name, meta.namespace, uid=meta.uid, dry_run=dry_run == "server")
            done(CLUSTERS, name, "is being deleted" if dry_run == "none" else "deleted", dry_run)
        else:
            done(CLUSTERS, name, "is being deleted already")
        if wait and dry_run == "none":
            from butler.cli.estate.cluster_progress import wait_until_gone

            await wait_until_gone(session, cluster, timeout)

    run(access, work)


async def _tell_what_goes(session: CommandSession, cluster: TenantCluster) -> None:
    """Say on stderr what is lost."""
    from butler.cli.estate.permissions import PermittedReads
    from butler.cli.toolkit.screen import facts
    from butler.cli.toolkit.session import HOME
    from butler.reports.tenant.summary import tenant

    reads = PermittedReads(session)
    view = tenant(cluster, await reads.allocations(), None, HOME)
    use = view.load_balancers
    held = [f"{block.text} ({block.size})" for block in view.blocks or () if block.range]
    unseen = "" if view.blocks is not None else "not shown: you may not read IPAllocations"
    rows = [
        ("Cluster", f"{view.namespace}/{view.name}, {view.phase.value}, {view.version}"),
        ("Machines", view.workers_wanted),
        ("Services", f"{use.services} with a load-balancer address" if use else ""),
        ("Addresses", ", ".join(held) or unseen or "none"),
    ]
    say(f"This goes for good, with all that runs and is stored on it:\n{facts(rows)}")
