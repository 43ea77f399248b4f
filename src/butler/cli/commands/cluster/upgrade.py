"""`butlerctl cluster upgrade`."""

from __future__ import annotations

import click

from butler.cli.commands.shared.cluster_change import change_cluster, cluster_name, refuse_leaving
from butler.cli.toolkit import options
from butler.cli.toolkit.session import ClusterAccess, CommandSession, Failure, run


@click.command("upgrade", short_help="Bring a cluster to another version of Kubernetes.")
@cluster_name
@click.option("--version", "version", metavar="V", required=True, help="Such as v1.34.1.")
@options.access(options.IN_PLACE)
@options.dry_run
@options.wait(1800.0)
def upgrade(name: str, version: str, access: ClusterAccess, dry_run: str, wait: bool, timeout: float) -> None:
    """Bring a cluster to another version of Kubernetes.

    First the control plane, then the workers, which are replaced one after the other. A version goes up by one minor
    version at a time and never back; Butler would refuse anything else, and so does this command.

    \b
    Examples:
      butlerctl cluster upgrade web --version v1.34.1
      butlerctl cluster upgrade web --version v1.34.1 --wait
    """

    async def work(session: CommandSession) -> None:
        from butler.cli.toolkit.objects import read_one
        from butler.kube.kinds import CLUSTERS
        from butler.rules.blocked import Blocked
        from butler.rules.tenant.versions import Version, next_versions

        if not version.startswith("v") or str(Version.read(version)) != version:
            raise click.UsageError(f"{version!r} is no version: write it as in v1.34.1")
        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        refuse_leaving(cluster)
        wanted = cluster.spec.kubernetes_version
        if wanted == version:
            click.echo(f"cluster {name} is to run {version} already; nothing was changed")
            return
        seen = cluster.status.observed_state
        runs = (seen.kubernetes_version if seen else None) or wanted
        # What the workers were told is not known here, and makes no difference to whether the version can be reached.
        outcome = next_versions(version, runs, None)
        if isinstance(outcome, Blocked):
            raise Failure(f"{outcome.message.removeprefix('spec.kubernetesVersion: ')}; nothing was changed")
        said = f"upgraded from {wanted} to {version}"
        await change_cluster(session, cluster, {"kubernetesVersion": version}, said, dry_run, timeout if wait else None)

    run(access, work)
