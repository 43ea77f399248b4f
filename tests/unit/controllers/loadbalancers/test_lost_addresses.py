"""Addresses that no Service has and that MetalLB does not hand out, because its memory says otherwise."""

from __future__ import annotations

from unit.controllers.loadbalancers.household import Household

STUCK = "10.40.0.21"


async def test_a_service_that_waits_for_an_address_that_metallb_lost_gets_another() -> None:
    house = Household(balancers={"allocationMode": "elastic", "growthIncrement": 1})
    house.tenant.stuck = {STUCK}
    house.tenant.add_service("a")
    await house.live(10)
    house.tenant.add_service("b")
    await house.live(2)
    assert house.tenant.address_of("b") is None, "MetalLB is given its chance"
    await house.live(30)
    assert house.tenant.address_of("b") == "10.40.0.22"
    assert set(house.phases()) == {"web-lb", "web-lb-2"}
    found = next(allocation for allocation in house.allocations() if allocation.metadata.name == "web-lb-2")
    assert "1 that no Service has are in use by MetalLB's count" in str(found.metadata.annotations)


async def test_it_grows_once_for_all_that_metallb_lost() -> None:
    house = Household(balancers={"allocationMode": "elastic", "growthIncrement": 1})
    house.tenant.stuck = {"10.40.0.20", STUCK}
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    await house.live(60)
    assert {house.tenant.address_of("a"), house.tenant.address_of("b")} == {"10.40.0.22", "10.40.0.23"}
    assert set(house.phases()) == {"web-lb", "web-lb-2"}
    house.log.clear()
    await house.live(3600)
    assert not [text for text in house.log if text.startswith(("patch", "apply", "create"))], "it rests"


async def test_a_metallb_that_hangs_makes_nothing_grow() -> None:
    house = Household()
    house.tenant.add_service("a")
    await house.live(10)
    house.tenant.metallb_hangs = True
    house.tenant.add_service("b")
    await house.live(600)
    assert set(house.phases()) == {"web-lb"}


async def test_a_metallb_that_hangs_with_an_old_count_makes_it_grow_by_one_step_at_most() -> None:
    house = Household(balancers={"allocationMode": "elastic", "growthIncrement": 1})
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    await house.live(10)
    house.tenant.metallb_hangs = True
    house.tenant.remove_service("a")  # MetalLB still counts it
    house.tenant.add_service("c")
    await house.live(600)
    assert set(house.phases()) <= {"web-lb", "web-lb-2"}
