"""What is told of a tenant cluster: where it stands, what is wrong, what it holds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.ipallocation import IPAllocationType
from butler.api.tenantcluster import LoadBalancerUse, ObservedState, TenantClusterPhase, TenantClusterStatus
from butler.reports.tenant.health import NOT_LOOKED_AT, phase_of, steps, trouble, versions, waits_for
from butler.reports.tenant.summary import blocks, tenant
from unit.controllers.tenantcluster.values import HOME, NOW, allocation, cluster, provider

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster

Said = tuple[str, bool, str, str]


def standing(phase: str, *conditions: Said, seen: int = 4, **status: object) -> TenantCluster:
    """A cluster in a phase, with conditions: type, whether it holds, reason and message, a second apart."""
    found: tuple[object, ...] = ()
    for number, (kind, holds, reason, message) in enumerate(conditions):
        now = NOW + timedelta(seconds=number)
        found = with_condition(found, type=kind, status=holds, reason=reason, message=message, now=now)  # type: ignore[arg-type,assignment]
    made = TenantClusterStatus(phase=TenantClusterPhase(phase), conditions=found, observed_generation=seen, **status)  # type: ignore[arg-type]
    return cluster(status=made)


READY = (("NetworkReady", True, "Ready", "allocated"), ("WorkersReady", True, "Ready", "3 of 3"))
FULL = ("NetworkReady", False, "PoolExhausted", "no load-balancer addresses: pool a is full")
ASKED = ("NetworkReady", False, "Reconciling", "5 node addresses are being asked for from pool a")
WAITING = ("LoadBalancersReady", False, "QuotaReached", "1 Service waits (shop/web)")


@pytest.mark.parametrize(
    ("of", "why", "wrong"),
    [
        (standing("Ready", *READY), "", ()),
        (cluster(), NOT_LOOKED_AT, ()),
        (standing("Pending", ASKED), ASKED[3], ()),
        (standing("Pending", FULL), FULL[3], (FULL[3],)),
        (standing("Ready", *READY, seen=3), "Butler has not looked at its latest change yet", ()),
        (standing("Ready", *READY, WAITING), "", (WAITING[3],)),
        (
            standing("Failed", ("ProviderAccessGranted", False, "ProviderNotFound", "create it")),
            "create it",
            ("create it",),
        ),
        (standing("Updating", ("ControlPlaneReady", True, "Updating", "going to v1.34.1")), "going to v1.34.1", ()),
        (
            standing("Installing", ("AddonsReady", False, "AddonFailed", "traefik: no such chart")),
            "traefik: no such chart",
            ("traefik: no such chart",),
        ),
        (standing("Provisioning"), NOT_LOOKED_AT, ()),
    ],
)
def test_a_cluster_says_why_it_is_not_ready_and_only_trouble_is_trouble(
    of: TenantCluster, why: str, wrong: tuple[str, ...]
) -> None:
    assert waits_for(of) == why
    assert trouble(of) == wrong


def test_a_deletion_is_seen_before_the_controller_has_seen_it_and_is_trouble_only_when_it_stalls() -> None:
    def deleted(found: TenantCluster) -> TenantCluster:
        meta = msgspec.structs.replace(found.metadata, deletion_timestamp=NOW)
        return msgspec.structs.replace(found, metadata=meta)

    fresh = deleted(standing("Ready", *READY, WAITING))
    assert phase_of(fresh) is TenantClusterPhase.DELETING
    assert waits_for(fresh) == "its deletion was asked for, and has not begun"
    assert not trouble(fresh), "what was wrong before does not matter any more"
    stalled = deleted(standing("Deleting", ("Deleting", True, "Stalled", "Machines: waits for 2 machines")))
    assert trouble(stalled) == ("Machines: waits for 2 machines",)


def test_a_paused_cluster_says_so() -> None:
    paused = cluster(paused=True, status=standing("Ready", *READY).status)
    assert waits_for(paused) == "it is left as it is until spec.paused is false"
    assert trouble(paused) == ("paused: it is left as it is",)


def test_conditions_are_told_in_the_order_in_which_they_turned_and_not_being_paused_is_not_told() -> None:
    found = standing(
        "Ready",
        ("WorkersReady", True, "Ready", ""),
        ("NetworkReady", True, "Ready", ""),
        ("Paused", False, "NotPaused", ""),
    )
    assert [step.type for step in steps(found)] == ["WorkersReady", "NetworkReady"]
    same = tuple(msgspec.structs.replace(condition, last_transition_time=NOW) for condition in found.status.conditions)
    at_once = cluster(status=msgspec.structs.replace(found.status, conditions=same))
    assert [step.type for step in steps(at_once)] == ["NetworkReady", "WorkersReady"], "as a cluster comes to be"


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (None, ("v1.33.2", "")),
        ("v1.33.2", ("v1.33.2", "")),
        ("v1.33.2+vendor", ("v1.33.2", "")),
        ("v1.32.9", ("v1.32.9", "v1.33.2")),
    ],
)
def test_the_version_is_what_runs_and_where_it_goes(seen: str | None, told: tuple[str, str]) -> None:
    status = TenantClusterStatus(observed_state=ObservedState(kubernetes_version=seen))
    assert versions(cluster(status=status)) == told


def test_blocks_are_those_of_this_very_cluster_in_the_order_of_their_addresses_with_requests_last() -> None:
    mine = [
        allocation("web-lb-2", "loadbalancer", 2, growth=True, phase="Failed", why="all are taken"),
        allocation("web-lb", "loadbalancer", 2, start="10.40.0.20"),
        allocation("web-nodes-2", "nodes", 1, start="10.40.0.2", growth=True),
        allocation("web-nodes", "nodes", 3, start="10.40.0.8"),
    ]
    namesake = msgspec.structs.replace(
        allocation("old", "nodes", 3, start="10.40.0.50"),
        metadata=msgspec.structs.replace(mine[0].metadata, name="old", labels={}),
    )
    namesake = msgspec.structs.replace(
        namesake, status=msgspec.structs.replace(namesake.status, tenant_cluster_uid="another")
    )
    gone = allocation("gone", "nodes", 1, start="10.40.0.90", phase="Released")
    found = blocks(cluster(), [*mine, namesake, gone])
    assert [(block.allocation, block.text, block.state) for block in found] == [
        ("web-nodes-2", "10.40.0.2", "held"),
        ("web-nodes", "10.40.0.8-10.40.0.10", "held"),
        ("web-lb", "10.40.0.20-10.40.0.21", "held"),
        ("web-lb-2", "", "refused"),
    ]
    assert (found[3].why, found[3].asked, found[3].growth) == ("all are taken", 2, True)


def test_who_may_not_read_allocations_still_sees_the_numbers_that_the_cluster_knows() -> None:
    use = LoadBalancerUse(held=4, in_use=1, idle=3, services=1, platform_services=1, waiting_services=0)
    found = cluster(status=TenantClusterStatus(load_balancers=use))
    hidden, seen = tenant(found, None, None, HOME), tenant(found, [], provider(), HOME)
    assert (hidden.held(IPAllocationType.LOAD_BALANCER), hidden.held(IPAllocationType.NODES)) == (4, None)
    assert (seen.held(IPAllocationType.LOAD_BALANCER), seen.held(IPAllocationType.NODES)) == (0, 0)
    assert hidden.provider == "lab", "its name stands in the cluster itself"
    assert tenant(cluster(on=None), None, None, HOME).provider == ""
    assert tenant(cluster(on=None), None, provider("other"), HOME).provider == "other"


def test_the_terms_of_load_balancers_are_the_providers() -> None:
    on = provider(balancers={"allocationMode": "elastic"}, quota={"maxLoadBalancerIPs": 16})
    found = tenant(cluster(), [], on, HOME).terms
    assert found is not None
    assert (found.elastic, found.most) == (True, 16)
    assert tenant(cluster(), [], provider(mode="cloud", gateway=None), HOME).terms is None
