"""An allocation that is deleted while its tenant lives: it stays while Services use it, and then goes by the drain."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.tenant.metallb import NAMESPACE as METALLB
from unit.controllers.loadbalancers.breaking import FAULTS, Breaking
from unit.controllers.loadbalancers.household import KEY, SECRET, Household
from unit.controllers.tenantcluster.site import NAMESPACE
from unit.controllers.tenantcluster.values import HOME, NOW, UID, cluster
from unit.rules.loadbalancer.balancers import lb

TWO = "10.40.0.20-10.40.0.21"
STATIC: dict[str, Any] = {"allocationMode": "static", "defaultPoolSize": 2}


def delete(house: Household, name: str = "web-lb") -> None:
    """As `kubectl delete` does where no webhook refuses: the finalizer keeps it."""
    found = house.management.find("ipallocations", HOME, name)
    assert found is not None
    body = {**found, "metadata": {**found["metadata"], "deletionTimestamp": NOW.isoformat()}}
    house.management.put("ipallocations", body)


def deleting(house: Household, name: str = "web-lb") -> tuple[str, str]:
    found = find_condition(house.allocation(name).status.conditions, ConditionType.DELETING)
    return (found.reason, found.message) if found else ("", "")


def by_hand(name: str = "by-hand", *, recorded: bool = True) -> Any:
    """As a person makes it: no labels, and the owner in the status once it was seen."""
    made = lb(name, "10.40.0.30")
    status = msgspec.structs.replace(made.status, tenant_cluster_uid=UID if recorded else None)
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, labels={}), status=status)


@pytest.fixture(params=["elastic", "static"])
async def house(request: pytest.FixtureRequest) -> Household:
    found = Household(balancers={"allocationMode": request.param, "growthIncrement": 2, "defaultPoolSize": 2})
    found.tenant.add_service("a")
    await found.live(10)
    assert found.tenant.address_of("a") == "10.40.0.20"
    found.log.clear()
    return found


async def test_what_a_service_uses_stays_and_says_who_uses_it(house: Household) -> None:
    delete(house)
    await house.live(3600)
    assert house.phases()["web-lb"] == "Allocated"
    assert TWO in house.tenant.addresses
    reason, message = deleting(house)
    assert reason == "InUse"
    assert "shop/a (10.40.0.20)" in message
    assert house.reason() == "DeletionWaits"
    assert "shop/a" in house.said()
    assert house.events.reasons().count("DeletionWaits") == 1
    house.restart()
    await house.live(600)
    assert house.events.found == [], "told once, also by the next process"


async def test_what_no_service_uses_any_more_goes_by_the_drain(house: Household) -> None:
    delete(house)
    await house.live(30)
    house.tenant.remove_service("a")
    house.log.clear()
    await house.live(30)
    kept = ("patch ipallocations here", "pool ", "delete ", "list services")
    assert [text for text in house.log if any(part in text for part in kept)] == [
        "patch ipallocations here",  # the mark, and that it is being taken back
        "apply pool 1 held back",
        "list services",
        "delete ipaddresspools",
        "list services",
        "patch ipallocations here",  # the release
    ]
    found = house.allocation("web-lb")
    assert found.status.phase.value == "Released"
    ready = find_condition(found.status.conditions, ConditionType.READY)
    assert ready is not None
    assert "deleted by request" in ready.message
    assert house.reason() == "InStep"


@pytest.mark.parametrize("name", ["web-lb", "web-lb-2", "by-hand"])
async def test_initial_growth_and_hand_made_ranges_are_all_drained(house: Household, name: str) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.management.put("ipallocations", by_hand())
    await house.live(10)
    address = {"web-lb": "10.40.0.21", "web-lb-2": "10.40.0.22", "by-hand": "10.40.0.30"}[name]
    house.tenant.add_service("b", asks=address)
    house.tenant.remove_service("a")
    await house.live(10)
    assert house.tenant.address_of("b") == address
    delete(house, name)
    await house.live(600)
    assert house.phases()[name] == "Allocated"
    assert "shop/b" in deleting(house, name)[1]
    house.tenant.remove_service("b")
    await house.live(30)
    assert house.phases()[name] == "Released"
    assert house.tenant.hands_out


async def test_new_services_get_other_addresses_and_a_replacement_comes_only_on_demand() -> None:
    house = Household()
    house.tenant.add_service("a")
    await house.live(10)
    delete(house)
    await house.live(60)
    assert list(house.phases()) == ["web-lb"], "no Service waits, so nothing is asked for"
    assert not house.tenant.hands_out, "and no Service gets what is to go"
    house.tenant.add_service("b")
    await house.live(30)
    assert house.tenant.address_of("b") == "10.40.0.22"
    assert house.tenant.hands_out
    house.tenant.add_service("c")
    await house.live(30)
    assert house.tenant.address_of("c") == "10.40.0.23", "the last of what stays goes first"
    house.tenant.add_service("d")
    await house.live(60)
    assert house.tenant.address_of("d") == "10.40.0.24"
    house.tenant.remove_service("a")
    await house.live(60)
    assert house.phases()["web-lb"] == "Released"
    assert house.reason() == "InStep"
    assert house.tenant.hands_out


async def test_many_services_at_once_get_none_of_what_goes() -> None:
    house = Household(initial=4)
    house.tenant.add_service("a")
    await house.live(10)
    delete(house)
    await house.live(10)
    names = [f"s{number}" for number in range(5)]
    for name in names:
        house.tenant.add_service(name)
        await house.look()
        house.answer()
    await house.live(30)
    assert sorted(filter(None, map(house.tenant.address_of, names))) == [
        f"10.40.0.{24 + number}" for number in range(5)
    ]


async def test_addresses_that_stay_serve_whom_they_can_where_no_more_come() -> None:
    house = Household(balancers=STATIC)
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.tenant.add_service("a")
    await house.live(10)
    delete(house)
    await house.live(10)
    for name in "bcd":
        house.tenant.add_service(name)
    await house.live(30)
    assert {"10.40.0.22", "10.40.0.23"} <= {house.tenant.address_of(name) for name in "bcd"}


async def test_a_static_tenant_hands_out_nothing_that_goes_and_says_who_waits() -> None:
    house = Household(balancers=STATIC)
    house.tenant.add_service("a")
    await house.live(10)
    delete(house)
    await house.live(10)
    house.tenant.add_service("b")
    await house.live(60)
    assert house.tenant.address_of("b") is None
    assert house.reason() == "ServicesWaiting"
    assert "shop/b" in house.said()
    assert "web-lb (10.40.0.20-10.40.0.21) was deleted and is used by shop/a" in house.said()
    house.tenant.remove_service("a")
    await house.live(60)
    assert house.phases()["web-lb"] == "Released", "that one waits for it is no reason to keep it"


async def test_a_service_that_asks_for_the_address_of_a_range_that_goes_keeps_it(house: Household) -> None:
    delete(house)
    await house.live(10)
    house.tenant.add_service("b", asks="10.40.0.21")
    house.tenant.remove_service("a")
    await house.live(120)
    assert house.tenant.address_of("b") == "10.40.0.21"
    assert house.phases()["web-lb"] == "Allocated"


async def test_a_tenant_that_cannot_be_reached_keeps_what_was_deleted(house: Household) -> None:
    house.feeds.feed.trouble = "connection refused"
    delete(house)
    await house.live(3600)
    assert house.phases()["web-lb"] == "Allocated"
    reason, message = deleting(house)
    assert reason == "Unknown"
    assert "connection refused" in message
    assert house.reason() == "TenantUnreachable"
    house.feeds.feed.trouble = ""
    await house.live(60)
    assert deleting(house)[0] == "InUse"
    house.tenant.remove_service("a")
    await house.live(60)
    assert house.phases()["web-lb"] == "Released"


async def test_a_tenant_whose_kubeconfig_is_gone_keeps_what_was_deleted(house: Household) -> None:
    house.management.drop("secrets", NAMESPACE, SECRET)
    delete(house)
    await house.live(600)
    assert house.phases()["web-lb"] == "Allocated"
    assert deleting(house)[0] == "Unknown"


async def test_a_tenant_that_never_had_an_api_server_gives_back_at_once() -> None:
    house = Household()
    house.management.drop("secrets", NAMESPACE, SECRET)
    house.management.put("tenantclusters", cluster())
    delete(house)
    await house.look()
    assert house.phases()["web-lb"] == "Released"


async def test_a_paused_cluster_keeps_what_was_deleted_until_it_goes_on(house: Household) -> None:
    house.tenant.remove_service("a")
    house.wish(paused=True)
    delete(house)
    await house.live(600)
    assert house.phases()["web-lb"] == "Allocated"
    assert "paused" in deleting(house)[1]
    house.wish()
    await house.live(60)
    assert house.phases()["web-lb"] == "Released"


async def test_a_range_of_a_tenant_without_metallb_goes_when_no_service_shows_it(house: Household) -> None:
    house.tenant.uninstall()
    house.tenant.objects.pop("ipaddresspools")
    house.doubt()
    await house.live(5)
    assert house.reason() == "NotInstalled"
    delete(house)
    await house.live(60)
    assert house.phases()["web-lb"] == "Allocated", "a Service shows it still"
    house.tenant.remove_service("a")
    await house.live(60)
    assert house.phases()["web-lb"] == "Released"


async def test_a_range_stays_while_metallb_refuses_its_configuration_and_says_so(house: Household) -> None:
    refused = {"type": "poolReconcilerValid", "status": "False", "message": "pools overlap", "lastTransitionTime": "x"}
    meta = {"name": "controller", "namespace": METALLB}
    house.tenant.put("configurationstates", {"metadata": meta, "status": {"conditions": [refused]}})
    house.tenant.metallb_hangs = True
    house.tenant.remove_service("a")
    delete(house)
    await house.live(60)
    assert house.phases()["web-lb"] == "Allocated"
    assert house.reason() == "Refused"
    assert "pools overlap" in deleting(house)[1]
    house.tenant.metallb_hangs = False
    accepted = {**refused, "status": "True"}
    house.tenant.put("configurationstates", {"metadata": meta, "status": {"conditions": [accepted]}})
    await house.live(100)
    assert house.phases()["web-lb"] == "Released"


async def test_a_range_that_is_deleted_in_the_middle_of_its_drain_is_still_taken_back_in_order() -> None:
    house = Household()
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=590))
    await house.live(5)
    house.pass_(60)
    await house.look()
    assert house.marked() == ["web-lb-2"]
    delete(house, "web-lb-2")
    await house.live(60)
    assert house.phases()["web-lb-2"] == "Released"


async def test_a_range_that_is_granted_and_deleted_before_it_was_published_is_never_published(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    delete(house, "web-lb-2")
    await house.live(60)
    assert house.phases()["web-lb-2"] == "Released"
    assert not [text for text in house.log if "pool 2" in text]


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_deletion_goes_on_whichever_of_its_requests(fault: str) -> None:
    for number in itertools.count():
        house = Household()
        house.tenant.add_service("a", asks="10.40.0.22")
        house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
        await house.live(10)
        delete(house)
        broken = Breaking(house, number, fault=fault)
        await house.live(240)
        story = f"request {number} ({broken.struck}) {fault}"
        assert house.phases() == {"web-lb": "Released", "web-lb-2": "Allocated"}, story
        assert house.tenant.addresses == ["10.40.0.22-10.40.0.23"], story
        assert house.tenant.hands_out, story
        assert house.reason() == "InStep", story
        if not broken.struck:
            break
    assert number > 4


async def test_a_process_with_a_late_view_withdraws_no_hand_made_range() -> None:
    """Its owner stands in the status, not in a label."""
    house = Household()
    await house.live(10)
    house.views.allocations.freeze()  # type: ignore[attr-defined]
    late = house.controller
    house.management.put("ipallocations", by_hand())
    house.restart()
    await house.live(10)
    house.tenant.add_service("a", asks="10.40.0.30")
    house.answer()
    assert house.tenant.address_of("a") == "10.40.0.30"
    house.doubt(late)
    await late.reconcile(KEY)
    assert "10.40.0.30-10.40.0.31" in house.tenant.addresses
    house.check()


async def test_what_was_held_back_for_one_range_does_not_count_for_the_next_one() -> None:
    """Found by the search through all orders of events (tests/model/elastic_deletion.py).

    The withdrawal of the first was contested, so it is found outside, and the pool is stamped. Only ranges that go are
    left, so the stamp looks like a pool that is held back; but MetalLB has not had its time to take that in.
    """
    house = Household()
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.live(10)
    delete(house, "web-lb-2")
    while not house.marked():
        await house.look()
    await house.look()
    (states,) = house.controller._states.values()
    assert states.drain.held_back is not None
    delete(house)
    house.tenant.edit_pool(addresses=[TWO])  # by another process, which has withdrawn it
    house.pass_(30)
    await house.look()
    assert house.tenant.pool is not None
    assert house.tenant.pool["spec"]["autoAssign"] is False
    assert states.drain.held_back is None
