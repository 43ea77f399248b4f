"""What a TenantCluster's status says. Pure.

One set of facts in, one status out: conditions that each name what they wait for, and a phase that sums them up.

    Pending       something outside is missing: addresses, mostly
    Provisioning  the control plane and the machines come
    Installing    the addons come
    Ready         it can be used
    Updating      it can be used, and machines or versions change
    Failed        a user has to change something; tried again whenever anything changes
    Deleting      it goes

What was not observed is not reported: a condition keeps what it said until there is newer knowledge. A cluster that
could be used once stays one (`is_established`), whatever stands in the way of a change later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from butler.api.conditions import find_condition, with_condition
from butler.api.labels import ConditionType, NetworkReason, TenantClusterReason
from butler.api.meta import LocalObjectReference
from butler.api.tenantaddons import ObservedWorkers
from butler.api.tenantcluster import ObservedState, TenantClusterPhase
from butler.rules.tenant import addons
from butler.rules.tenant.addresses import NO_ADDRESSES, Addresses
from butler.rules.tenant.observed import NOTHING_SEEN, ObservedCluster, in_short
from butler.rules.tenant.versions import Version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.api.tenantaddon import TenantAddon
    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.rules.blocked import Blocked
    from butler.rules.tenant.addons import AddonProgress
    from butler.rules.tenant.blueprint import Endpoint

ORDER = (
    ConditionType.PROVIDER_ACCESS_GRANTED,
    ConditionType.QUOTA_SATISFIED,
    ConditionType.NETWORK_READY,
    ConditionType.INFRASTRUCTURE_READY,
    ConditionType.CONTROL_PLANE_READY,
    ConditionType.WORKERS_READY,
    ConditionType.ADDONS_READY,
)
"""The conditions in the order in which a cluster comes to be: what lies after one that blocks has not been tried."""
CAN_BE_USED = "the cluster can be used"
OBSERVED = ORDER[3:]
"""Those that are read off what is there; the others are decided by Butler, if it gets so far."""
NEEDED = ORDER[2:6]
"""Those that have to hold for a cluster to be of use; addons may lag behind."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that a status is made from."""

    addresses: Addresses = NO_ADDRESSES
    seen: ObservedCluster = NOTHING_SEEN
    present_addons: Sequence[TenantAddon] = ()
    addon_progress: AddonProgress | None = None
    """None: not looked at, or Butler does not manage the addons."""
    load_balancers_published: str = ""
    """Why the tenant's MetalLB does not know its addresses yet; empty when it does, or needs none."""
    kubeconfig_secret: str | None = None
    namespace: str | None = None
    team: str = ""
    """That of the cluster's namespace."""
    blocked: Blocked | None = None


@dataclass(frozen=True, slots=True)
class _Verdict:
    holds: bool
    reason: str
    message: str


def new_status(cluster: TenantCluster, facts: Facts, now: datetime) -> TenantClusterStatus:
    """The status of a cluster that is not being deleted."""
    old, workers = cluster.status, facts.seen.workers
    verdicts = _verdicts(cluster, facts)
    usable = all(kind in verdicts and _will_do(verdicts[kind]) for kind in NEEDED) and _installed(cluster, facts)
    established = is_established(cluster) or usable
    phase = _phase(cluster, facts, verdicts, established=established)
    conditions = old.conditions
    ready = _ready(cluster, facts, verdicts, phase, usable=usable)
    for kind, verdict in (verdicts | ({ConditionType.READY: ready} if ready else {})).items():
        conditions = with_condition(
            conditions,
            type=kind,
            status=verdict.holds,
            reason=verdict.reason,
            message=verdict.message,
            now=now,
            observed_generation=cluster.metadata.generation,
        )
    endpoint = facts.seen.endpoint
    # Before it is built, a cluster may give back what it had; what was not looked at is not spoken of.
    kept = old.tenant_namespace is not None or facts.addresses is NO_ADDRESSES
    seen_state = ObservedState(
        kubernetes_version=facts.seen.control_plane.version,
        workers=ObservedWorkers(desired=workers.desired, ready=workers.ready, nodes=workers.nodes),
        addons=addons.observed(facts.present_addons),
    )
    return msgspec.structs.replace(
        old,
        phase=phase,
        conditions=conditions,
        control_plane_endpoint=endpoint_url(endpoint) if endpoint else old.control_plane_endpoint,
        kubeconfig_secret_ref=(_reference(facts.kubeconfig_secret) if established else None)
        or old.kubeconfig_secret_ref,
        tenant_namespace=facts.namespace or old.tenant_namespace,
        ip_allocation_ref=_reference(facts.addresses.node_allocation) or (old.ip_allocation_ref if kept else None),
        lb_allocation_ref=_reference(facts.addresses.load_balancer_allocation)
        or (old.lb_allocation_ref if kept else None),
        team=facts.team or None,
        worker_nodes_desired=cluster.spec.workers.replicas,
        worker_nodes_ready=workers.ready if facts.seen.exists else old.worker_nodes_ready or 0,
        observed_state=seen_state if facts.seen.exists else old.observed_state,
        last_transition_time=old.last_transition_time if phase is old.phase and old.last_transition_time else now,
        # A restored backup may carry the stage that another cluster was in; its machines were gone, ours are not.
        deletion=None,
        observed_generation=cluster.metadata.generation,
    )


def is_established(cluster: TenantCluster) -> bool:
    """Whether the cluster could be used at some time: from then on it is updated, not built."""
    return cluster.status.kubeconfig_secret_ref is not None


def endpoint_url(endpoint: Endpoint) -> str:
    """As `status.controlPlaneEndpoint` has it."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"https://{host}:{endpoint.port}"


def _reference(name: str | None) -> LocalObjectReference | None:
    return LocalObjectReference(name=name) if name else None


# Conditions.


def _verdicts(cluster: TenantCluster, facts: Facts) -> dict[ConditionType, _Verdict]:
    """What each condition says; those that were not looked at keep what they said, or say nothing yet."""
    blocked, seen = facts.blocked, facts.seen
    found = {
        ConditionType.PROVIDER_ACCESS_GRANTED: _Verdict(True, TenantClusterReason.GRANTED, "the provider can be used"),
        ConditionType.QUOTA_SATISFIED: _Verdict(True, TenantClusterReason.WITHIN_LIMITS, "within all limits"),
        ConditionType.NETWORK_READY: _network(facts),
        ConditionType.INFRASTRUCTURE_READY: _infrastructure(facts.seen),
        ConditionType.CONTROL_PLANE_READY: _control_plane(cluster, facts.seen),
        ConditionType.WORKERS_READY: _workers(cluster, facts.seen),
        ConditionType.ADDONS_READY: _addons(cluster, facts),
    }
    if cluster.spec.paused:
        found = {kind: verdict for kind, verdict in found.items() if kind in OBSERVED and seen.exists}
    if blocked is not None:
        found = {
            kind: verdict
            for kind, verdict in found.items()
            if not _after(kind, blocked.condition) or (kind in OBSERVED and seen.exists)
        }
        also = (
            f"; {in_short(facts.addresses.strays)}"
            if facts.addresses.strays and blocked.condition is ConditionType.NETWORK_READY
            else ""
        )
        found[blocked.condition] = _Verdict(False, blocked.reason, f"{blocked.message}{also}")
    if facts.addon_progress is None and addons.installs_addons(cluster) and _has(cluster, ConditionType.ADDONS_READY):
        found.pop(ConditionType.ADDONS_READY, None)
    if cluster.spec.paused:
        found[ConditionType.PAUSED] = _Verdict(True, TenantClusterReason.PAUSED, "left as it is, by spec.paused")
    elif _has(cluster, ConditionType.PAUSED):
        found[ConditionType.PAUSED] = _Verdict(False, TenantClusterReason.NOT_PAUSED, "looked after")
    return found


def _has(cluster: TenantCluster, kind: ConditionType) -> bool:
    return find_condition(cluster.status.conditions, kind) is not None


def _after(kind: ConditionType, other: ConditionType) -> bool:
    return ORDER.index(kind) > ORDER.index(other)


def _will_do(verdict: _Verdict) -> bool:
    """Whether a part does its work: a machine with an address that is not the cluster's works until another has it."""
    return verdict.holds or verdict.reason == NetworkReason.MACHINE_OUTSIDE_ALLOCATION


def _network(facts: Facts) -> _Verdict:
    if facts.addresses.strays:
        what_to_do = "replace it, or have the address allocated to the cluster (butleradm allocation pin)"
        return _Verdict(
            False,
            NetworkReason.MACHINE_OUTSIDE_ALLOCATION,
            f"{in_short(facts.addresses.strays)}: another cluster may be given that address; {what_to_do}",
        )
    return _Verdict(True, NetworkReason.READY, _addresses_in_words(facts.addresses))


def _addresses_in_words(addresses: Addresses) -> str:
    parts = []
    if addresses.nodes is not None:
        parts.append(f"{addresses.nodes.size} node addresses")
    if addresses.load_balancers:
        parts.append(f"{sum(load_balancer.size for load_balancer in addresses.load_balancers)} load-balancer addresses")
    return f"{' and '.join(parts)} allocated" if parts else "no addresses from pools are needed"


def _infrastructure(seen: ObservedCluster) -> _Verdict:
    if seen.infrastructure_ready:
        return _Verdict(True, TenantClusterReason.READY, "the provider has what the machines need")
    return _coming(seen.infrastructure_message or "waits for the infrastructure provider")


def _control_plane(cluster: TenantCluster, seen: ObservedCluster) -> _Verdict:
    found, wanted = seen.control_plane, cluster.spec.kubernetes_version
    if not found.ready:
        return _coming(found.message or "waits for the control plane")
    if not _is_same(found.version, wanted):
        return _Verdict(True, TenantClusterReason.UPDATING, f"runs {found.version}, going to {wanted}")
    return _Verdict(True, TenantClusterReason.READY, f"runs {found.version or wanted}")


def _workers(cluster: TenantCluster, seen: ObservedCluster) -> _Verdict:
    found, wanted = seen.workers, cluster.spec.workers.replicas
    count = f"{found.ready} of {wanted} workers are ready"
    if found.failures:
        enough = found.ready >= wanted
        return _Verdict(enough, TenantClusterReason.MACHINE_FAILED, f"{count}; {in_short(found.failures)}")
    if found.ready < wanted:
        return _coming(f"{count}; {in_short(found.obstacles)}" if found.obstacles else count)
    if not found.settled:
        return _Verdict(True, TenantClusterReason.UPDATING, f"{count}; machines are being replaced")
    return _Verdict(True, TenantClusterReason.READY, count)


def _addons(cluster: TenantCluster, facts: Facts) -> _Verdict:
    found = facts.addon_progress
    if not addons.installs_addons(cluster):
        return _Verdict(True, TenantClusterReason.NOT_MANAGED, "addons are not managed by Butler")
    if found is None:
        return _Verdict(False, TenantClusterReason.WAITING, "waits for the control plane")
    if found.failed:
        return _Verdict(False, TenantClusterReason.ADDON_FAILED, in_short(found.failed))
    if found.waiting:
        return _Verdict(False, TenantClusterReason.INSTALLING, f"waits for {', '.join(found.waiting)}")
    if facts.load_balancers_published:
        return _Verdict(False, TenantClusterReason.INSTALLING, facts.load_balancers_published)
    return _Verdict(True, TenantClusterReason.READY, f"{len(found.installed)} addons are installed")


def _coming(message: str) -> _Verdict:
    return _Verdict(False, TenantClusterReason.PROVISIONING, message)


def _installed(cluster: TenantCluster, facts: Facts) -> bool:
    """Whether every addon was tried, and those that others cannot work without are there."""
    found = facts.addon_progress
    if found is None:
        return not addons.installs_addons(cluster) and facts.kubeconfig_secret is not None
    return not (found.waiting or found.cni_blocks or facts.load_balancers_published)


# The sum.


def _phase(
    cluster: TenantCluster, facts: Facts, verdicts: dict[ConditionType, _Verdict], *, established: bool
) -> TenantClusterPhase:
    blocked, seen = facts.blocked, facts.seen
    if blocked is not None:
        if not blocked.waits:
            return TenantClusterPhase.FAILED
        return TenantClusterPhase.UPDATING if established else TenantClusterPhase.PENDING
    if cluster.spec.paused and not seen.exists:
        return cluster.status.phase
    if seen.workers.failures and not verdicts[ConditionType.WORKERS_READY].holds:
        return TenantClusterPhase.FAILED
    if established:
        there = seen.infrastructure_ready and seen.control_plane.ready and seen.workers.settled
        current = seen.workers.desired == cluster.spec.workers.replicas and _runs_what_is_wanted(cluster, seen)
        return TenantClusterPhase.READY if there and current else TenantClusterPhase.UPDATING
    up = (ConditionType.INFRASTRUCTURE_READY, ConditionType.CONTROL_PLANE_READY, ConditionType.WORKERS_READY)
    if all(verdicts[kind].holds for kind in up):
        return TenantClusterPhase.INSTALLING
    return TenantClusterPhase.PROVISIONING


def _runs_what_is_wanted(cluster: TenantCluster, seen: ObservedCluster) -> bool:
    wanted = cluster.spec.kubernetes_version
    return _is_same(seen.control_plane.version, wanted) and _is_same(seen.workers.version, wanted)


def _is_same(version: str | None, wanted: str) -> bool:
    """Whether a version is the wanted one; a vendor's mark makes no difference, and what is not said is no change."""
    return version is None or Version.read(version) == Version.read(wanted)


def _ready(
    cluster: TenantCluster,
    facts: Facts,
    verdicts: dict[ConditionType, _Verdict],
    phase: TenantClusterPhase,
    *,
    usable: bool,
) -> _Verdict | None:
    """Whether the cluster can be used; None where it is unknown whether one that could be used still can."""
    if not facts.seen.exists and is_established(cluster):
        return None
    problem = next((verdicts[kind] for kind in ORDER if kind in verdicts and not verdicts[kind].holds), None)
    if usable or (is_established(cluster) and facts.seen.control_plane.ready and facts.seen.workers.ready):
        reason = TenantClusterReason.UPDATING if phase is TenantClusterPhase.UPDATING else TenantClusterReason.READY
        return _Verdict(True, reason, f"{CAN_BE_USED}; {problem.message}" if problem else CAN_BE_USED)
    if cluster.spec.paused:
        return _Verdict(False, TenantClusterReason.PAUSED, "left as it is, by spec.paused")
    if problem is None:
        return _Verdict(False, TenantClusterReason.WAITING, "waits for its parts")
    return _Verdict(False, problem.reason, problem.message)
