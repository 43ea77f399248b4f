"""Where a tenant cluster stands, why, and what is wrong with it, from the cluster alone. Pure.

Apart from `tenants`, so that a list of clusters need not load what tells of addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, NetworkReason, TenantClusterReason
from butler.api.meta import ConditionStatus
from butler.api.tenantcluster import TenantClusterPhase
from butler.rules.tenant.versions import Version

if TYPE_CHECKING:
    from collections.abc import Sequence

    from butler.api.meta import Condition
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster

NOT_LOOKED_AT = "Butler has not looked at it yet: if this lasts, check that its controllers run (butleradm doctor)"


def phase_of(cluster: TenantCluster) -> TenantClusterPhase:
    """The phase, with a deletion seen at once and not only when the controller has said so."""
    if cluster.metadata.deletion_timestamp is not None:
        return TenantClusterPhase.DELETING
    return cluster.status.phase


def provider_name(cluster: TenantCluster, provider: ProviderConfig | None, home: str) -> str:
    reference = cluster.spec.provider_config_ref
    if reference is not None:
        namespace, name = reference.namespace or home, reference.name
    elif provider is not None:
        namespace, name = provider.metadata.namespace, provider.metadata.name
    else:
        return ""
    return name if namespace == home else f"{namespace}/{name}"


def versions(cluster: TenantCluster) -> tuple[str, str]:
    """What it runs (or is to run, before it runs), and where it goes, if that is another."""
    wanted = cluster.spec.kubernetes_version
    seen = cluster.status.observed_state.kubernetes_version if cluster.status.observed_state else None
    if seen is None or Version.read(seen) == Version.read(wanted):
        return wanted, ""
    return seen, wanted


# Where it stands.


def steps(cluster: TenantCluster) -> tuple[Condition, ...]:
    """Its conditions as a story: by the time they turned, and within a second in the order of a cluster's life."""
    known = _life()

    def place(condition: Condition) -> tuple[str, int]:
        index = known.index(condition.type) if condition.type in known else len(known)
        return condition.last_transition_time.isoformat(), index

    told = [item for item in cluster.status.conditions if not _says_nothing(item)]
    return tuple(sorted(told, key=place))


def _says_nothing(condition: Condition) -> bool:
    return condition.type == ConditionType.PAUSED and condition.status is not ConditionStatus.TRUE


def waits_for(cluster: TenantCluster) -> str:
    """What keeps a cluster from being what it should be, in a sentence; empty when nothing does."""
    found = cluster.status.conditions
    if phase_of(cluster) is TenantClusterPhase.DELETING:
        deleting = find_condition(found, ConditionType.DELETING)
        return deleting.message if deleting else "its deletion was asked for, and has not begun"
    if not found:
        return NOT_LOOKED_AT
    if cluster.spec.paused:
        return "it is left as it is until spec.paused is false"
    if (cluster.status.observed_generation or 0) < cluster.metadata.generation:
        return "Butler has not looked at its latest change yet"
    first = next((condition for condition in _in_life_order(found) if condition.status is ConditionStatus.FALSE), None)
    if first is not None:
        return first.message
    going = next(
        (condition for condition in _in_life_order(found) if condition.reason == TenantClusterReason.UPDATING), None
    )
    if going is not None:
        return going.message
    return "" if cluster.status.phase is TenantClusterPhase.READY else "its parts are coming together"


def _in_life_order(conditions: Sequence[Condition]) -> list[Condition]:
    found = (find_condition(tuple(conditions), kind) for kind in _life())
    return [condition for condition in found if condition is not None]


def trouble(cluster: TenantCluster) -> tuple[str, ...]:
    """What an operator should check. That a cluster is on its way is no trouble."""
    status, found = cluster.status, []
    deleting = find_condition(status.conditions, ConditionType.DELETING)
    if deleting is not None and deleting.reason == TenantClusterReason.STALLED:
        found.append(deleting.message)
    if phase_of(cluster) is TenantClusterPhase.DELETING:
        return tuple(found)
    if status.phase is TenantClusterPhase.FAILED:
        found.append(waits_for(cluster))
    network = find_condition(status.conditions, ConditionType.NETWORK_READY)
    refused = network is not None and network.reason != NetworkReason.RECONCILING  # not only on the way
    if network is not None and network.status is ConditionStatus.FALSE and refused:
        found.append(network.message)
    addons = find_condition(status.conditions, ConditionType.ADDONS_READY)
    if addons is not None and addons.reason == TenantClusterReason.ADDON_FAILED:
        found.append(addons.message)
    balancers = find_condition(status.conditions, ConditionType.LOAD_BALANCERS_READY)
    if balancers is not None and balancers.status is ConditionStatus.FALSE:
        found.append(balancers.message)
    if cluster.spec.paused:
        found.append("paused: it is left as it is")
    return tuple(dict.fromkeys(found))


def _life() -> list[str]:
    """The conditions in the order in which a cluster comes to be."""
    from butler.rules.tenant.status import ORDER  # noqa: PLC0415 (much hangs on it, and lists seldom need it)

    return [str(kind) for kind in ORDER]
