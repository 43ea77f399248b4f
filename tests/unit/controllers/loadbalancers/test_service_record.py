"""What becomes of tenants' Services is recorded: their waits, and the loss of an address, which must not happen."""

from __future__ import annotations

from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from butler.api.objects import Key
from butler.controllers.loadbalancers import service_record
from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
from butler.controllers.loadbalancers.service_record import ServiceRecord, has_lost_its_address
from butler.kube.kinds import CLUSTERS
from unit.controllers.tenantcluster.management import Management, View
from unit.controllers.tenantcluster.site import Notes
from unit.controllers.tenantcluster.values import cluster
from unit.rules.loadbalancer.balancers import service

KEY = Key("team-a", "web")
A, B = "10.40.0.20", "10.40.0.21"


class Desk:
    """A record, its clock and what it told."""

    def __init__(self) -> None:
        self.registry, self.events, self.now = CollectorRegistry(), Notes(), 100.0
        management = Management()
        management.put("tenantclusters", cluster())
        view = cast("Any", View(management, CLUSTERS))
        metrics = LoadBalancerMetrics(self.registry)
        self.record = ServiceRecord(view, cast("Any", self.events), metrics, lambda: self.now)

    def value(self, name: str) -> float:
        return self.registry.get_sample_value(f"butler_load_balancer_{name}") or 0.0


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_the_time_from_a_waiting_service_to_its_address_is_measured(desk: Desk) -> None:
    desk.record.changed(KEY, None, service())
    desk.now += 2.5
    desk.record.changed(KEY, service(), service("shop", A))
    assert (desk.value("wait_seconds_count"), desk.value("wait_seconds_sum")) == (1, 2.5)


def test_changes_on_the_way_do_not_begin_the_wait_anew(desk: Desk) -> None:
    desk.record.changed(KEY, None, service())
    desk.now += 2
    desk.record.changed(KEY, service(), service(sharing_key="x"))
    desk.now += 2
    desk.record.changed(KEY, service(sharing_key="x"), service("shop", A))
    assert desk.value("wait_seconds_sum") == 4


def test_a_service_that_gives_up_or_goes_did_not_wait_for_an_address(desk: Desk) -> None:
    for last in (None, service(deleting=True), service(has_hostname=True), service(asks=(A,))):
        desk.record.changed(KEY, None, service())
        desk.record.changed(KEY, service(), last)
        desk.record.changed(KEY, last, service("shop", A))
    assert desk.value("wait_seconds_count") == 0


def test_a_service_that_has_its_address_when_it_is_first_seen_did_not_wait(desk: Desk) -> None:
    desk.record.changed(KEY, None, service("shop", A))
    assert desk.value("wait_seconds_count") == 0


def test_one_of_the_same_name_that_comes_after_it_waits_anew(desk: Desk) -> None:
    desk.record.changed(KEY, None, service())
    desk.now += 50
    again = service()._replace(uid="another")
    desk.record.changed(KEY, service(), again)
    desk.now += 1
    desk.record.changed(KEY, again, again._replace(addresses=(A,)))
    assert desk.value("wait_seconds_sum") == 1


def test_tenants_do_not_mix(desk: Desk) -> None:
    desk.record.changed(KEY, None, service())
    desk.record.changed(Key("team-b", "web"), None, service("shop", A))
    assert desk.value("wait_seconds_count") == 0


def test_a_service_that_loses_its_address_is_told_loudly(desk: Desk) -> None:
    desk.record.changed(KEY, service("shop", A), service("shop", B))
    desk.record.changed(KEY, service("shop", B), service("shop"))
    assert desk.value("services_moved_total") == 2
    assert [reason for reason, _ in desk.events.found] == ["ServiceAddressMoved"] * 2
    assert desk.events.found[0][1] == f"Service web/shop had {A} and has {B} now"
    assert desk.events.found[1][1].endswith("has none now")


def test_a_cluster_that_is_gone_meanwhile_still_counts(desk: Desk) -> None:
    desk.record.changed(Key("team-b", "gone"), service("shop", A), service("shop", B))
    assert desk.value("services_moved_total") == 1
    assert desk.events.found == []


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (service("shop", A, B), "it has one more"),
        (service("shop", B, asks=(B,)), "it asked for another"),
        (service("shop", asks_pool="other"), "it asked for another pool"),
        (service("shop", class_name="other"), "it asked for another load balancer"),
        (service("shop", B, sharing_key="x"), "it asked to share another"),
        (service("shop", families=("IPv6",)), "it asked for another family"),
        (service("shop", deleting=True), "it goes"),
        (service("shop", B)._replace(uid="another"), "it is another"),
    ],
)
def test_an_address_given_up_by_the_tenants_own_doing_is_not_lost(new: Any, why: str) -> None:
    assert not has_lost_its_address(service("shop", A), new), why


def test_what_is_remembered_has_a_bound(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_record, "MOST_WAITING", 3)
    for number in range(10):
        desk.record.changed(KEY, None, service(f"s{number}"))
    for number in range(10):
        desk.record.changed(KEY, service(f"s{number}"), service(f"s{number}", A))
    assert desk.value("wait_seconds_count") == 3
