"""Waiting for a tenant cluster, with a word on how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.tenantcluster import TenantClusterPhase
from butler.cli.toolkit.follow import Progress, wait_until
from butler.cli.toolkit.objects import load_object
from butler.kube.kinds import CLUSTERS
from butler.reports.tenant.health import phase_of, waits_for

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.session import CommandSession


async def wait_until_ready(session: CommandSession, cluster: TenantCluster, timeout: float) -> None:
    """Follow a cluster until it is as its spec says, at least in the generation that `cluster` has."""
    uid, generation = cluster.metadata.uid, cluster.metadata.generation

    def judge(raw: Json | None) -> Progress:
        found = load_object(CLUSTERS, raw).obj if raw is not None else None
        if found is None or found.metadata.uid != uid:
            return Progress(f"cluster {cluster.metadata.name} was deleted meanwhile", failed=True)
        return progress(found, generation)

    await wait_until(session, CLUSTERS, cluster.metadata.name, cluster.metadata.namespace, judge, timeout)


def progress(cluster: TenantCluster, generation: int) -> Progress:
    """How far a cluster is on its way to being ready. Pure."""
    phase = phase_of(cluster)
    if phase is TenantClusterPhase.DELETING:
        return Progress(f"cluster {cluster.metadata.name} is being deleted", failed=True)
    if (cluster.status.observed_generation or 0) < generation:
        return Progress("waits for Butler to look at it")
    ready, wanted = cluster.status.worker_nodes_ready or 0, cluster.spec.workers.replicas
    if phase is TenantClusterPhase.READY:
        return Progress(f"Ready: {ready} of {wanted} workers, {cluster.spec.kubernetes_version}", done=True)
    says = f"{phase.value}: {waits_for(cluster)}"
    # Failed means that a team member or an operator has to change something: waiting does not help.
    return Progress(says, failed=phase is TenantClusterPhase.FAILED)


async def wait_until_gone(session: CommandSession, cluster: TenantCluster, timeout: float) -> None:
    """Follow the deletion of a cluster through its stages."""
    uid = cluster.metadata.uid

    def judge(raw: Json | None) -> Progress:
        found = load_object(CLUSTERS, raw).obj if raw is not None else None
        if found is None or found.metadata.uid != uid:
            return Progress("gone", done=True)
        return Progress(f"Deleting: {waits_for(found)}")

    await wait_until(session, CLUSTERS, cluster.metadata.name, cluster.metadata.namespace, judge, timeout)
