"""A Service that comes while addresses are being taken back gets those, and no others beside them."""

from __future__ import annotations

from unit.controllers.loadbalancers.household import Household
from unit.rules.loadbalancer.balancers import lb


async def test_a_service_that_comes_in_the_middle_of_a_look_ends_the_drain_and_grows_nothing() -> None:
    house = Household()
    house.tenant.add_service("a")
    house.tenant.add_service("b")
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=560))
    await house.live(30)
    house.pass_(30)
    while len(house.tenant.addresses) > 1:
        await house.look()
        house.answer()
        house.pass_(house.settings.settle)

    def comes(_verb: str, plural: str) -> None:
        if plural == "ipaddresspools" and len(house.tenant.balancers()) == 2:
            house.tenant.add_service("c")

    house.tenant.before = comes
    house.pass_(-house.settings.settle / 2)  # the withdrawal settles yet
    await house.live(30)
    assert house.tenant.address_of("c") == "10.40.0.22"
    assert set(house.phases()) == {"web-lb", "web-lb-2"}
