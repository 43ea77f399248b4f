"""What `butlerctl cluster scale` and `upgrade` share: writing a change over exactly what was read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.session import CommandSession, Failure

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster


ATTEMPTS = 4
"""How often a change is sent that only crossed with a write of the status."""


cluster_name = click.argument("name", shell_complete=names_of("tenantclusters", in_place=True))


def refuse_leaving(cluster: TenantCluster) -> None:
    if cluster.metadata.deletion_timestamp is not None:
        raise Failure(f"cluster {cluster.metadata.name} is being deleted, and cannot be changed any more")


async def change_cluster(
    session: CommandSession, cluster: TenantCluster, spec: Json, said: str, dry_run: str, timeout: float | None
) -> None:
    """Write a change of what was read, and of nothing that another client made of it; follow it where asked to."""
    from butler.cli.toolkit.output import done
    from butler.kube.kinds import CLUSTERS

    name = cluster.metadata.name
    if dry_run == "client":
        done(CLUSTERS, name, said, dry_run)
        return
    written = await _patched(session, cluster, spec, dry_run=dry_run == "server")
    done(CLUSTERS, name, said, dry_run)
    if timeout is not None and dry_run == "none":
        from butler.cli.estate.cluster_progress import wait_until_ready

        await wait_until_ready(session, written, timeout)


async def _patched(session: CommandSession, cluster: TenantCluster, spec: Json, *, dry_run: bool) -> TenantCluster:
    """The cluster with a change; Conflict when another client changed it since it was read.

    Butler writes to its status all the time, which leaves the generation as it was: then the change is sent again.
    """
    from butler.cli.toolkit.objects import as_json, load_object, read_one
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
            return load_object(CLUSTERS, raw).obj
        except Conflict:
            now = (await read_one(session, CLUSTERS, seen.name, seen.namespace)).obj.metadata
            if not left or (now.uid, now.generation) != (seen.uid, seen.generation):
                raise
            seen = now
