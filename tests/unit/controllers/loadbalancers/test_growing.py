"""From a Service that waits to its address, one look after the other."""

from __future__ import annotations

import pytest

from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import NAMESPACE
from unit.controllers.loadbalancers.household import Household
from unit.controllers.tenantcluster.management import refusal
from unit.controllers.tenantcluster.values import provider
from unit.rules.loadbalancer.balancers import lb

TWO = "10.40.0.20-10.40.0.21"
GROWN = "10.40.0.22-10.40.0.23"


@pytest.fixture
async def house() -> Household:
    """Two addresses, both in use, all published."""
    found = Household()
    found.tenant.add_service("a")
    found.tenant.add_service("b")
    await found.live(10)
    found.log.clear()
    return found


async def test_the_walk_of_the_seeds(house: Household) -> None:
    """Two addresses, two Services on them; a third makes it grow; when that goes, so do the addresses."""
    assert house.tenant.addresses == [TWO]
    assert (house.tenant.address_of("a"), house.tenant.address_of("b")) == ("10.40.0.20", "10.40.0.21")
    house.tenant.add_service("third")
    await house.live(10)
    assert house.tenant.address_of("third") == "10.40.0.22"
    assert house.tenant.addresses == [TWO, GROWN]
    house.tenant.remove_service("third")
    await house.live(590)
    assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Allocated"}
    await house.live(60)
    assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Released"}
    assert house.tenant.addresses == [TWO]
    assert house.tenant.hands_out
    assert house.events.reasons() == ["LoadBalancerGrowth", "LoadBalancerShrink"]
    found = house.cluster().status.load_balancers
    assert found is not None
    assert found.last_growth is not None
    assert found.last_shrink is not None
    assert (found.last_growth.addresses, found.last_shrink.addresses) == (2, 2)
    assert "shop/third" in found.last_growth.reason


async def test_a_range_is_read_afresh_between_reading_the_pool_and_writing_it(house: Household) -> None:
    house.tenant.add_service("c")
    await house.look()
    assert "create ipallocations here" in house.log
    assert not [text for text in house.log if "pool" in text and "here" not in text], "nothing to tell MetalLB yet"
    house.answer()
    house.log.clear()
    await house.look()
    wrote = house.log.index("apply pool 2")
    assert "get ipallocations here" in house.log[:wrote]
    assert "get ipallocations here" not in house.log[wrote:]


async def test_nothing_is_asked_for_twice_however_often_it_is_looked(house: Household) -> None:
    house.tenant.add_service("c")
    for _ in range(5):
        await house.look()
    assert house.management.counts["create ipallocations"] == 1


async def test_a_process_whose_view_is_behind_asks_for_the_same_and_gets_nothing_more(house: Household) -> None:
    house.tenant.add_service("c")
    house.views.allocations.freeze()  # type: ignore[attr-defined]
    await house.look()
    await house.look()
    assert list(house.phases()) == ["web-lb", "web-lb-2"]


async def test_a_range_that_went_back_meanwhile_is_not_announced(house: Household) -> None:
    """The view says Allocated, the management cluster says otherwise."""
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.views.allocations.freeze()  # type: ignore[attr-defined]
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, draining=1))
    await house.look()
    assert house.tenant.addresses == [TWO]
    house.management.drop("ipallocations", "butler-system", "web-lb-2")
    await house.look()
    assert house.tenant.addresses == [TWO]


async def test_a_tenant_without_metallb_does_not_grow_from_the_first_look_on() -> None:
    house = Household()
    house.tenant.uninstall()
    for name in ("a", "b", "c"):
        house.tenant.add_service(name)
    await house.live(600)
    assert list(house.phases()) == ["web-lb"]
    assert house.reason() == "NotInstalled"
    house.tenant.install()
    await house.live(60)
    assert house.tenant.address_of("c") == "10.40.0.22"


async def test_a_tenant_without_metallb_is_tried_for_weeks(house: Household) -> None:
    house.tenant.uninstall()
    house.pass_(700)
    for _ in range(1200):
        after = await house.look()
        assert after is not None
        assert 0 < after.seconds <= 30
        house.pass_(after.seconds)


async def test_a_tenant_that_cannot_be_reached_neither_grows_nor_shrinks(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=100))
    house.tenant.add_service("c")
    house.feeds.feed.trouble = "connection refused"
    await house.live(3600)
    assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Allocated"}
    assert house.reason() == "TenantUnreachable"
    assert not [text for text in house.log if "ipallocations" in text]


async def test_an_allocation_that_cannot_be_asked_for_keeps_no_service_from_what_is_there(house: Household) -> None:
    house.management.refuses["create", "ipallocations"] = refusal(403, "Forbidden", "exceeded quota: objects")
    house.tenant.add_service("c")
    house.tenant.add_service("d")
    house.tenant.edit_pool(addresses=["192.0.2.1-192.0.2.9"])
    house.doubt()
    house.tenant.metallb_hangs = True
    await house.look()
    assert house.tenant.addresses == [TWO]
    assert house.reason() == "AllocationsNotWritten"


async def test_a_pool_that_is_full_is_told_once_and_served_when_there_is_room(house: Household) -> None:
    house.room = 2
    house.answer()
    house.tenant.add_service("c")
    house.tenant.add_service("d")
    await house.live(300)
    assert house.reason() == "PoolExhausted"
    assert house.events.reasons() == ["LoadBalancerPoolExhausted"]
    assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Failed"}
    assert house.allocation("web-lb-2").spec.count == 2, "what is needed, and no more"
    house.room = 3
    house.answer()
    await house.live(60)
    assert house.tenant.address_of("c") == "10.40.0.22", "in pieces"
    house.room = 9
    house.answer()
    await house.live(60)
    assert house.tenant.address_of("d") is not None
    assert house.reason() == "InStep"


async def test_a_quota_that_is_reached_is_told_once_and_served_when_it_is_raised(house: Household) -> None:
    balancers = {"allocationMode": "elastic", "growthIncrement": 4}
    house.management.put("providerconfigs", provider(balancers=balancers, quota={"maxLoadBalancerIPs": 3}))
    for name in "cde":
        house.tenant.add_service(name)
    await house.live(300)
    assert house.reason() == "QuotaReached"
    assert house.events.reasons().count("LoadBalancerQuotaReached") == 1
    assert [house.tenant.address_of(name) is not None for name in "cde"] == [True, False, False]
    house.management.put("providerconfigs", provider(balancers=balancers, quota={"maxLoadBalancerIPs": 9}))
    await house.live(60)
    assert house.tenant.address_of("e") is not None


async def test_a_tenant_that_begins_with_nothing_has_no_pool_and_grows_into_one() -> None:
    house = Household(initial=0)
    await house.live(60)
    assert house.tenant.pool is None
    assert house.reason() == "InStep"
    house.tenant.add_service("a")
    await house.live(60)
    assert house.tenant.address_of("a") == "10.40.0.20"
    assert house.events.reasons() == ["LoadBalancerGrowth"], "a pool that was never there did not vanish"
    house.tenant.remove_service("a")
    await house.live(700)
    assert house.tenant.pool is None, "the last range is withdrawn as well"
    assert house.tenant.find("l2advertisements", NAMESPACE, "default") is not None
    assert house.phases() == {"web-lb-2": "Released"}


async def test_a_request_that_is_not_needed_any_more_is_given_up(house: Household) -> None:
    house.room = 2
    house.answer()
    house.tenant.add_service("c")
    await house.live(30)
    assert house.phases()["web-lb-2"] == "Failed"
    house.tenant.remove_service("c")
    await house.live(30)
    assert house.allocation("web-lb-2").metadata.deletion_timestamp is not None
    assert house.reason() == "InStep"


async def test_a_static_tenant_is_published_and_does_not_grow() -> None:
    house = Household(balancers={"allocationMode": "static"})
    for name in "abc":
        house.tenant.add_service(name)
    await house.live(300)
    assert house.tenant.addresses == [TWO]
    assert list(house.phases()) == ["web-lb"]
    assert house.reason() == "ServicesWaiting"
    house.tenant.edit_pool(addresses=[TWO, "192.0.2.1-192.0.2.9"])
    house.doubt()
    await house.look()
    assert house.tenant.addresses == [TWO]
    assert house.events.reasons() == ["MetalLBDriftCorrected"]


async def test_growth_left_over_from_elastic_days_goes_back_when_it_is_idle(house: Household) -> None:
    house.tenant.add_service("c")
    await house.live(10)
    house.management.put("providerconfigs", provider(balancers={"allocationMode": "static"}))
    await house.live(1200)
    assert house.phases()["web-lb-2"] == "Allocated", "it is in use"
    house.tenant.remove_service("c")
    await house.live(700)
    assert house.phases()["web-lb-2"] == "Released"
    assert house.tenant.find("ipaddresspools", NAMESPACE, POOL) is not None
