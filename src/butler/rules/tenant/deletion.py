"""What stands between a cluster and its end. Pure.

    LoadBalancers  Services of type LoadBalancer on the tenant, while its controllers run and can clean up after them
    Addons         its TenantAddons
    ClusterAPI     the Cluster, and with it control plane and infrastructure
    Machines       every machine, seen to be gone by asking the server
    Namespace      all that is left; without a namespace, no controller that is late can make a machine in it
    Addresses      only now the addresses: a machine that still runs must never share its own

The first two are a courtesy to the tenant; a tenant that is dead cannot be kept waiting for, so they have a time
limit. The next three are what the safety of addresses rests on: they never give up, they only get louder, unless a
person says by annotation that the machines are gone for sure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import with_condition
from butler.api.labels import Annotation, ConditionType, TenantClusterReason
from butler.api.tenantcluster import DeletionProgress, DeletionStage, TenantClusterPhase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.rules.tenant.settings import TenantSettings

MINUTES_FROM = 120
"""Seconds from which a time is told in minutes."""
COURTESY = (DeletionStage.LOAD_BALANCERS, DeletionStage.ADDONS)
FORCEABLE = (DeletionStage.CLUSTER_API, DeletionStage.MACHINES, DeletionStage.NAMESPACE)


@dataclass(frozen=True, slots=True)
class DeletionVerdict:
    """What to make of a stage that has not ended by itself."""

    go_on: bool
    """Leave it behind unfinished."""
    reason: str
    message: str


def is_forced(cluster: TenantCluster) -> bool:
    """Whether a person vouches for the machines being gone. The value is the name, so that it is not set by habit."""
    return cluster.metadata.annotations.get(Annotation.FORCE_DELETE) == cluster.metadata.name


def judge(
    stage: DeletionStage, since: datetime, waits_for: str, *, forced: bool, settings: TenantSettings, now: datetime
) -> DeletionVerdict:
    """Whether to wait on for what a stage waits for."""
    took = now - since
    if forced and stage in FORCEABLE:
        return DeletionVerdict(
            True, TenantClusterReason.FORCED, f"by annotation {Annotation.FORCE_DELETE}, not waiting for {waits_for}"
        )
    if stage in COURTESY and took >= settings.clean_up_limit:
        return DeletionVerdict(
            True, TenantClusterReason.STALLED, f"waited {_in_words(took)} for {waits_for}; going on without"
        )
    if took >= settings.stalled_after:
        help_ = f"; if its machines are gone for sure, annotate it with {Annotation.FORCE_DELETE}=<its name>"
        return DeletionVerdict(
            False,
            TenantClusterReason.STALLED,
            f"waits for {waits_for}, since {since:%Y-%m-%d %H:%M} UTC{help_ if stage in FORCEABLE else ''}",
        )
    return DeletionVerdict(False, TenantClusterReason.WAITING, f"waits for {waits_for}")


def seconds_to_next_look(
    stage: DeletionStage, since: datetime, settings: TenantSettings, now: datetime, often: float
) -> float:
    """When to look again though nothing is heard: soon, and no later than the next time limit."""
    limit = settings.clean_up_limit if stage in COURTESY else settings.stalled_after
    left = (since + limit - now).total_seconds()
    return min(often, left) if left > 0 else often


def deleting_status(
    cluster: TenantCluster, stage: DeletionStage, since: datetime, verdict: DeletionVerdict, now: datetime
) -> TenantClusterStatus:
    """The status of a cluster that goes."""
    old = cluster.status
    conditions = old.conditions
    for kind, status in ((ConditionType.DELETING, True), (ConditionType.READY, False)):
        reason = verdict.reason if kind is ConditionType.DELETING else TenantClusterReason.DELETING
        conditions = with_condition(
            conditions,
            type=kind,
            status=status,
            reason=reason,
            message=f"{stage.value}: {verdict.message}" if kind is ConditionType.DELETING else "being deleted",
            now=now,
            observed_generation=cluster.metadata.generation,
        )
    was = old.phase is TenantClusterPhase.DELETING
    return msgspec.structs.replace(
        old,
        phase=TenantClusterPhase.DELETING,
        conditions=conditions,
        deletion=DeletionProgress(stage=stage, since=since),
        last_transition_time=old.last_transition_time if was and old.last_transition_time else now,
        observed_generation=cluster.metadata.generation,
    )


def paused_status(cluster: TenantCluster, now: datetime) -> TenantClusterStatus:
    """The status of a cluster that is to go and is left alone; no stage begins, so that its time limit does not run."""
    verdict = DeletionVerdict(False, TenantClusterReason.PAUSED, "waits for spec.paused to be false")
    status = deleting_status(cluster, starting_stage(cluster), now, verdict, now)
    return msgspec.structs.replace(status, deletion=cluster.status.deletion)


def starting_stage(cluster: TenantCluster) -> DeletionStage:
    """Where to go on: what was left behind is not gone back to."""
    return cluster.status.deletion.stage if cluster.status.deletion else DeletionStage.LOAD_BALANCERS


def began(cluster: TenantCluster, stage: DeletionStage, now: datetime) -> datetime:
    """When a stage began."""
    progress = cluster.status.deletion
    return progress.since if progress and progress.stage is stage else now


def left_over(what: str, names: Mapping[str, object] | list[str], *, most: int = 3) -> str:
    """A few names of what is still there."""
    found = sorted(names)
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return f"{len(found)} {what}{'s' if len(found) != 1 else ''} ({', '.join(found[:most])}{more})"


def _in_words(took: timedelta) -> str:
    seconds = took.total_seconds()
    return f"{seconds / 60:.0f} minutes" if seconds >= MINUTES_FROM else f"{seconds:.0f} seconds"
