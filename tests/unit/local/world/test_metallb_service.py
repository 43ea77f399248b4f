"""What MetalLB does about one Service, and in which words it says so."""

from __future__ import annotations

from typing import Any

import pytest

from butler.local.world.metallb_allocator import Allocator
from butler.local.world.metallb_pools import configuration
from butler.local.world.metallb_service import FROM_POOL, converge, forget, is_ours
from unit.local.world.given import pool, service

Json = dict[str, Any]


@pytest.fixture
def allocator() -> Allocator:
    made = Allocator()
    made.set_pools(
        configuration([pool("default", "10.0.0.1-10.0.0.3"), pool("special", "10.1.0.1-10.1.0.3", autoAssign=False)])
    )
    return made


def shown(patch: Json | None) -> Any:
    assert patch is not None
    ingress = patch["status"]["loadBalancer"]["ingress"]
    return None if ingress is None else [entry["ip"] for entry in ingress]


def test_a_service_without_an_address_gets_one_and_is_told(allocator: Allocator) -> None:
    outcome = converge(service(), allocator)
    assert outcome.patch == {
        "metadata": {"annotations": {FROM_POOL: "default"}},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}},
    }
    assert outcome.notes == (("Normal", "IPAllocated", 'Assigned IP ["10.0.0.1"]'),)


def test_one_that_is_as_it_should_be_is_left_alone(allocator: Allocator) -> None:
    outcome = converge(service(shows=("10.0.0.2",), annotations={FROM_POOL: "default"}), allocator)
    assert outcome == (type(outcome))(None, ())
    held = allocator.held_by("default/s")
    assert held is not None
    assert str(held.addresses[0]) == "10.0.0.2"


def test_the_annotation_is_put_right_and_one_of_its_old_name_stays_and_is_complained_about(
    allocator: Allocator,
) -> None:
    old = "metallb.universe.tf/ip-allocated-from-pool"
    outcome = converge(service(shows=("10.0.0.2",), annotations={old: "default"}), allocator)
    assert outcome.patch == {"metadata": {"annotations": {FROM_POOL: "default"}}}
    assert outcome.notes == (("Warning", "deprecatedAnnotation", f"Service uses deprecated annotation {old}"),)


def test_others_are_concerned_by_what_is_given_up_or_shared_in_another_way(allocator: Allocator) -> None:
    shared = {"metallb.io/allow-shared-ip": "k"}
    assert not converge(service(), allocator).concerns_others
    assert converge(service(shows=("10.0.0.1",), annotations=shared), allocator).concerns_others
    assert not converge(service(shows=("10.0.0.1",), annotations=shared), allocator).concerns_others
    assert converge(service(shows=("10.0.0.1",), type="ClusterIP"), allocator).concerns_others
    converge(service(), allocator)
    assert forget("default/s", allocator)
    assert not forget("default/s", allocator)


def test_others_are_not_concerned_by_a_move_or_by_an_address_that_is_in_no_pool_any_more(allocator: Allocator) -> None:
    converge(service(), allocator)
    assert not converge(service(shows=("10.0.0.1",), loadBalancerIP="10.0.0.2"), allocator).concerns_others
    allocator.set_pools(configuration([pool("default", "10.9.0.1/32")]))
    converge(service("other"), allocator)
    assert not converge(service(shows=("10.0.0.2",)), allocator).concerns_others


@pytest.mark.parametrize("spec", [{"type": "ClusterIP"}, {"type": "NodePort"}])
def test_one_that_is_no_load_balancer_any_more_is_cleared_silently(allocator: Allocator, spec: Json) -> None:
    converge(service(), allocator)
    outcome = converge(service(shows=("10.0.0.1",), annotations={FROM_POOL: "default"}, **spec), allocator)
    assert shown(outcome.patch) is None
    assert outcome.notes == ()
    assert allocator.held_by("default/s") is None


def test_without_any_pool_everyone_is_cleared(allocator: Allocator) -> None:
    allocator.set_pools({})
    outcome = converge(service(shows=("10.0.0.1",), annotations={FROM_POOL: "default"}), allocator)
    assert shown(outcome.patch) is None
    assert outcome.notes == ()


def test_an_address_that_no_pool_has_is_replaced(allocator: Allocator) -> None:
    outcome = converge(service(shows=("10.9.9.9",), annotations={FROM_POOL: "default"}), allocator)
    assert shown(outcome.patch) == ["10.0.0.1"]
    assert [note.reason for note in outcome.notes] == ["ClearAssignment", "IPAllocated"]


def test_where_no_other_is_free_it_ends_without_one(allocator: Allocator) -> None:
    for number in range(3):
        converge(service(f"other-{number}"), allocator)
    outcome = converge(service(shows=("10.0.0.1",), annotations={FROM_POOL: "default"}), allocator)
    assert shown(outcome.patch) is None
    refusal = 'Failed to allocate IP for "default/s": no available IPs'
    assert outcome.notes[-1] == ("Warning", "AllocationFailed", refusal)


@pytest.mark.parametrize(
    "asking",
    [
        {"loadBalancerIP": "10.0.0.3"},
        {"annotations": {"metallb.io/loadBalancerIPs": "10.0.0.3"}},
        {"annotations": {"metallb.universe.tf/loadBalancerIPs": " 10.0.0.3 "}},
    ],
)
def test_a_wanted_address_replaces_the_one_it_has(allocator: Allocator, asking: Json) -> None:
    outcome = converge(service(shows=("10.0.0.1",), **asking), allocator)
    assert shown(outcome.patch) == ["10.0.0.3"]
    assert outcome.notes[0].reason == "IPAllocated"


def test_a_wanted_pool_replaces_the_one_it_has(allocator: Allocator) -> None:
    annotations = {"metallb.io/address-pool": "special", FROM_POOL: "default"}
    outcome = converge(service(shows=("10.0.0.1",), annotations=annotations), allocator)
    assert shown(outcome.patch) == ["10.1.0.1"]


@pytest.mark.parametrize(
    ("asking", "why"),
    [
        ({"loadBalancerIP": "ten"}, 'invalid spec.loadBalancerIP "ten"'),
        ({"annotations": {"metallb.io/loadBalancerIPs": "a,b"}}, 'invalid metallb.io/loadBalancerIPs: "a,b"'),
        (
            {"loadBalancerIP": "10.0.0.1", "annotations": {"metallb.io/loadBalancerIPs": "10.0.0.1"}},
            "service can not have both metallb.io/loadBalancerIPs and svc.Spec.LoadBalancerIP",
        ),
        (
            {"loadBalancerIP": "fc00::1"},
            'requested loadBalancer IP(s) ["fc00::1"] does not match the ipFamily of the service',
        ),
        (
            {"loadBalancerIP": "10.0.0.1", "annotations": {"metallb.io/address-pool": "special"}},
            'requested loadBalancer IP(s) ["10.0.0.1"] is not compatible with requested address pool special',
        ),
        ({"annotations": {"metallb.io/address-pool": "none"}}, 'unknown pool "none"'),
    ],
)
def test_what_cannot_be_met_is_refused_with_the_reason(allocator: Allocator, asking: Json, why: str) -> None:
    outcome = converge(service(**asking), allocator)
    assert outcome.patch is None
    assert outcome.notes == (("Warning", "AllocationFailed", f'Failed to allocate IP for "default/s": {why}'),)
    assert allocator.held_by("default/s") is None


def test_one_with_an_address_keeps_it_while_it_asks_for_nonsense(allocator: Allocator) -> None:
    outcome = converge(service(shows=("10.0.0.1",), annotations={FROM_POOL: "default"}, loadBalancerIP="x"), allocator)
    assert outcome.patch is None
    assert outcome.notes == (
        ("Warning", "LoadBalancerFailed", 'invalid requested loadbalancer IPs: invalid spec.loadBalancerIP "x"'),
    )
    assert allocator.held_by("default/s") is not None


def test_local_traffic_shares_an_address_only_with_the_same_backends(allocator: Allocator) -> None:
    shared: dict[str, Any] = {"annotations": {"metallb.io/allow-shared-ip": "k"}, "externalTrafficPolicy": "Local"}
    converge(service("a", ports=(1,), selector={"app": "x"}, **shared), allocator)
    same = converge(service("b", ports=(2,), selector={"app": "x"}, **shared), allocator)
    other = converge(service("c", ports=(3,), selector={"app": "y"}, **shared), allocator)
    assert (shown(same.patch), shown(other.patch)) == (["10.0.0.1"], ["10.0.0.2"])


def test_one_that_needs_two_families_and_has_one_is_told(allocator: Allocator) -> None:
    outcome = converge(service(ipFamilyPolicy="RequireDualStack"), allocator)
    text = "Service requires dual stack but not enough clusterips [10.96.0.10]"
    assert outcome.notes == (("Warning", "not enough clusterips", text),)


def test_a_class_of_ones_own_is_none_of_our_business() -> None:
    assert is_ours(service())
    assert not is_ours(service(loadBalancerClass="example.com/other"))
