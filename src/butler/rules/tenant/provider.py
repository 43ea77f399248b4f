"""Where a cluster goes, whether its team may put it there, and whether there is room within the limits. Pure.

A cluster that has been started is not stopped again by what changes around it: a provider whose credentials expired,
or a limit that was lowered, keeps new clusters and new machines out, and leaves alone what is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, TenantClusterReason
from butler.api.meta import ConditionStatus
from butler.api.objects import key_of
from butler.api.providers import CLOUDS, Provider
from butler.rules.blocked import Blocked
from butler.rules.provider.placement import admits, may_be_named, named_provider, not_usable, placement, wrong_team

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig, ProviderLimits
    from butler.api.tenantcluster import TenantCluster

provider_key = named_provider


def resolve(
    cluster: TenantCluster, providers: Mapping[Key, ProviderConfig], home: str, team: str
) -> ProviderConfig | Blocked:
    """The ProviderConfig of a cluster: the one it names, else `default`, else the only one there is.

    `team` is that of the cluster's namespace. Only what may be used by it is looked at, also for a cluster that is
    there already: a cluster that named no provider may name one later, and that must be no way around the check.
    """
    namespace = cluster.metadata.namespace
    named = named_provider(cluster, home)
    if named is not None:
        found = providers.get(named) if may_be_named(named, namespace, home) else None
        if found is not None and admits(found, team):
            return found
        return _no_access(TenantClusterReason.PROVIDER_ACCESS_DENIED, not_usable(named, namespace, team, home))
    usable = {key: found for key, found in providers.items() if key.namespace == home and admits(found, team)}
    key = placement(cluster, usable, home)
    if key is not None:
        return usable[key]
    choice = f"one of {', '.join(sorted(key.name for key in usable))}" if usable else f"create one in namespace {home}"
    return _no_access(
        TenantClusterReason.PROVIDER_NOT_FOUND,
        f"the cluster names no ProviderConfig and there is no default one: set spec.providerConfigRef ({choice})",
    )


def access(cluster: TenantCluster, provider: ProviderConfig, team: str, *, started: bool) -> Blocked | None:
    """Why the cluster may not be put on the provider that it resolves to; None when it may.

    That a provider is not ready is said without its reasons: they name Secrets and servers, and the reader of a
    cluster need not be allowed to read its ProviderConfig.
    """
    if started:
        return None
    if wrong := wrong_team(cluster, cluster.metadata.namespace, team):
        return _no_access(TenantClusterReason.PROVIDER_ACCESS_DENIED, wrong)
    name = key_of(provider)
    if provider.spec.provider is Provider.LOCAL:
        return _no_access(
            TenantClusterReason.PROVIDER_UNSUPPORTED,
            f"ProviderConfig {name} is of provider local, which has no machines for tenant clusters",
        )
    if provider.metadata.deletion_timestamp is not None:
        return _no_access(TenantClusterReason.PROVIDER_NOT_READY, f"ProviderConfig {name} is being deleted")
    if provider.status.ready is None:
        return _no_access(TenantClusterReason.PROVIDER_NOT_READY, f"ProviderConfig {name} is being checked", waits=True)
    if not provider.status.ready:
        return _no_access(
            TenantClusterReason.PROVIDER_NOT_READY,
            f"ProviderConfig {name} is not ready: its own conditions say why, to those who may read it",
        )
    return None


def name_clash(cluster: TenantCluster, provider: ProviderConfig, namesakes: Iterable[TenantCluster]) -> Blocked | None:
    """Why a cloud could not tell this cluster from another; None when it can.

    The clouds' providers name and tag what they make after the cluster, without its namespace. Two of one name would
    take each other's machines for their own. `namesakes` are the other clusters of that name on the same platform.
    """
    if provider.spec.provider not in CLOUDS:
        return None
    older = [namesake for namesake in namesakes if _started(namesake) or _age(namesake) < _age(cluster)]
    if not older:
        return None
    return _no_access(
        TenantClusterReason.NAME_TAKEN,
        f"another TenantCluster of this platform has the same name, and {provider.spec.provider.value} knows clusters"
        " by their name alone: choose another name",
    )


def _no_access(reason: str, message: str, *, waits: bool = False) -> Blocked:
    return Blocked(ConditionType.PROVIDER_ACCESS_GRANTED, reason, message, waits)


# Limits.


def quota(
    cluster: TenantCluster, provider: ProviderConfig, others: Iterable[TenantCluster], workers_now: int, team: str
) -> Blocked | None:
    """Why the limits of the provider leave no room; None when they do.

    `team` is that of the cluster's namespace; a namespace without one is counted by itself. `others` are the team's
    other clusters on the same provider, `workers_now` the machines that this one was given already. The oldest is
    counted first, so a cluster never loses its place to a younger one; one that was itself refused takes no room, so
    that one request which cannot be met does not hold up the rest.
    """
    limits, wanted = provider.spec.limits, cluster.spec.workers.replicas
    if limits is None or (workers_now and wanted <= workers_now):
        return None
    clusters, used = _taken(cluster, others, limits)
    whose = f"team {team}" if team else f"namespace {cluster.metadata.namespace}"
    is_new = not workers_now and not _started(cluster)
    if is_new and limits.max_clusters_per_team is not None and clusters >= limits.max_clusters_per_team:
        return _over_quota(
            f"{whose} has {clusters} clusters on ProviderConfig {key_of(provider)},"
            f" and may have {limits.max_clusters_per_team} (limits.maxClustersPerTeam)"
        )
    if limits.max_nodes_per_team is not None and used + wanted > limits.max_nodes_per_team:
        return _over_quota(
            f"{whose} has {used} other workers on ProviderConfig {key_of(provider)}; {wanted} more would exceed"
            f" {limits.max_nodes_per_team} (limits.maxNodesPerTeam)"
        )
    return None


def _taken(cluster: TenantCluster, others: Iterable[TenantCluster], limits: ProviderLimits) -> tuple[int, int]:
    """How many clusters and workers go before a cluster: those that are there, and older ones that fit beside them."""
    there, to_come = [], []
    for other in others:
        if _started(other):
            there.append(other)
        elif _age(other) < _age(cluster):
            to_come.append(other)
    clusters, workers = len(there), sum(_given(other) for other in there)
    for other in sorted(to_come, key=_age):
        more = other.spec.workers.replicas
        if limits.max_clusters_per_team is not None and clusters >= limits.max_clusters_per_team:
            break
        if limits.max_nodes_per_team is None or workers + more <= limits.max_nodes_per_team:
            clusters, workers = clusters + 1, workers + more
    return clusters, workers


def _given(cluster: TenantCluster) -> int:
    """The workers of a cluster that was started: those it wants, or those it has while it may not have more."""
    found = find_condition(cluster.status.conditions, ConditionType.QUOTA_SATISFIED)
    observed = cluster.status.observed_state
    if found is not None and found.status is ConditionStatus.FALSE and observed and observed.workers:
        return min(observed.workers.desired, cluster.spec.workers.replicas)
    return cluster.spec.workers.replicas


def _over_quota(message: str) -> Blocked:
    return Blocked(ConditionType.QUOTA_SATISFIED, TenantClusterReason.QUOTA_EXCEEDED, message)


def _started(cluster: TenantCluster) -> bool:
    return cluster.status.tenant_namespace is not None


def _age(cluster: TenantCluster) -> tuple[str, str]:
    created = cluster.metadata.creation_timestamp
    return (created.isoformat() if created else "", cluster.metadata.uid)
