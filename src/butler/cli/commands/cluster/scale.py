"""`butlerctl cluster scale`."""

from __future__ import annotations

import click

from butler.cli.commands.shared.cluster_change import change_cluster, cluster_name, refuse_leaving
from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, run
from butler.cli.toolkit.terminal import confirm, say


@click.command("scale", short_help="Change how many workers a cluster has.")
@cluster_name
@click.option("--workers", type=click.IntRange(1, 5000), metavar="N", required=True, help="How many machines.")
@options.access(options.IN_PLACE)
@options.dry_run
@options.yes
@options.wait(900.0)
def scale(name: str, workers: int, access: ClusterAccess, dry_run: str, yes: bool, wait: bool, timeout: float) -> None:
    """Change how many workers a cluster has.

    More workers may need more addresses: those that the cluster would get are shown first. On Harvester a cluster
    keeps the block that it began with, and more workers than that has addresses are refused, as Butler itself would.

    Fewer workers means that machines are deleted, with what is stored on them: how many is shown, and asked about.

    \b
    Examples:
      butlerctl cluster scale web --workers 5
      butlerctl cluster scale web --workers 5 --wait
      butlerctl cluster scale web --workers 2 --yes
      butlerctl cluster scale web --workers 500 --dry-run=server
    """

    async def work(session: CommandSession) -> None:
        import msgspec

        from butler.cli.estate.address_preview import tell_preview
        from butler.cli.toolkit.objects import read_one
        from butler.kube.kinds import CLUSTERS

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        refuse_leaving(cluster)
        before = cluster.spec.workers.replicas
        if before == workers:
            click.echo(f"cluster {name} has {workers} workers already; nothing was changed")
            return
        if workers > before:
            fleet = msgspec.structs.replace(cluster.spec.workers, replicas=workers)
            spec = msgspec.structs.replace(cluster.spec, workers=fleet)
            await tell_preview(session, msgspec.structs.replace(cluster, spec=spec), new=False)
        else:
            go = before - workers
            say(f"{go} machine{'s go' if go > 1 else ' goes'}, with all that is stored there.")
            confirm(f"Scale cluster {name} from {before} to {workers} workers?", yes=yes or dry_run != "none")
        said = f"scaled from {before} to {workers} workers"
        await change_cluster(
            session, cluster, {"workers": {"replicas": workers}}, said, dry_run, timeout if wait else None
        )

    run(access, work)
