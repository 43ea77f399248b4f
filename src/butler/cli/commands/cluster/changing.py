"""`butlerctl cluster scale` and `upgrade`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.frame import options
from butler.cli.frame.names import names_of
from butler.cli.frame.session import Access, Failure, Session, run
from butler.cli.frame.terminal import confirm, say

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster

ATTEMPTS = 4
"""How often a change is sent that only crossed with a write of the status."""
cluster_name = click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))


@click.command("scale", short_help="Change how many workers a cluster has.")
@cluster_name
@click.option("--workers", type=click.IntRange(1, 5000), metavar="N", required=True, help="How many machines.")
@options.access(options.IN_PLACE)
@options.dry_run
@options.yes
@options.wait(900.0)
def scale(name: str, workers: int, access: Access, dry_run: str, yes: bool, wait: bool, timeout: float) -> None:
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

    async def work(session: Session) -> None:
        import msgspec

        from butler.cli.frame.reading import read_one
        from butler.cli.previews import tell_preview
        from butler.kube.kinds import CLUSTERS

        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        _refuse_leaving(cluster)
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
        await _change(session, cluster, {"workers": {"replicas": workers}}, said, dry_run, timeout if wait else None)

    run(access, work)


@click.command("upgrade", short_help="Bring a cluster to another version of Kubernetes.")
@cluster_name
@click.option("--version", "version", metavar="V", required=True, help="Such as v1.34.1.")
@options.access(options.IN_PLACE)
@options.dry_run
@options.wait(1800.0)
def upgrade(name: str, version: str, access: Access, dry_run: str, wait: bool, timeout: float) -> None:
    """Bring a cluster to another version of Kubernetes.

    First the control plane, then the workers, which are replaced one after the other. A version goes up by one minor
    version at a time and never back; Butler would refuse anything else, and so does this command.

    \b
    Examples:
      butlerctl cluster upgrade web --version v1.34.1
      butlerctl cluster upgrade web --version v1.34.1 --wait
    """

    async def work(session: Session) -> None:
        from butler.cli.frame.reading import read_one
        from butler.kube.kinds import CLUSTERS
        from butler.rules.tenant.blocked import Blocked
        from butler.rules.tenant.versions import Version, next_versions

        if not version.startswith("v") or str(Version.read(version)) != version:
            raise click.UsageError(f"{version!r} is no version: write it as in v1.34.1")
        cluster = (await read_one(session, CLUSTERS, name, session.place)).obj
        _refuse_leaving(cluster)
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
        await _change(session, cluster, {"kubernetesVersion": version}, said, dry_run, timeout if wait else None)

    run(access, work)


def _refuse_leaving(cluster: TenantCluster) -> None:
    if cluster.metadata.deletion_timestamp is not None:
        raise Failure(f"cluster {cluster.metadata.name} is being deleted, and cannot be changed any more")


async def _change(
    session: Session, cluster: TenantCluster, spec: Json, said: str, dry_run: str, timeout: float | None
) -> None:
    """Write a change of what was read, and of nothing that somebody else made of it; follow it where asked to."""
    from butler.cli.frame.output import done
    from butler.kube.kinds import CLUSTERS

    name = cluster.metadata.name
    if dry_run == "client":
        done(CLUSTERS, name, said, dry_run)
        return
    written = await _patched(session, cluster, spec, dry_run=dry_run == "server")
    done(CLUSTERS, name, said, dry_run)
    if timeout is not None and dry_run == "none":
        from butler.cli.following_clusters import wait_until_ready

        await wait_until_ready(session, written, timeout)


async def _patched(session: Session, cluster: TenantCluster, spec: Json, *, dry_run: bool) -> TenantCluster:
    """The cluster with a change; Conflict when somebody else changed it since it was read.

    Butler writes to its status all the time, which leaves the generation as it was: then the change is sent again.
    """
    from butler.cli.frame.reading import as_json, item, read_one
    from butler.kube.errors import Conflict
    from butler.kube.kinds import CLUSTERS

    seen, left = cluster.metadata, ATTEMPTS
    while True:
        left -= 1
        patch = {"metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version}, "spec": spec}
        try:
            raw = await session.client.patch(
                as_json(CLUSTERS), seen.name, patch, seen.namespace, dry_run=dry_run, field_validation="Strict"
            )
            return item(CLUSTERS, raw).obj
        except Conflict:
            now = (await read_one(session, CLUSTERS, seen.name, seen.namespace)).obj.metadata
            if not left or (now.uid, now.generation) != (seen.uid, seen.generation):
                raise
            seen = now
