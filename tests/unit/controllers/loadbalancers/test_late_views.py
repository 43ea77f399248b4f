"""What an exhaustive search of the protocol found: a late view, a mark that is another, and an answer that was lost."""

from __future__ import annotations

from typing import Any

import pytest

from butler.kube.errors import OutcomeUnknown
from unit.controllers.loadbalancers.household import KEY, Household
from unit.rules.loadbalancer.balancers import lb

TWO = "10.40.0.20-10.40.0.21"
GROWN = "10.40.0.22-10.40.0.23"


async def test_a_view_that_does_not_know_a_range_yet_does_not_take_it_out_of_the_pool() -> None:
    house = Household()
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    await house.live(5)
    late = house.controller
    known = house.views.allocations_for
    before = list(known(house.views.clusters.get(KEY)))  # type: ignore[arg-type]
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    await house.live(5)
    house.tenant.add_service("c")
    await house.live(5)
    assert house.tenant.address_of("c") == "10.40.0.22"
    type(house.views).allocations_for, whole = (lambda *_: before), type(house.views).allocations_for  # type: ignore[method-assign,assignment]
    try:
        await late.reconcile(KEY)
    finally:
        type(house.views).allocations_for = whole  # type: ignore[method-assign]
    house.tenant.serve()
    house.check()
    assert house.tenant.addresses == [TWO, GROWN]


async def test_what_has_no_owner_goes_all_the_same() -> None:
    house = Household()
    await house.live(5)
    house.tenant.edit_pool(addresses=[TWO, "10.99.0.1-10.99.0.9"])
    house.doubt()
    await house.live(5)
    assert house.tenant.addresses == [TWO]


@pytest.fixture
async def held_back() -> Household:
    """A drain that has begun."""
    house = Household()
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    await house.live(30)
    house.pass_(30)
    await house.look()
    assert house.tenant.pool is not None
    assert house.tenant.pool["spec"]["autoAssign"] is False
    return house


async def test_a_hold_whose_answer_is_lost_is_waited_for_anew(held_back: Household) -> None:
    """A user turned the pool on again; the second hold arrives, and its answer does not."""
    house = held_back
    house.answer()
    house.pass_(3)
    house.tenant.edit_pool(autoAssign=True)
    apply = house.tenant.apply

    async def loses_its_answer(*args: Any, **more: Any) -> Any:
        await apply(*args, **more)
        house.tenant.apply = apply  # type: ignore[method-assign]
        raise OutcomeUnknown("the answer did not come")

    house.tenant.apply = loses_its_answer  # type: ignore[method-assign,assignment]
    await house.look()
    assert house.tenant.pool is not None
    assert house.tenant.pool["spec"]["autoAssign"] is False, "it arrived"
    await house.look()
    assert house.tenant.addresses == [TWO, GROWN], "MetalLB has had no time to take it in"


async def test_a_new_mark_is_waited_for_anew(held_back: Household) -> None:
    """The time since a withdrawal counts for the mark that it was made under, not for the next one."""
    house = held_back
    while house.tenant.addresses != [TWO]:
        house.answer()
        house.pass_(1)
        await house.look()
    drain = next(iter(house.controller._states.values())).drain
    (under,) = drain.withdrawn
    allocation = next(item for item in house.views.allocations.values() if item.metadata.name == "web-lb-2")
    await house.draining._ledger.mark(allocation, idle_since=None)
    house.pass_(10)
    await house.look()
    assert house.phases()["web-lb-2"] == "Allocated", "not by what was known of the old one"
    assert under not in drain.withdrawn
