"""A grow and a drain, with each of their requests broken in turn: the next look goes on, and nothing is lost."""

from __future__ import annotations

import itertools

import pytest

from unit.controllers.loadbalancers.breaking import FAULTS, Breaking
from unit.controllers.loadbalancers.household import Household
from unit.rules.loadbalancer.balancers import lb

GROWN = "10.40.0.22"


async def full() -> Household:
    """Two addresses, both in use, all published."""
    house = Household()
    for name in ("a", "b"):
        house.tenant.add_service(name)
    await house.live(10)
    return house


async def idle() -> Household:
    """A grown block that was not used for the grace time."""
    house = await full()
    house.management.put("ipallocations", lb("web-lb-2", GROWN, growth=True, idle=560))
    await house.live(8)
    assert house.marked() == []
    return house


def released(house: Household) -> bool:
    return house.phases().get("web-lb-2") == "Released"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_grow_goes_on_whichever_of_its_requests(fault: str) -> None:
    for number in itertools.count():
        house = await full()
        house.tenant.add_service("c")
        broken = Breaking(house, number, fault=fault)
        await house.live(240)
        story = f"request {number} ({broken.struck}) {fault}"
        assert house.tenant.address_of("c") == GROWN, story
        assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Allocated"}, story
        assert house.reason() == "InStep", story
        if not broken.struck:
            break
    assert number > 2


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_drain_goes_on_whichever_of_its_requests(fault: str) -> None:
    for number in itertools.count():
        house = await idle()
        broken = Breaking(house, number, fault=fault)
        await house.live(240)
        story = f"request {number} ({broken.struck}) {fault}"
        assert released(house), story
        assert house.tenant.addresses == ["10.40.0.20-10.40.0.21"], story
        assert house.tenant.hands_out, story
        assert house.reason() == "InStep", story
        if not broken.struck:
            break
    assert number > 4


@pytest.mark.parametrize("asks", ["", GROWN])
async def test_a_service_that_comes_at_any_point_of_a_drain_gets_an_address_and_keeps_it(asks: str) -> None:
    outcomes = set()
    for number in itertools.count():
        house = await idle()

        def arrive(house: Household = house) -> None:
            house.tenant.add_service("c", asks=asks)
            house.tenant.serve()

        broken = Breaking(house, number, do=arrive)
        await house.live(240)
        await house.live(60)  # should it have come with the very last request, a watch tells of it
        if not broken.struck:
            break
        story = f"after request {number} ({broken.struck})"
        if not asks:
            assert house.tenant.address_of("c") is not None, story
        elif house.tenant.address_of("c") is None:
            assert released(house), story
        outcomes.add(released(house))
        assert house.tenant.hands_out, story
        assert house.marked() == [], story
    assert outcomes == {True, False}
    assert number > 4
