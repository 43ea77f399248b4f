"""Which tenants are looked after, and which are left alone."""

from __future__ import annotations

import pytest

from butler.api.labels import Label
from unit.controllers.loadbalancers.household import Household
from unit.controllers.tenantcluster.site import NAMESPACE
from unit.controllers.tenantcluster.values import HOME, NOW, UID, cluster, provider
from unit.rules.loadbalancer.balancers import lb

OTHER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
async def house() -> Household:
    found = Household()
    await found.live(10)
    found.log.clear()
    return found


async def test_a_paused_cluster_is_left_as_it_is(house: Household) -> None:
    house.wish(paused=True)
    house.tenant.edit_pool(autoAssign=False)
    for name in "abc":
        house.tenant.add_service(name)
    await house.look()
    assert not [text for text in house.log if text != "patch tenantclusters here"], "but its status says who waits"
    house.wish()
    await house.live(60)
    assert house.tenant.address_of("c") is not None


async def test_a_cluster_that_is_being_deleted_is_not_grown_and_not_followed(house: Household) -> None:
    assert house.feeds.followed == {UID}
    body = house.management.find("tenantclusters", "team-a", "web")
    assert body is not None
    body["metadata"]["deletionTimestamp"] = NOW.isoformat()
    for name in "abc":
        house.tenant.add_service(name)
    assert await house.look() is None
    assert house.log == []
    assert house.feeds.followed == set()


async def test_a_cluster_that_is_gone_is_forgotten(house: Household) -> None:
    house.management.drop("tenantclusters", "team-a", "web")
    assert await house.look() is None
    assert house.feeds.followed == set()
    house.controller.show()
    assert house.registry.get_sample_value("butler_tenants_watched") == 0


async def test_a_cluster_made_anew_under_the_same_name_owns_nothing_of_the_old_one(house: Household) -> None:
    house.management.drop("tenantclusters", "team-a", "web")
    house.wish(uid=OTHER)
    house.management.put("secrets", {"metadata": {"name": "web-admin-kubeconfig", "namespace": f"web-{OTHER[:8]}"}})
    await house.look()
    assert house.feeds.followed == {OTHER}
    assert house.tenant.addresses == [], "what the old one held is not the new one's to announce"
    house.tenant.add_service("a")
    await house.look()
    grown = house.allocation("web-lb-2")
    assert grown.metadata.labels[Label.TENANT_UID] == OTHER


async def test_a_cluster_without_a_kubeconfig_waits_for_one() -> None:
    house = Household()
    house.management.drop("secrets", NAMESPACE, "web-admin-kubeconfig")
    house.management.put("tenantclusters", cluster())
    assert await house.look() is None
    assert house.feeds.followed == set()


async def test_a_cluster_whose_kubeconfig_is_gone_cannot_be_reached(house: Household) -> None:
    house.management.drop("secrets", NAMESPACE, "web-admin-kubeconfig")
    await house.live(30)
    assert house.reason() == "TenantUnreachable"


async def test_a_cluster_whose_provider_is_missing_keeps_what_it_has_and_gets_no_more(house: Household) -> None:
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.management.objects["providerconfigs"].clear()
    await house.live(1300)
    assert house.phases() == {"web-lb": "Allocated", "web-lb-2": "Allocated"}
    for name in "abcde":
        house.tenant.add_service(name)
    await house.live(60)
    assert house.reason() == "ServicesWaiting"
    assert len(house.phases()) == 2


async def test_a_provider_without_pools_has_no_addresses_to_look_after(house: Household) -> None:
    house.management.drop("ipallocations", HOME, "web-lb")
    house.management.put("providerconfigs", provider(mode="cloud", balancers=None))
    assert await house.look() is None
    assert house.feeds.followed == set()
    assert house.reason() == "", "nothing is said of what it does not have"
    assert house.cluster().status.load_balancers is None


async def test_a_tenant_whose_services_were_not_listed_yet_is_not_judged(house: Household) -> None:
    """An empty list and no list at all are two things."""
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True, idle=9999))
    house.restart()
    house.feeds.feed.is_synced = False
    await house.live(600)
    assert house.marked() == []
    assert not [text for text in house.log if "pool " in text or "ipallocations" in text]


async def test_a_process_that_leads_no_more_hangs_up(house: Household) -> None:
    await house.controller.stand_down()
    assert house.feeds.followed == set()
    assert "has not been told" in house.controller.problem(house.cluster())


async def test_the_metrics_show_where_all_tenants_stand(house: Household) -> None:
    house.tenant.add_service("a")
    house.tenant.add_service("b", loadBalancerClass="other")
    house.answer()
    await house.look()
    house.feeds.feed.trouble = "connection refused"
    house.controller.show()
    read = house.registry.get_sample_value
    assert read("butler_load_balancer_addresses", {"state": "in_use"}) == 1
    assert read("butler_load_balancer_addresses", {"state": "idle"}) == 1
    assert read("butler_load_balancer_services_waiting") == 0
    assert (read("butler_tenants_watched"), read("butler_tenants_unreachable")) == (1, 1)


async def test_changing_the_increment_or_the_size_on_a_live_provider_takes_effect(house: Household) -> None:
    house.management.put("providerconfigs", provider(balancers={"allocationMode": "elastic", "growthIncrement": 5}))
    for name in "abc":
        house.tenant.add_service(name)
    await house.live(30)
    assert house.allocation("web-lb-2").spec.count == 5


async def test_a_block_above_the_size_that_the_cluster_names_goes_and_one_below_it_stays(house: Household) -> None:
    house.wish(networking={"lbPoolSize": 4})
    house.management.put("ipallocations", lb("web-lb-2", "10.40.0.22", growth=True))
    house.management.put("ipallocations", lb("web-lb-3", "10.40.0.24", growth=True))
    await house.live(1300)
    assert sorted(house.phases().values()) == ["Allocated", "Allocated", "Released"]
