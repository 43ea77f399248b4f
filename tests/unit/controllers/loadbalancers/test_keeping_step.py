"""MetalLB kept in step: what other clients changed there, and what it says against what it is told."""

from __future__ import annotations

import pytest

from butler.tenant.metallb import NAMESPACE
from unit.controllers.loadbalancers.household import KEY, Household
from unit.controllers.tenantcluster.management import refusal
from unit.rules.loadbalancer.balancers import lb

TWO = "10.40.0.20-10.40.0.21"
GROWN = "10.40.0.22-10.40.0.23"


@pytest.fixture
async def house() -> Household:
    found = Household()
    await found.live(10)
    assert found.events.found == []
    found.log.clear()
    return found


async def test_a_tenant_at_rest_is_not_written_to(house: Household) -> None:
    looks = await house.live(3600)
    assert not [text for text in house.log if text.startswith(("apply", "create", "patch", "delete"))]
    assert looks < 60


@pytest.mark.parametrize(
    "edit",
    [
        {"addresses": [TWO, "192.0.2.1-192.0.2.9"]},
        {"addresses": ["192.0.2.1-192.0.2.9"]},
        {"autoAssign": False},
        {"avoidBuggyIPs": True},
    ],
)
async def test_an_edit_by_hand_is_put_right_and_told_once(house: Household, edit: dict[str, object]) -> None:
    house.tenant.edit_pool(**edit)
    house.doubt()
    await house.look()
    assert house.tenant.pool is not None
    assert house.tenant.pool["spec"] == {"addresses": [TWO], "autoAssign": True, "avoidBuggyIPs": False}
    await house.live(600)
    assert house.events.reasons() == ["MetalLBDriftCorrected"]
    assert next(iter(edit)) in house.events.found[0][1]
    assert house.count("drift_corrections_total") == 1


async def test_who_asks_for_a_look_gets_one_at_once_and_only_one(house: Household) -> None:
    house.tenant.edit_pool(addresses=[TWO, "192.0.2.1-192.0.2.9"])
    await house.look()
    assert len(house.tenant.addresses) == 2, "nothing speaks of it yet"
    house.wish(annotations={"butler.butlerlabs.dev/look-again": "2026-02-15T10:00:00Z"})
    await house.look()
    assert house.tenant.addresses == [TWO]
    house.log.clear()
    await house.look()
    assert not [text for text in house.log if "ipaddresspools" in text]


async def test_a_pool_that_was_deleted_comes_back_and_that_is_told(house: Household) -> None:
    house.tenant.drop("ipaddresspools", NAMESPACE, "default-pool")
    house.doubt()
    await house.look()
    assert house.tenant.addresses == [TWO]
    assert house.events.found == [("MetalLBDriftCorrected", "IPAddressPool default-pool was deleted")]


async def test_an_advertisement_that_was_deleted_comes_back_though_it_is_not_watched(house: Household) -> None:
    house.tenant.drop("l2advertisements", NAMESPACE, "default")
    await house.live(2 * house.settings.check_every)
    assert house.tenant.find("l2advertisements", NAMESPACE, "default") is not None
    assert house.events.found == [("MetalLBDriftCorrected", "L2Advertisement default was deleted")]


async def test_growth_that_comes_with_a_correction_is_told_as_well(house: Household) -> None:
    house.tenant.edit_pool(addresses=[TWO, "192.0.2.1-192.0.2.9"])
    house.doubt()
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.look()
    assert house.events.reasons() == ["MetalLBDriftCorrected", "LoadBalancerGrowth"]


async def test_a_grown_range_that_a_user_took_out_is_a_correction_and_no_growth(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.look()
    house.events.found.clear()
    house.tenant.edit_pool(addresses=[TWO])
    house.doubt()
    await house.look()
    assert house.tenant.addresses == [TWO, GROWN]
    assert house.events.reasons() == ["MetalLBDriftCorrected"]
    house.tenant.edit_pool(addresses=[TWO])
    house.doubt()
    house.restart()
    await house.look()
    assert house.events.reasons() == ["MetalLBDriftCorrected"], "not by a new process either"


async def test_a_restart_corrects_nothing_and_tells_nothing_where_all_is_well(house: Household) -> None:
    house.restart()
    await house.live(600)
    assert house.events.found == []
    assert not [text for text in house.log if "pool " in text]


async def test_what_metallb_refuses_is_told_once_and_tried_again(house: Household) -> None:
    denied = refusal(422, "Invalid", "admission webhook denied the request: CIDR overlaps with pool other")
    house.tenant.refuses["apply", "ipaddresspools"] = denied
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.live(300)
    assert house.reason() == "Refused"
    assert house.events.reasons() == ["MetalLBRefused"]
    assert "overlaps" in house.controller.problem(house.cluster())
    house.tenant.refuses.clear()
    await house.live(60)
    assert house.tenant.addresses == [TWO, GROWN]
    assert house.reason() == "InStep"


async def test_addresses_that_metallb_refuses_make_no_tenant_ask_for_more(house: Household) -> None:
    house.tenant.refuses["apply", "ipaddresspools"] = refusal(422, "Invalid", "no")
    for name in "abcdefgh":
        house.tenant.add_service(name)
    await house.live(600)
    assert house.management.counts["create ipallocations"] <= 1


async def test_a_pool_that_others_write_at_the_same_time_is_tried_at_once(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    times = 0

    def meanwhile(verb: str, plural: str) -> None:
        nonlocal times
        if (verb, plural) == ("apply", "ipaddresspools") and times < 3:
            times += 1
            assert house.tenant.pool is not None
            house.tenant.put("ipaddresspools", house.tenant.pool)

    house.tenant.before = meanwhile
    await house.look()
    assert times == 3
    assert house.tenant.addresses == [TWO, GROWN]


async def test_trouble_of_the_management_cluster_is_not_told_as_the_tenants(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.management.refuses["get", "ipallocations"] = refusal(500, "InternalError", "etcd is away")
    await house.live(30)
    assert house.reason() == "AllocationsNotWritten"
    assert house.tenant.addresses == [TWO]
    house.management.refuses.clear()
    await house.live(60)
    assert house.reason() == "InStep"
    assert len(house.tenant.addresses) == 2


async def test_trouble_on_the_tenant_is_over_when_it_is_over(house: Household) -> None:
    house.tenant.edit_pool(autoAssign=False)
    house.doubt()
    house.tenant.refuses["get", "ipaddresspools"] = refusal(500, "InternalError", "etcd is away")
    await house.live(60)
    assert "etcd is away" in house.controller.problem(house.cluster())
    assert house.reason() == "TenantUnreachable"
    house.tenant.refuses.clear()
    await house.live(60)
    assert house.controller.problem(house.cluster()) == ""
    assert house.reason() == "InStep"


async def test_the_cluster_controller_is_told_when_metallb_has_its_addresses() -> None:
    house = Household()
    assert "has not been told" in house.controller.problem(house.cluster())
    await house.look()
    assert house.controller.problem(house.cluster()) == ""
    assert house.told == [KEY]
    await house.look()
    assert house.told == [KEY]


async def look_on(house: Household) -> None:
    """Some seconds in which a user's edit may have taken addresses from Services."""
    for _ in range(5):
        await house.look()
        house.tenant.serve()
        house.pass_(1)


async def test_a_service_that_loses_its_address_makes_butler_look_at_the_pool() -> None:
    house = Household()
    house.tenant.add_service("a")
    await house.live(10)
    assert house.tenant.address_of("a") is not None
    house.tenant.drop("ipaddresspools", NAMESPACE, "default-pool")
    house.tenant.serve()
    await look_on(house)
    assert house.tenant.addresses == [TWO]
    assert house.tenant.address_of("a") is not None


async def test_a_service_with_an_address_that_is_not_the_tenants_makes_butler_look_at_the_pool() -> None:
    house = Household()
    await house.live(10)
    house.tenant.edit_pool(addresses=["192.0.2.1-192.0.2.9"])
    house.tenant.add_service("a")
    house.tenant.serve()
    await look_on(house)
    assert house.tenant.addresses == [TWO]


async def test_a_service_that_waits_in_vain_makes_butler_look_at_the_pool() -> None:
    house = Household()
    await house.live(10)
    house.tenant.edit_pool(autoAssign=False)
    house.tenant.add_service("a")
    await house.live(10)
    assert house.tenant.address_of("a") is not None


async def test_what_shows_in_no_service_is_found_by_looking_now_and_then(house: Household) -> None:
    house.tenant.edit_pool(addresses=[TWO, "192.0.2.1-192.0.2.9"])
    await house.look()
    assert house.tenant.addresses != [TWO]
    house.pass_(2 * house.settings.check_every)
    await house.look()
    assert house.tenant.addresses == [TWO]
