"""Processes that slept, and views that are late: what they write is valid only for what they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butler.api.labels import Annotation
from unit.controllers.loadbalancers.household import KEY, Household
from unit.rules.loadbalancer.balancers import asked, lb

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

TWO = "10.40.0.20-10.40.0.21"
GROWN = "10.40.0.22-10.40.0.23"


@pytest.fixture
async def house() -> Household:
    """Two addresses in use, and two that were idle for the grace time."""
    found = Household()
    found.tenant.add_service("a")
    found.tenant.add_service("b")
    found.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    await found.live(30)
    found.pass_(30)
    return found


def sleep_after_listing(house: Household, meanwhile: Callable[[], Awaitable[None]]) -> list[bool]:
    """The next who lists Services falls asleep with the list in hand, while all this happens."""
    slept: list[bool] = []
    listed = house.tenant.list

    async def sleepy(*args: object, **more: object) -> object:
        found = await listed(*args, **more)  # type: ignore[arg-type]
        if not slept:
            slept.append(True)
            await meanwhile()
        return found

    house.tenant.list = sleepy  # type: ignore[method-assign,assignment]
    return slept


async def test_every_process_changes_a_pool_that_it_holds_back(house: Household) -> None:
    await house.look()
    assert house.tenant.pool is not None
    first = dict(house.tenant.pool["metadata"])
    house.restart()
    await house.look()
    second = house.tenant.pool["metadata"]
    assert first["annotations"][Annotation.DRAINED_BY] != second["annotations"][Annotation.DRAINED_BY]
    assert first["resourceVersion"] != second["resourceVersion"], "the controller that slept finds its write refused"


async def test_who_slept_through_a_takeover_takes_nothing_out(house: Household) -> None:
    """Another broke the drain off meanwhile, and MetalLB gave an address of the block away."""
    await house.look()
    house.answer()
    house.pass_(3)
    sleeper = house.controller

    async def meanwhile() -> None:
        house.restart()
        house.tenant.add_service("c")
        await house.live(40)
        assert house.tenant.address_of("c") == "10.40.0.22"

    slept = sleep_after_listing(house, meanwhile)
    await sleeper.reconcile(KEY)
    house.answer()
    house.check()
    assert slept
    assert house.tenant.addresses == [TWO, GROWN]


async def test_who_slept_before_the_release_releases_nothing_that_came_back(house: Household) -> None:
    while house.tenant.addresses != [TWO]:
        await house.look()
        house.tenant.serve()
        house.pass_(1)
    house.pass_(5)
    sleeper = house.controller

    async def meanwhile() -> None:
        house.restart()
        house.tenant.add_service("c")
        await house.live(40)
        assert house.tenant.address_of("c") == "10.40.0.22"

    slept = sleep_after_listing(house, meanwhile)
    await sleeper.reconcile(KEY)
    house.check()
    assert slept
    assert house.phases()["web-lb-2"] == "Allocated"


def sleep_after_reading(house: Household, meanwhile: Callable[[], Awaitable[None]]) -> list[bool]:
    """The next who reads an allocation afresh falls asleep with it in hand, before writing the pool."""
    slept: list[bool] = []
    read = house.management.get

    async def sleepy(*args: object, **more: object) -> object:
        found = await read(*args, **more)  # type: ignore[arg-type]
        if not slept:
            slept.append(True)
            await meanwhile()
        return found

    house.management.get = sleepy  # type: ignore[method-assign]
    return slept


async def test_who_slept_through_a_whole_drain_announces_nothing_that_was_given_back() -> None:
    house = Household()
    await house.live(10)
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    sleeper = house.controller

    async def meanwhile() -> None:
        house.restart()
        await house.live(120)
        assert house.phases()["web-lb-2"] == "Released"

    slept = sleep_after_reading(house, meanwhile)
    await sleeper.reconcile(KEY)
    house.check()
    assert slept
    assert house.tenant.addresses == [TWO]


async def test_a_drain_of_what_is_out_of_the_pool_already_stops_who_would_put_it_back() -> None:
    """A user removed the range by hand: the drain withdraws nothing then, and has to write the pool all the same."""
    house = Household()
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=500))
    await house.live(10)
    sleeper = house.controller
    house.restart()
    await house.live(10)
    house.tenant.edit_pool(addresses=[TWO])
    house.tenant.serve()
    house.doubt(sleeper)

    async def meanwhile() -> None:
        house.pass_(100)
        await house.live(60)
        assert house.phases()["web-lb-2"] == "Released"

    slept = sleep_after_reading(house, meanwhile)
    await sleeper.reconcile(KEY)
    house.check()
    assert slept
    assert house.tenant.addresses == [TWO]


async def test_a_pool_made_by_who_slept_through_its_whole_life_hands_out_nothing_and_goes() -> None:
    house = Household(initial=0)
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    sleeper, made = house.controller, house.tenant.create

    async def meanwhile() -> None:
        house.restart()
        await house.live(120)
        assert house.phases()["web-lb-2"] == "Released"
        assert house.tenant.pool is None

    async def making(*args: object, **more: object) -> object:
        found = await made(*args, **more)  # type: ignore[arg-type]
        assert not house.tenant.hands_out
        return found

    slept = sleep_after_reading(house, meanwhile)
    house.tenant.create = making  # type: ignore[method-assign]
    await sleeper.reconcile(KEY)
    assert slept
    assert house.tenant.pool is None


async def test_a_view_that_is_late_marks_nothing_that_changed(house: Household) -> None:
    house.views.allocations.freeze()  # type: ignore[attr-defined]
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.look()
    assert house.marked() == []


async def test_a_request_that_was_granted_meanwhile_is_not_given_up(house: Household) -> None:
    house.management.put("ipallocations", asked("web-lb-3"))
    house.views.allocations.freeze()  # type: ignore[attr-defined]
    house.management.put("ipallocations", lb("web-lb-3", "10.40.0.24", growth=True))
    await house.look()
    assert house.allocation("web-lb-3").metadata.deletion_timestamp is None
    assert house.phases()["web-lb-3"] == "Allocated"
