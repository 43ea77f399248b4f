"""What a TenantCluster's status says in every situation.

SITUATIONS is the documentation: what is so, the phase that a person sees, and the condition that explains it. Each
is tried on a new cluster and, where that makes sense, on one that could be used before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import ConditionType
from butler.api.meta import LocalObjectReference
from butler.api.tenantcluster import DeletionProgress, DeletionStage, TenantClusterPhase, TenantClusterStatus
from butler.ipam.addresses import Range
from butler.rules.blocked import Blocked
from butler.rules.tenant.addons import AddonProgress
from butler.rules.tenant.addresses import Addresses
from butler.rules.tenant.blueprint import Endpoint, NodeNetwork
from butler.rules.tenant.observed import ControlPlaneSeen, ObservedCluster, WorkersSeen
from butler.rules.tenant.status import ORDER, Facts, is_established, new_status
from unit.controllers.tenantcluster.values import NOW, addon, cluster, with_status

if TYPE_CHECKING:
    from butler.api.meta import Condition
    from butler.api.tenantcluster import TenantCluster

LATER = NOW + timedelta(minutes=5)
V = "v1.33.2"
ADDRESSES = Addresses(
    nodes=NodeNetwork((Range(10, 14),), 24, "10.40.0.1", ()),
    load_balancers=(Range(50, 57),),
    node_allocation="web-nodes",
    load_balancer_allocation="web-lb",
)
WORKERS = WorkersSeen(desired=3, ready=3, settled=True, version=V, nodes=("a", "b", "c"), machines=3)
UP = ObservedCluster(
    infrastructure_ready=True,
    endpoint=Endpoint("10.1.1.1", 6443),
    control_plane=ControlPlaneSeen(ready=True, version=V),
    workers=WORKERS,
    exists=True,
)
COMING = ObservedCluster(exists=True)
INSTALLED = AddonProgress(frozenset({"cilium", "metallb"}), (), (), cni_blocks=False)
RUNNING = Facts(
    addresses=ADDRESSES,
    seen=UP,
    present_addons=(addon("cilium", version="1.16"),),
    addon_progress=INSTALLED,
    kubeconfig_secret="web-admin-kubeconfig",
    namespace="web-0f1e2d3c",
)
BUILDING = Facts(addresses=ADDRESSES, seen=COMING, namespace="web-0f1e2d3c")

NO_PROVIDER = Blocked(ConditionType.PROVIDER_ACCESS_GRANTED, "ProviderNotFound", "ProviderConfig x does not exist")
BEING_CHECKED = Blocked(ConditionType.PROVIDER_ACCESS_GRANTED, "ProviderNotReady", "is being checked", waits=True)
OVER_QUOTA = Blocked(ConditionType.QUOTA_SATISFIED, "QuotaExceeded", "team a has 5 clusters")
POOL_FULL = Blocked(ConditionType.NETWORK_READY, "PoolExhausted", "no node addresses: pool a: full", waits=True)
NO_GATEWAY = Blocked(ConditionType.NETWORK_READY, "InvalidConfiguration", "has no spec.network.gateway")
NO_CLUSTER_API = Blocked(ConditionType.INFRASTRUCTURE_READY, "ClusterAPIMissing", "install Cluster API")
DOWNGRADE = Blocked(ConditionType.CONTROL_PLANE_READY, "VersionNotAllowed", "cannot go back")

ESTABLISHED = with_status(cluster(), new_status(cluster(), RUNNING, NOW))


def seen_workers(**changes: object) -> Facts:
    return replace(RUNNING, seen=replace(UP, workers=replace(WORKERS, **changes)))  # type: ignore[arg-type]


def progress(*, waiting: tuple[str, ...] = (), failed: tuple[str, ...] = (), cni_blocks: bool = False) -> Facts:
    found = AddonProgress(frozenset({"cilium"}), waiting, failed, cni_blocks=cni_blocks)
    return replace(RUNNING, addon_progress=found)


@dataclass(frozen=True)
class Situation:
    """What is so; the phase of a new cluster and of an established one; where it is explained, and in which words."""

    what: str
    facts: Facts
    new: str | None
    established: str | None
    where: ConditionType
    words: str


READY, PROVIDER, QUOTA, NETWORK = (ConditionType.READY, *ORDER[:3])
INFRASTRUCTURE, CONTROL_PLANE, WORKERS_READY, ADDONS = ORDER[3:]
SITUATIONS = [
    # In the way from the start.
    Situation("no such provider", Facts(blocked=NO_PROVIDER), "Failed", None, PROVIDER, "ProviderConfig x does not"),
    Situation("provider being checked", Facts(blocked=BEING_CHECKED), "Pending", None, PROVIDER, "being checked"),
    Situation("over quota", Facts(blocked=OVER_QUOTA), "Failed", None, QUOTA, "team a has 5 clusters"),
    Situation("pool full", Facts(blocked=POOL_FULL), "Pending", None, NETWORK, "pool a: full"),
    Situation("bad network", Facts(blocked=NO_GATEWAY), "Failed", None, NETWORK, "spec.network.gateway"),
    Situation(
        "no Cluster API",
        Facts(addresses=ADDRESSES, blocked=NO_CLUSTER_API),
        "Failed",
        "Failed",
        INFRASTRUCTURE,
        "install Cluster API",
    ),
    # Coming up.
    Situation("just built", BUILDING, "Provisioning", None, INFRASTRUCTURE, "waits for the infrastructure provider"),
    Situation(
        "no such network",
        replace(BUILDING, seen=replace(COMING, infrastructure_message="no such network")),
        "Provisioning",
        None,
        INFRASTRUCTURE,
        "no such network",
    ),
    Situation(
        "no control plane yet",
        replace(BUILDING, seen=replace(COMING, infrastructure_ready=True)),
        "Provisioning",
        None,
        CONTROL_PLANE,
        "waits for the control plane",
    ),
    Situation(
        "control plane in trouble",
        replace(RUNNING, seen=replace(UP, control_plane=ControlPlaneSeen(message="no datastore"))),
        "Provisioning",
        "Updating",
        CONTROL_PLANE,
        "no datastore",
    ),
    Situation(
        "two machines to come",
        seen_workers(ready=1, settled=False),
        "Provisioning",
        "Updating",
        WORKERS_READY,
        "1 of 3 workers are ready",
    ),
    Situation(
        "machines held up",
        seen_workers(ready=1, settled=False, obstacles=("m-2: no image",)),
        "Provisioning",
        "Updating",
        WORKERS_READY,
        "1 of 3 workers are ready; m-2: no image",
    ),
    Situation(
        "machine failed",
        seen_workers(ready=2, settled=False, failures=("m-3: no quota",)),
        "Failed",
        "Failed",
        WORKERS_READY,
        "2 of 3 workers are ready; m-3: no quota",
    ),
    Situation(
        "surplus machine failed, enough are ready",
        seen_workers(settled=False, failures=("m-4: no quota",)),
        "Updating",
        "Updating",
        WORKERS_READY,
        "3 of 3 workers are ready; m-4: no quota",
    ),
    # Addons.
    Situation("addons to come", progress(waiting=("traefik",)), "Installing", "Ready", ADDONS, "waits for traefik"),
    Situation(
        "no pod network",
        progress(failed=("cilium: no image",), cni_blocks=True),
        "Installing",
        "Ready",
        ADDONS,
        "cilium: no image",
    ),
    Situation(
        "an addon failed", progress(failed=("longhorn: no disk",)), "Ready", "Ready", ADDONS, "longhorn: no disk"
    ),
    Situation(
        "MetalLB does not know its addresses",
        replace(RUNNING, load_balancers_published="the tenant's MetalLB cannot be told its addresses"),
        "Installing",
        "Ready",
        ADDONS,
        "cannot be told its addresses",
    ),
    # There.
    Situation("all there", RUNNING, "Ready", "Ready", READY, "the cluster can be used"),
    Situation("addresses", RUNNING, "Ready", "Ready", NETWORK, "5 node addresses and 8 load-balancer addresses"),
    Situation(
        "no pools", replace(RUNNING, addresses=Addresses()), "Ready", "Ready", NETWORK, "no addresses from pools"
    ),
    # Changing.
    Situation(
        "control plane goes up",
        replace(RUNNING, seen=replace(UP, control_plane=ControlPlaneSeen(ready=True, version="v1.32.9"))),
        None,
        "Updating",
        CONTROL_PLANE,
        "runs v1.32.9, going to v1.33.2",
    ),
    Situation("workers follow", seen_workers(version="v1.32.9"), None, "Updating", WORKERS_READY, "3 of 3"),
    Situation(
        "machines replaced", seen_workers(settled=False), None, "Updating", WORKERS_READY, "machines are being replaced"
    ),
    Situation(
        "scaled up", seen_workers(desired=2, ready=2), None, "Updating", WORKERS_READY, "2 of 3 workers are ready"
    ),
    Situation(
        "a control plane that marks its version, or does not say it",
        replace(RUNNING, seen=replace(UP, control_plane=ControlPlaneSeen(ready=True, version=f"{V}+vendor"))),
        "Ready",
        "Ready",
        CONTROL_PLANE,
        "runs v1.33.2+vendor",
    ),
    # In the way of a change, while the cluster runs.
    Situation("provider gone", Facts(seen=UP, blocked=NO_PROVIDER), None, "Failed", PROVIDER, "does not exist"),
    Situation("limit lowered", Facts(seen=UP, blocked=OVER_QUOTA), None, "Failed", QUOTA, "team a has 5 clusters"),
    Situation("pool full for growth", Facts(seen=UP, blocked=POOL_FULL), None, "Updating", NETWORK, "pool a: full"),
    Situation("downgrade", Facts(seen=UP, blocked=DOWNGRADE), None, "Failed", CONTROL_PLANE, "cannot go back"),
]


def condition(status: TenantClusterStatus, kind: ConditionType) -> Condition:
    found = find_condition(status.conditions, kind)
    assert found is not None, f"{kind} says nothing"
    return found


@pytest.mark.parametrize("each", SITUATIONS, ids=lambda item: item.what)
def test_what_the_status_says(each: Situation) -> None:
    for subject, phase in ((cluster(), each.new), (ESTABLISHED, each.established)):
        if phase is not None:
            status = new_status(subject, each.facts, LATER)
            assert status.phase == phase
            assert each.words in condition(status, each.where).message


@pytest.mark.parametrize("each", SITUATIONS, ids=lambda item: item.what)
@pytest.mark.parametrize("subject", [cluster(), ESTABLISHED], ids=["new", "established"])
def test_a_status_computed_twice_is_the_same(each: Situation, subject: TenantCluster) -> None:
    once = new_status(subject, each.facts, LATER)
    assert new_status(with_status(subject, once), each.facts, LATER + timedelta(hours=1)).conditions == once.conditions
    twice = new_status(with_status(subject, once), each.facts, LATER + timedelta(hours=1))
    again = new_status(with_status(subject, twice), each.facts, LATER + timedelta(hours=2))
    assert again == twice


@pytest.mark.parametrize("each", SITUATIONS, ids=lambda item: item.what)
def test_a_cluster_that_could_be_used_stays_one(each: Situation) -> None:
    status = new_status(ESTABLISHED, each.facts, LATER)
    after = with_status(ESTABLISHED, status)
    assert is_established(after)
    assert status.phase not in (
        TenantClusterPhase.PENDING,
        TenantClusterPhase.PROVISIONING,
        TenantClusterPhase.INSTALLING,
    )
    assert status.kubeconfig_secret_ref == LocalObjectReference(name="web-admin-kubeconfig")
    assert status.control_plane_endpoint == "https://10.1.1.1:6443"
    assert status.ip_allocation_ref == LocalObjectReference(name="web-nodes")
    assert status.lb_allocation_ref == LocalObjectReference(name="web-lb")
    assert status.tenant_namespace == "web-0f1e2d3c"
    assert new_status(after, RUNNING, LATER).phase is TenantClusterPhase.READY, "and comes back by itself"


@pytest.mark.parametrize("each", SITUATIONS, ids=lambda item: item.what)
def test_what_does_not_go_well_is_what_ready_tells(each: Situation) -> None:
    """A person looks at Ready first: where anything is wrong, its message has to name it."""
    for subject in (cluster(), ESTABLISHED):
        status = new_status(subject, each.facts, LATER)
        wrong = [
            kind for kind in ORDER if (found := find_condition(status.conditions, kind)) and found.status == "False"
        ]
        if wrong and (subject is not ESTABLISHED or each.facts.seen.exists):
            assert condition(status, wrong[0]).message in condition(status, READY).message


@pytest.mark.parametrize(
    "blocked", [NO_PROVIDER, OVER_QUOTA, POOL_FULL, NO_GATEWAY, DOWNGRADE], ids=lambda blocked: blocked.reason
)
def test_a_running_cluster_stays_ready_whatever_stands_in_the_way_of_a_change(blocked: Blocked) -> None:
    status = new_status(ESTABLISHED, Facts(seen=UP, blocked=blocked), LATER)
    assert condition_holds(status.conditions, READY)
    assert condition(status, READY).message == f"the cluster can be used; {blocked.message}"


@pytest.mark.parametrize("blocked", [NO_PROVIDER, OVER_QUOTA, POOL_FULL, DOWNGRADE], ids=lambda blocked: blocked.reason)
def test_what_was_not_looked_at_keeps_what_it_said(blocked: Blocked) -> None:
    status = new_status(ESTABLISHED, Facts(seen=UP, blocked=blocked), LATER)
    for kind in ORDER[ORDER.index(blocked.condition) + 1 :]:
        assert condition(status, kind) == condition(ESTABLISHED.status, kind)


def test_a_new_cluster_that_is_blocked_says_nothing_of_what_comes_after() -> None:
    status = new_status(cluster(), Facts(blocked=OVER_QUOTA), NOW)
    assert {item.type for item in status.conditions} == {PROVIDER, QUOTA, READY}
    assert condition_holds(status.conditions, PROVIDER)


def test_addons_that_were_not_looked_at_are_not_called_foreign() -> None:
    assert condition(new_status(cluster(), BUILDING, NOW), ADDONS).message == "waits for the control plane"
    observing = cluster(managementPolicy={"mode": "Observe"})
    found = condition(new_status(observing, BUILDING, NOW), ADDONS)
    assert (found.status, found.reason) == ("True", "NotManaged")


def test_a_cluster_without_a_kubeconfig_is_not_usable_however_good_the_rest_looks() -> None:
    facts = replace(RUNNING, kubeconfig_secret=None, addon_progress=None)
    for subject in (cluster(), cluster(managementPolicy={"mode": "Observe"})):
        status = new_status(subject, facts, NOW)
        assert status.phase is TenantClusterPhase.INSTALLING
        assert not condition_holds(status.conditions, READY)


def test_a_cluster_whose_addons_are_foreign_becomes_ready_without_them() -> None:
    status = new_status(cluster(managementPolicy={"mode": "GitOps"}), replace(RUNNING, addon_progress=None), NOW)
    assert status.phase is TenantClusterPhase.READY


def test_a_control_plane_that_does_not_tell_its_version_does_not_hold_the_cluster_in_updating() -> None:
    facts = replace(RUNNING, seen=replace(UP, control_plane=ControlPlaneSeen(ready=True)))
    assert new_status(ESTABLISHED, facts, LATER).phase is TenantClusterPhase.READY


def test_where_nothing_can_be_seen_what_is_known_of_a_running_cluster_is_kept() -> None:
    status = new_status(ESTABLISHED, Facts(addresses=ADDRESSES, blocked=NO_CLUSTER_API), LATER)
    assert status.worker_nodes_ready == 3
    assert status.observed_state == ESTABLISHED.status.observed_state
    assert condition(status, READY) == condition(ESTABLISHED.status, READY)


# Paused.


def test_a_new_cluster_that_is_paused_claims_nothing() -> None:
    status = new_status(cluster(paused=True), Facts(addresses=Addresses()), NOW)
    assert status.phase is TenantClusterPhase.PENDING
    assert {item.type for item in status.conditions} == {ConditionType.PAUSED, READY}
    assert condition(status, READY).reason == "Paused"


def test_a_running_cluster_that_is_paused_is_shown_as_it_is() -> None:
    subject = with_status(cluster(paused=True), ESTABLISHED.status)
    status = new_status(subject, Facts(seen=UP, addresses=ADDRESSES), LATER)
    assert status.phase is TenantClusterPhase.READY
    assert condition_holds(status.conditions, READY)
    assert condition_holds(status.conditions, ConditionType.PAUSED)
    assert is_established(with_status(subject, status))


def test_a_paused_cluster_says_of_its_addresses_what_it_said_and_of_its_machines_what_is_seen() -> None:
    subject = with_status(cluster(paused=True), ESTABLISHED.status)
    losing = replace(UP, workers=replace(WORKERS, ready=2, settled=False))
    status = new_status(subject, Facts(seen=losing), LATER)
    assert condition(status, NETWORK) == condition(ESTABLISHED.status, NETWORK)
    assert condition(status, WORKERS_READY).message == "2 of 3 workers are ready"
    assert status.phase is TenantClusterPhase.UPDATING


def test_when_it_goes_on_the_condition_says_so() -> None:
    paused = new_status(with_status(cluster(paused=True), ESTABLISHED.status), Facts(seen=UP), LATER)
    status = new_status(with_status(cluster(), paused), RUNNING, LATER)
    assert condition(status, ConditionType.PAUSED).reason == "NotPaused"
    assert find_condition(new_status(cluster(), RUNNING, NOW).conditions, ConditionType.PAUSED) is None


# The rest of the status.


def test_everything_that_a_person_looks_for_is_filled_in() -> None:
    status = ESTABLISHED.status
    assert status.observed_generation == 4
    assert (status.worker_nodes_desired, status.worker_nodes_ready) == (3, 3)
    assert status.last_transition_time == NOW
    observed = status.observed_state
    assert observed is not None
    assert observed.kubernetes_version == V
    assert observed.workers is not None
    assert observed.workers.nodes == ("a", "b", "c")
    assert [observed_addon.name for observed_addon in observed.addons] == ["cilium"]


def test_the_kubeconfig_is_told_when_the_cluster_can_be_used_and_not_before() -> None:
    assert new_status(cluster(), progress(waiting=("traefik",)), NOW).kubeconfig_secret_ref is None
    assert new_status(cluster(), RUNNING, NOW).kubeconfig_secret_ref is not None


def test_the_time_of_the_phase_moves_with_the_phase_only() -> None:
    assert new_status(ESTABLISHED, RUNNING, LATER).last_transition_time == NOW
    assert new_status(ESTABLISHED, seen_workers(settled=False), LATER).last_transition_time == LATER


def test_an_ipv6_endpoint_is_written_as_a_url_wants_it() -> None:
    facts = replace(RUNNING, seen=replace(UP, endpoint=Endpoint("fd00::1", 6443)))
    assert new_status(cluster(), facts, NOW).control_plane_endpoint == "https://[fd00::1]:6443"


def test_a_condition_that_changed_back_is_one_transition_and_not_two() -> None:
    worse = with_status(ESTABLISHED, new_status(ESTABLISHED, seen_workers(ready=2, settled=False), LATER))
    better = new_status(worse, RUNNING, LATER + timedelta(minutes=1))
    assert condition(better, WORKERS_READY).last_transition_time == LATER + timedelta(minutes=1)
    assert condition(better, CONTROL_PLANE).last_transition_time == NOW


def test_the_status_of_another_life_is_not_invented() -> None:
    assert new_status(cluster(), Facts(blocked=NO_PROVIDER), NOW).observed_state is None
    assert cluster().status == TenantClusterStatus()


def test_a_stage_of_deletion_that_a_backup_brought_along_is_forgotten() -> None:
    """The deletion of this cluster has to begin at the beginning: its machines are there."""
    restored = TenantClusterStatus(deletion=DeletionProgress(stage=DeletionStage.ADDRESSES, since=NOW))
    assert new_status(cluster(status=restored), Facts(), NOW).deletion is None
