"""A Service that comes at the worst moment of a shrink: after the last look at all Services, before the range goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from elastic.faults.drill import Moments, writes_allocation, writes_pool

if TYPE_CHECKING:
    from elastic.faults.drill import Drill


@pytest.mark.parametrize("step", [1, 2], ids=["before it is held back", "before it is withdrawn"])
def test_a_service_that_comes_between_the_look_and_the_write_is_served_and_never_moved(drill: Drill, step: int) -> None:
    web = drill.tenant()
    with drill.replica() as butler:
        drill.grow(web, "a")

        def come() -> None:
            web.add("b")
            web.sees(lambda: web.service("b"), "it is there")

        moments = Moments(writes_pool, number=step, then=come)
        butler.lines.tenants[web.name].on_write = moments
        web.remove("a")
        moments.comes()
        web.gets("b")
        drill.verdict(web)


def test_a_service_that_comes_between_the_last_look_and_the_release_is_served(drill: Drill) -> None:
    web = drill.tenant()
    with drill.replica() as butler:
        drill.grow(web, "a")
        (growth,) = web.growths()
        # Idle, marked, released: the third write of the allocation gives it up.
        moments = Moments(writes_allocation(growth["metadata"]["name"]), number=3, then=lambda: web.add("b"))
        butler.lines.management.on_write = moments
        web.remove("a")
        moments.comes()
        web.gets("b")
        drill.verdict(web)


def test_an_address_that_is_asked_for_by_name_while_its_range_is_withdrawn_stays_the_tenants(drill: Drill) -> None:
    """MetalLB grants it though the pool hands out nothing by itself, and the withdrawal is already on its way.

    No write can be conditional on objects of two kinds, so this one window remains: the Service loses its address for
    a moment. It must get the same one back, and no other Service may have it meanwhile.
    """
    web = drill.tenant()
    with drill.replica() as butler:
        (address,) = drill.grow(web, "a")

        def come() -> None:
            web.add("b", loadBalancerIP=address)
            web.gets("b")

        moments = Moments(writes_pool, number=2, then=come)
        butler.lines.tenants[web.name].on_write = moments
        web.remove("a")
        moments.comes()
        moments.passed.wait(10)
        web.sees(lambda: address in "".join(web.published()) and web.address("b") == address, "it has it again")
        drill.verdict(web, but="moved")
