"""The checker itself: a lawful story breaks no rule, and for each rule a story that breaks it is found out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from elastic import rules
from elastic.chronicle import ADDRESS_POOL, PROVIDER, SERVICE, TENANT, Chronicle, Dated
from elastic.moments import NEVER_BEGAN, NEVER_ENDED, Clock, Moment, Period, gaps
from elastic.rest import at_rest, written_since
from ipam.history import ALLOCATION, POOL, Revision

if TYPE_CHECKING:
    from ipam.history import Json

RED, BLUE = "uid-red", "uid-blue"
When = Moment | None


class Story:
    """Both sides in one store: each line takes the next number, unless the moments are given."""

    def __init__(self) -> None:
        self.chronicle = Chronicle(tenants={RED: [], BLUE: []})
        self._version = 0
        self._now: dict[tuple[str, str, str, str], Json] = {}
        self._edits: set[tuple[str, int]] = set()

    def _write(
        self, side: list[Dated], where: str, obj: Json | None, kind: str, key: tuple[str, str], when: Any
    ) -> int:
        self._version += 1
        before = self._now.pop((where, kind, *key), None)
        if obj is not None:
            self._now[where, kind, *key] = obj
        uid = str((obj or before or {})["metadata"]["uid"])
        revision = Revision(self._version, kind, *key, uid, before, obj, float(self._version))
        side.append(Dated(when or Moment.exact(self._version), revision))
        return self._version

    def manage(self, kind: str, name: str, obj: Json | None, when: When = None) -> None:
        self._write(self.chronicle.management, "", obj, kind, ("butler-system", name), when)

    def allocation(
        self,
        name: str,
        phase: str,
        *last: int,
        tenant: str = RED,
        role: str = "growth",
        when: When = None,
        deleted: bool = False,
        **status: Any,
    ) -> None:
        labels = {"butler.butlerlabs.dev/tenant-uid": tenant, "butler.butlerlabs.dev/allocation-role": role}
        addresses = [f"10.0.0.{number}" for number in last]
        ends = {"startAddress": addresses[0], "endAddress": addresses[-1]} if last else {}
        obj = {
            "metadata": {
                "uid": f"a-{name}",
                "name": name,
                "labels": labels,
                **({"deletionTimestamp": "now"} if deleted else {}),
            },
            "spec": {"type": "loadbalancer", "poolRef": {"name": "lab"}, "count": len(last) or 1},
            "status": {"phase": phase, "addresses": addresses, **ends, **status},
        }
        self.manage(ALLOCATION, name, obj, when)

    def pool(self, *entries: str, tenant: str = RED, by_user: bool = False, when: When = None, **spec: Any) -> None:
        meta = {"uid": f"p-{tenant}", "name": "default-pool", "namespace": "metallb-system"}
        obj = {"metadata": meta, "spec": {"addresses": [f"10.0.0.{entry}" for entry in entries], **spec}}
        key = ("metallb-system", "default-pool")
        written = self._write(self.chronicle.tenants[tenant], tenant, obj if entries else None, ADDRESS_POOL, key, when)
        if by_user:
            self._edits.add((tenant, written))
            self.chronicle.edits = frozenset(self._edits)

    def service(self, name: str, *last: int, tenant: str = RED, when: When = None, **given: Any) -> None:
        meta = {"uid": f"s-{name}", "name": name, "namespace": "default", **given.pop("metadata", {})}
        ingress = given.pop("ingress", [{"ip": f"10.0.0.{number}"} for number in last])
        obj = {
            "metadata": meta,
            "spec": {"type": "LoadBalancer", "ports": [{"port": 80}], **given},
            "status": {"loadBalancer": {"ingress": ingress}},
        }
        self._write(self.chronicle.tenants[tenant], tenant, obj, SERVICE, ("default", name), when)

    def no_service(self, name: str, tenant: str = RED) -> None:
        self._write(self.chronicle.tenants[tenant], tenant, None, SERVICE, ("default", name), None)

    # The world around.

    def provider(self, **network: Any) -> None:
        balancers = {"allocationMode": "elastic", "initialPoolSize": 1, "growthIncrement": 1}
        network = {"mode": "ipam", "poolRefs": [{"name": "lab"}], "loadBalancer": balancers, **network}
        self.manage(PROVIDER, "lab", {"metadata": {"uid": "prov", "name": "lab"}, "spec": {"network": network}})

    def network_pool(self, last: int = 9) -> None:
        spec = {"cidr": "10.0.0.0/24", "tenantAllocation": {"start": "10.0.0.1", "end": f"10.0.0.{last}"}}
        self.manage(POOL, "lab", {"metadata": {"uid": "pool", "name": "lab"}, "spec": spec})

    def cluster(self, *, says: str = "", **use: int) -> None:
        """`says` is the reason of its condition; it holds for InStep."""
        meta = {"uid": RED, "name": "red"}
        spec = {"providerConfigRef": {"name": "lab"}}
        said = {"type": "LoadBalancersReady", "status": "True" if says == "InStep" else "False", "reason": says}
        status = {"loadBalancers": use, "conditions": [said] if says else []}
        self.manage(TENANT, meta["name"], {"metadata": meta, "spec": spec, "status": status})

    def broken(self) -> list[str]:
        return [violation.rule for violation in rules.check(self.chronicle)]

    def broken_at_rest(self) -> list[str]:
        return [violation.rule for violation in at_rest(self.chronicle)]


@pytest.fixture
def story() -> Story:
    return Story()


def grown(story: Story) -> None:
    """One initial address, one grown, a Service on each."""
    story.provider()
    story.network_pool()
    story.allocation("red-lb", "Allocated", 1, role="initial")
    story.pool("1-10.0.0.1")
    story.service("one", 1)
    story.service("two")
    story.allocation("red-lb-2", "Pending")
    story.allocation("red-lb-2", "Allocated", 2)
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    story.service("two", 2)


def shrunk(story: Story) -> None:
    grown(story)
    story.no_service("two")
    story.allocation("red-lb-2", "Allocated", 2, drainingSince="now")
    story.pool("1-10.0.0.1", "2-10.0.0.2", autoAssign=False)
    story.pool("1-10.0.0.1")
    story.allocation("red-lb-2", "Released", 2)


# What is lawful.


def test_growing_and_shrinking_in_order_breaks_no_rule(story: Story) -> None:
    shrunk(story)
    story.service("three")
    story.allocation("red-lb-3", "Allocated", 2)
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    story.service("three", 2)
    assert story.broken() == []


def test_an_address_goes_to_another_tenant_in_order(story: Story) -> None:
    shrunk(story)
    story.allocation("blue-lb", "Allocated", 2, tenant=BLUE)
    story.pool("2-10.0.0.2", tenant=BLUE)
    story.service("other", 2, tenant=BLUE)
    assert story.broken() == []


# S5.


def test_a_range_published_before_it_is_granted(story: Story) -> None:
    story.allocation("red-lb", "Pending")
    story.pool("1-10.0.0.1")
    story.allocation("red-lb", "Allocated", 1)
    assert story.broken() == ["S5"]


def test_a_range_released_before_it_is_withdrawn(story: Story) -> None:
    grown(story)
    story.no_service("two")
    story.allocation("red-lb-2", "Released", 2)
    story.pool("1-10.0.0.1")
    assert story.broken() == ["S5"]


def test_a_range_that_stays_published_for_ever(story: Story) -> None:
    grown(story)
    story.no_service("two")
    story.allocation("red-lb-2", "Released", 2)
    assert story.broken() == ["S5"]


def test_a_range_that_is_published_again_after_its_release(story: Story) -> None:
    shrunk(story)
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    story.pool("1-10.0.0.1")
    assert story.broken() == ["S5"]


def test_an_address_of_another_tenant_that_is_published(story: Story) -> None:
    story.allocation("blue-lb", "Allocated", 1, tenant=BLUE)
    story.pool("1-10.0.0.1")
    assert story.broken() == ["S5"]


def test_what_a_user_wrote_into_the_pool_is_not_held_against_butler(story: Story) -> None:
    grown(story)
    story.pool("1-10.0.0.1", "2-10.0.0.2", "7-10.0.0.7", by_user=True)
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    assert story.broken() == []
    story.pool("1-10.0.0.1", "2-10.0.0.2", "7-10.0.0.7")
    assert story.broken() == ["S5"], "the second time it was not the user"


# S4.


def test_an_address_released_under_a_service(story: Story) -> None:
    grown(story)
    story.pool("1-10.0.0.1")
    story.allocation("red-lb-2", "Released", 2)
    story.no_service("two")
    assert story.broken() == ["S4"]


def test_an_address_that_another_tenant_is_granted_while_a_service_has_it(story: Story) -> None:
    grown(story)
    story.pool("1-10.0.0.1")
    story.allocation("red-lb-2", "Released", 2)
    story.allocation("blue-lb", "Allocated", 2, tenant=BLUE)
    (found,) = rules.used_is_held(story.chronicle)
    assert "blue-lb" in found.what


def test_addresses_that_are_not_butlers_are_left_alone(story: Story) -> None:
    story.service("own", 200)
    assert story.broken() == []


# Between tenants.


def test_an_address_in_the_pools_of_two_tenants(story: Story) -> None:
    story.allocation("red-lb", "Allocated", 1)
    story.pool("1-10.0.0.1")
    story.pool("1-10.0.0.1", tenant=BLUE)
    assert sorted(story.broken()) == ["S5", "shared"]


# Services.


def test_a_service_that_is_moved(story: Story) -> None:
    grown(story)
    story.allocation("red-lb-3", "Allocated", 3)
    story.pool("1-10.0.0.1", "3-10.0.0.3")
    story.service("two", 3)
    assert story.broken() == ["moved"]


def test_a_service_that_loses_its_address(story: Story) -> None:
    grown(story)
    story.pool("1-10.0.0.1")
    story.service("two")
    assert story.broken() == ["moved"]


def test_a_service_moves_when_its_user_asks_for_another_address(story: Story) -> None:
    grown(story)
    story.service("two", 2, loadBalancerIP="10.0.0.1")
    story.service("two", loadBalancerIP="10.0.0.1")
    assert story.broken() == []


def test_a_service_that_is_no_load_balancer_any_more_may_lose_its_address(story: Story) -> None:
    grown(story)
    story.service("two", 2, type="ClusterIP")
    story.service("two", type="ClusterIP")
    assert story.broken() == []


def test_a_service_whose_address_a_user_took_out_of_the_pool(story: Story) -> None:
    grown(story)
    story.pool("1-10.0.0.1", by_user=True)
    story.service("two")
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    story.service("two", 2)
    assert story.broken() == []
    story.service("two")
    assert story.broken() == ["moved"], "the second time it was not the user"


# Circles.


def test_growth_that_no_service_asked_for_after_a_shrink(story: Story) -> None:
    shrunk(story)
    story.allocation("red-lb-3", "Allocated", 2)
    assert story.broken() == ["circle"]


@pytest.mark.parametrize("stimulus", ["service", "provider", "edit", "during the drain"])
def test_growth_that_a_service_asked_for(story: Story, stimulus: str) -> None:
    grown(story)
    story.cluster()
    story.no_service("two")
    story.allocation("red-lb-2", "Allocated", 2, drainingSince="now")
    if stimulus == "during the drain":
        story.service("three")
    story.pool("1-10.0.0.1")
    story.allocation("red-lb-2", "Released", 2)
    if stimulus == "service":
        story.service("three")
    if stimulus == "provider":
        story.provider(quotaPerTenant={"maxLoadBalancerIPs": 9})
    if stimulus == "edit":
        story.pool("1-10.0.0.1", by_user=True)
    story.allocation("red-lb-3", "Allocated", 3)
    assert story.broken() == []


def test_a_request_that_is_made_anew_in_another_pool_is_no_circle(story: Story) -> None:
    grown(story)
    story.service("three")
    story.allocation("red-lb-3", "Failed")
    story.allocation("red-lb-3", "Released")
    story.allocation("red-lb-4", "Allocated", 3)
    assert story.broken() == []


# Two stores: only what is certain.


def test_an_overlap_that_the_bounds_leave_open_is_no_accusation(story: Story) -> None:
    story.allocation("red-lb", "Allocated", 1, when=Moment(0, 1))
    story.pool("1-10.0.0.1", when=Moment(2, 3))
    story.allocation("red-lb", "Released", 1, when=Moment(10, 12))
    story.pool("2-10.0.0.2", when=Moment(9, 12.5))
    assert "S5" not in [
        violation.rule for violation in rules.announced_is_held(story.chronicle) if "10.0.0.1 " in violation.what
    ]


def test_an_overlap_that_the_bounds_prove_is_one(story: Story) -> None:
    story.allocation("red-lb", "Allocated", 1, when=Moment(0, 1))
    story.pool("1-10.0.0.1", when=Moment(2, 3))
    story.allocation("red-lb", "Released", 1, when=Moment(10, 12))
    story.pool("1-10.0.0.1", autoAssign=True, when=Moment(12.5, 13))
    assert story.broken() == ["S5"]


def test_a_clock_knows_the_bounds_of_a_version_from_looks_at_the_counter() -> None:
    clock = Clock()
    assert clock.moment(5, seen=9.0) == Moment(float("-inf"), 9.0)
    clock.looked(4, began=1.0, ended=1.2)
    clock.looked(4, began=2.0, ended=2.2)
    clock.looked(7, began=3.0, ended=3.2)
    assert clock.moment(4, seen=9.0) == Moment(float("-inf"), 1.2)
    assert clock.moment(5, seen=9.0) == Moment(2.0, 3.2)
    assert clock.moment(7, seen=3.1) == Moment(2.0, 3.1)
    assert clock.moment(8, seen=9.0) == Moment(3.0, 9.0)


def test_gaps_are_what_is_between_periods() -> None:
    one, two, three = (Moment.exact(number) for number in (1, 2, 3))
    assert gaps([]) == [Period(NEVER_BEGAN, NEVER_ENDED)]
    assert gaps([Period(three), Period(one, two)]) == [Period(NEVER_BEGAN, one), Period(two, three)]
    assert not Period(one, two).surely_meets(Period(two, three))
    assert Period(one, three).surely_meets(Period(two, three))


# At rest.


def resting(story: Story) -> None:
    grown(story)
    story.cluster(held=2, inUse=2, idle=0, services=2)


def test_a_tenant_at_rest_breaks_no_rule(story: Story) -> None:
    resting(story)
    assert story.broken_at_rest() == []


def test_a_service_waits_while_an_address_is_free(story: Story) -> None:
    grown(story)
    story.no_service("two")
    story.service("three")
    story.cluster(held=2, inUse=1, idle=1, services=1, waitingServices=1)
    assert story.broken_at_rest() == ["unserved"]


@pytest.mark.parametrize(
    ("quota", "room", "wrong"), [(None, 9, True), (3, 9, True), (2, 9, False), (None, 2, False), (3, 2, False)]
)
def test_a_service_waits_while_quota_and_pools_would_serve_it(
    story: Story, quota: int | None, room: int, wrong: bool
) -> None:
    resting(story)
    story.network_pool(room)
    story.provider(**({"quotaPerTenant": {"maxLoadBalancerIPs": quota}} if quota else {}))
    story.service("three")
    story.cluster(held=2, inUse=2, idle=0, services=2, waitingServices=1)
    assert story.broken_at_rest() == (["unserved"] if wrong else [])


NOT_FOR_US: list[dict[str, Any]] = [
    {"loadBalancerClass": "example.com/other"},
    {"loadBalancerIP": "10.0.0.99"},
    {"metadata": {"annotations": {"metallb.io/loadBalancerIPs": "10.0.0.99"}}},
    {"metadata": {"annotations": {"metallb.universe.tf/address-pool": "special"}}},
    {"metadata": {"deletionTimestamp": "now"}},
    {"ipFamilies": ["IPv6"]},
    {"ipFamilies": ["IPv4", "IPv6"], "ipFamilyPolicy": "RequireDualStack"},
    {"ingress": [{"hostname": "there.example"}]},
    {"type": "NodePort"},
]


@pytest.mark.parametrize("given", NOT_FOR_US, ids=str)
def test_a_service_that_metallb_would_not_serve_may_wait(story: Story, given: dict[str, Any]) -> None:
    resting(story)
    story.service("three", **given)
    assert story.broken_at_rest() == []


def test_a_range_that_is_held_and_not_published(story: Story) -> None:
    resting(story)
    story.allocation("red-lb-3", "Allocated", 3)
    story.cluster(held=3, inUse=2, idle=1, services=2)
    assert story.broken_at_rest() == ["unpublished"]


def test_a_pool_that_hands_out_nothing(story: Story) -> None:
    resting(story)
    story.pool("1-10.0.0.1", "2-10.0.0.2", autoAssign=False)
    assert story.broken_at_rest() == ["unpublished"]


@pytest.mark.parametrize("wrong", ["held", "inUse", "idle", "services", "platformServices", "waitingServices"])
def test_figures_that_are_wrong(story: Story, wrong: str) -> None:
    resting(story)
    right: dict[str, Any] = {
        "held": 2,
        "inUse": 2,
        "idle": 0,
        "services": 2,
        "platformServices": 0,
        "waitingServices": 0,
    }
    story.cluster(**{**right, wrong: 7})
    assert story.broken_at_rest() == ["miscounted"]


def waits_for_quota(story: Story, says: str) -> None:
    story.provider(quotaPerTenant={"maxLoadBalancerIPs": 2})
    story.service("three")
    story.cluster(held=2, inUse=2, idle=0, services=2, waitingServices=1, says=says)


def is_deleted_in_use(story: Story, says: str) -> None:
    story.allocation("red-lb-2", "Allocated", 2, deleted=True)
    story.cluster(held=2, inUse=2, idle=0, services=2, says=says)


def is_well(story: Story, says: str) -> None:
    story.cluster(held=2, inUse=2, idle=0, services=2, says=says)


@pytest.mark.parametrize(
    ("state", "says", "wrong"),
    [
        (is_well, "InStep", False),
        (is_well, "TenantUnreachable", True),
        (waits_for_quota, "InStep", True),
        (waits_for_quota, "QuotaReached", False),
        (is_deleted_in_use, "InStep", True),
        (is_deleted_in_use, "DeletionWaits", False),
    ],
)
def test_a_condition_that_is_not_true(story: Story, state: Any, says: str, wrong: bool) -> None:
    resting(story)
    state(story, says)
    assert story.broken_at_rest() == (["untrue"] if wrong else [])


def test_a_condition_that_says_all_is_well_while_metallb_hands_out_nothing(story: Story) -> None:
    resting(story)
    is_well(story, "InStep")
    story.pool("1-10.0.0.1", "2-10.0.0.2", autoAssign=False)
    assert story.broken_at_rest() == ["unpublished", "untrue"]


def test_a_request_that_no_service_needs(story: Story) -> None:
    resting(story)
    story.allocation("red-lb-3", "Pending")
    assert story.broken_at_rest() == ["needless"]


def test_what_is_written_at_rest_is_found_on_both_sides(story: Story) -> None:
    resting(story)
    seen = story.chronicle
    mark = Chronicle(list(seen.management), {uid: list(dated) for uid, dated in seen.tenants.items()})
    story.provider()  # of another test
    assert written_since(story.chronicle, mark) == []
    story.pool("1-10.0.0.1", "2-10.0.0.2")
    story.cluster(held=2)
    story.allocation("red-lb-2", "Allocated", 2)
    assert [violation.rule for violation in written_since(story.chronicle, mark)] == ["L3"] * 3
