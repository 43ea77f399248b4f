"""Taking addresses back: in which order, on whose word, and what breaks it off."""

from __future__ import annotations

import pytest

from butler.api.labels import Annotation
from butler.tenant.metallb import NAMESPACE
from unit.controllers.loadbalancers.household import KEY, Household
from unit.controllers.tenantcluster.management import refusal
from unit.rules.loadbalancer.balancers import lb

TWO = "10.40.0.20-10.40.0.21"
GROWN = "10.40.0.22-10.40.0.23"


@pytest.fixture
async def house() -> Household:
    """Two addresses in use, and two that were idle for the grace time, but for a moment."""
    found = Household()
    found.tenant.add_service("a")
    found.tenant.add_service("b")
    found.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    await found.live(30)
    assert found.tenant.addresses == [TWO, GROWN]
    found.pass_(30)
    found.log.clear()
    return found


def steps(house: Household) -> list[str]:
    """Writes about addresses, and fresh lists of Services."""
    kept = ("patch ipallocations here", "pool ", "list services")
    return [text for text in house.log if any(part in text for part in kept)]


async def test_a_drain_takes_its_steps_in_order(house: Household) -> None:
    await house.live(60)
    assert steps(house) == [
        "patch ipallocations here",  # the mark
        "apply pool 2 held back",
        "list services",
        "apply pool 1",
        "list services",
        "patch ipallocations here",  # the release
    ]
    assert house.phases()["web-lb-2"] == "Released"
    assert house.tenant.pool is not None
    assert Annotation.DRAINED_BY not in house.tenant.pool["metadata"].get("annotations", {})


async def test_every_step_gives_metallb_its_time(house: Household) -> None:
    began = house.monotonic
    after = await house.look()
    assert after is not None
    assert after.seconds == pytest.approx(house.settings.settle)
    assert house.tenant.addresses == [TWO, GROWN]
    house.pass_(house.settings.settle / 2)
    await house.look()
    assert house.tenant.addresses == [TWO, GROWN], "not yet"
    await house.live(60)
    assert house.monotonic - began >= 2 * house.settings.settle


async def test_a_watch_that_is_late_costs_no_service_an_address(house: Household) -> None:
    """The feed shows no Service on the block; the tenant, asked afresh, does."""
    await house.look()
    house.feeds.feed.late = house.tenant.balancers()
    house.tenant.add_service("c", asks="10.40.0.22")
    house.answer()
    assert house.tenant.address_of("c") == "10.40.0.22"
    await house.live(20)
    assert house.phases()["web-lb-2"] == "Allocated"
    assert house.tenant.addresses == [TWO, GROWN]
    assert house.count("drains_cancelled_total") >= 1


async def test_a_service_that_waits_unseen_breaks_a_drain_off_when_the_tenant_is_asked(house: Household) -> None:
    await house.look()
    house.feeds.feed.late = house.tenant.balancers()
    house.tenant.add_service("c")
    await house.live(20)
    assert house.phases()["web-lb-2"] == "Allocated"
    assert house.tenant.address_of("c") == "10.40.0.22"


async def test_a_service_that_asked_for_an_address_after_it_was_withdrawn_gets_it_back(house: Household) -> None:
    while house.tenant.addresses != [TWO]:
        await house.look()
        house.tenant.serve()
        house.pass_(1)
    house.feeds.feed.late = house.tenant.balancers()
    house.tenant.add_service("c", asks="10.40.0.23")
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Allocated"
    assert house.tenant.address_of("c") == "10.40.0.23"


async def test_any_service_that_waits_breaks_a_drain_off_at_once(house: Household) -> None:
    await house.look()
    assert house.marked() == ["web-lb-2"]
    house.tenant.add_service("c")
    await house.look()
    assert house.marked() == []
    assert house.tenant.hands_out
    house.answer()
    assert house.tenant.address_of("c") == "10.40.0.22"
    assert house.count("drains_cancelled_total") == 1


async def test_a_drain_that_was_broken_off_rests_and_is_tried_again_by_itself(house: Household) -> None:
    await house.look()
    house.tenant.add_service("c", loadBalancerClass=None)
    await house.look()
    house.tenant.remove_service("c")
    await house.live(25)
    assert house.marked() == []
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Released"


async def test_what_was_due_before_a_restart_goes_back_after_it(house: Household) -> None:
    house.restart()
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Released"


async def test_the_idle_time_outlives_a_restart() -> None:
    house = Household()
    house.tenant.add_service("c")
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.live(300)
    since = house.allocation("web-lb-2").status.idle_since
    assert since == house.at(0)
    house.restart()
    await house.live(290)
    assert house.allocation("web-lb-2").status.idle_since == since
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Released"


async def test_a_block_that_is_used_now_and_then_stays() -> None:
    house = Household(initial=0)
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    for _ in range(5):
        await house.live(400)
        house.tenant.add_service("c")
        await house.live(20)
        house.tenant.remove_service("c")
    assert house.phases()["web-lb-2"] == "Allocated"


async def test_a_tenant_that_is_down_for_an_hour_in_the_middle_of_a_drain_loses_nothing(house: Household) -> None:
    await house.look()
    house.feeds.feed.trouble = "connection refused"
    await house.live(3600)
    assert house.phases()["web-lb-2"] == "Allocated"
    house.feeds.feed.trouble = ""
    await house.live(60)
    assert house.phases()["web-lb-2"] == "Released"


async def test_a_metallb_that_hangs_is_not_told_of_less_and_hands_out_again(house: Household) -> None:
    """It does not show that it has read the change: then it may hand out from memory what would be withdrawn."""
    house.tenant.metallb_hangs = True
    for _ in range(100):
        await house.look()
        house.pass_(1)
        assert house.tenant.addresses == [TWO, GROWN]
    assert house.count("drains_cancelled_total") >= 1
    house.tenant.metallb_hangs = False
    await house.live(100)
    assert house.phases()["web-lb-2"] == "Released"


async def withdrawn(house: Household) -> None:
    while house.tenant.addresses != [TWO]:
        await house.look()
        if house.tenant.addresses != [TWO]:
            house.tenant.serve()
            house.pass_(1)


async def test_what_metallb_does_not_show_to_have_given_up_is_not_released(house: Household) -> None:
    await withdrawn(house)
    house.tenant.metallb_hangs = True
    for _ in range(100):
        await house.look()
        house.pass_(1)
    assert house.phases()["web-lb-2"] == "Allocated"
    house.tenant.metallb_hangs = False
    await house.live(100)
    assert house.phases()["web-lb-2"] == "Released"


async def test_nothing_is_released_before_a_withdrawal_has_settled(house: Household) -> None:
    await withdrawn(house)
    house.tenant.serve()
    house.pass_(house.settings.settle - 0.5)
    await house.look()
    assert house.phases()["web-lb-2"] == "Allocated"
    house.pass_(0.6)
    await house.look()
    assert house.phases()["web-lb-2"] == "Released"


async def test_no_drain_begins_while_metallb_does_not_have_all_addresses() -> None:
    house = Household()
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    house.tenant.refuses["create", "ipaddresspools"] = refusal(422, "Invalid", "denied")
    await house.live(120)
    assert house.marked() == []


async def test_a_drain_that_broke_on_the_tenant_leaves_no_trouble_behind_when_it_is_broken_off(
    house: Household,
) -> None:
    house.tenant.refuses["get", "ipaddresspools"] = refusal(500, "InternalError", "etcd is away")
    await house.look()
    assert house.marked() == ["web-lb-2"]
    assert "etcd" in house.controller.problem(house.cluster())
    house.tenant.refuses.clear()
    house.tenant.add_service("c")
    await house.look()
    assert house.controller.problem(house.cluster()) == ""


async def test_a_metallb_that_refuses_its_configuration_keeps_all_addresses(house: Household) -> None:
    condition = {
        "type": "poolReconcilerValid",
        "status": "False",
        "message": "pools overlap",
        "lastTransitionTime": "x",
    }
    state = {"metadata": {"name": "controller", "namespace": NAMESPACE}, "status": {"conditions": [condition]}}
    house.tenant.put("configurationstates", state)
    await house.live(100)
    assert house.phases()["web-lb-2"] == "Allocated"
    assert house.tenant.hands_out
    assert house.reason() == "Refused"
    before = house.management.counts["patch ipallocations"]
    await house.live(100)
    assert house.management.counts["patch ipallocations"] == before, "nothing is begun that could only end at once"
    house.tenant.put("configurationstates", {**state, "status": {"conditions": [{**condition, "status": "True"}]}})
    await house.live(100)
    assert house.phases()["web-lb-2"] == "Released"


async def test_an_older_metallb_that_shows_nothing_gets_its_time_and_no_more() -> None:
    house = Household()
    house.tenant.shows_itself = False
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=590))
    await house.live(5)
    while house.tenant.hands_out:
        house.pass_(1)
        await house.look()
    house.pass_(house.settings.settle / 2)
    await house.look()
    assert len(house.tenant.addresses) == 2, "not yet"
    await house.live(60)
    assert house.phases()["web-lb-2"] == "Released"


async def test_a_withdrawal_that_is_contested_is_tried_again_soon(house: Household) -> None:
    await house.look()
    house.answer()
    house.pass_(2)
    house.tenant.refuses["apply", "ipaddresspools"] = refusal(409, "Conflict", "modified")
    await house.look()
    house.tenant.refuses.clear()
    await house.live(5)
    assert house.phases()["web-lb-2"] == "Released"
    assert house.count("drains_cancelled_total") == 0


async def test_an_edit_of_the_pool_in_the_middle_of_a_drain_is_put_right_first(house: Household) -> None:
    await house.look()
    house.tenant.edit_pool(autoAssign=True)
    house.tenant.serve()
    house.pass_(3)
    await house.look()
    assert not house.tenant.hands_out
    assert house.tenant.addresses == [TWO, GROWN], "and MetalLB gets its time again"
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Released"


async def test_who_is_woken_while_a_second_passes_waits_for_the_rest_of_it(house: Household) -> None:
    """MetalLB's sign counts whole seconds: held back within the one it shows, the change would never show."""
    for _ in range(5):
        await house.controller.reconcile(KEY)
        house.pass_(0.1)
    assert house.tenant.hands_out, "a second has not passed"
    house.pass_(1)
    await house.controller.reconcile(KEY)
    assert not house.tenant.hands_out
