"""Terms that end growth, and terms that change under living tenants: quota, mode, increment, pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.stories import story

if TYPE_CHECKING:
    from elastic.estate import Elastic

CONDITION = "LoadBalancersReady"


@story
def test_a_step_is_cut_by_the_quota_and_who_is_beyond_it_waits_until_it_is_raised(estate: Elastic) -> None:
    place = estate.place(initial=2, increment=3, quota=4)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    web.add("a", "b")
    web.gets("a", "b")
    assert list(web.grown().values()) == [2], "three were the step, two were left"
    web.add("c", "d", "e")
    web.gets("c")
    message = web.says(CONDITION, "False", "QuotaReached")
    assert "4" in message
    assert web.until(lambda: web.events("LoadBalancerQuotaReached"), "it is told")[0]["type"] == "Warning"
    web.until(lambda: web.use().get("waitingServices") == 2, "two are said to wait")
    web.stays(lambda: sum(web.grown().values()) == 2, "nothing is asked for beyond the quota", 2.0)
    place.verdict()
    place.change(quota=6)
    web.gets("a", "b", "c", "d", "e")
    web.says(CONDITION, "True", "InStep")
    assert len(web.addresses("loadbalancer")) == 6
    place.verdict()


@story
def test_a_quota_below_what_is_held_takes_nothing_away(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.add("a", "b")
    before = web.gets("a", "b")
    place.change(quota=1)
    web.add("c")
    web.says(CONDITION, "False", "QuotaReached")
    web.stays(lambda: len(web.addresses("loadbalancer")) == 3, "it holds what its Services have")
    assert web.gets("a", "b") == before
    place.verdict()
    web.remove("a", "b")  # one of the two serves c now
    web.gets("c")
    place.verdict()


@story
def test_a_provider_that_becomes_static_gives_no_more_and_takes_back_what_is_idle(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    for name in "ab":
        web.add(name)
        web.gets(name)
    assert len(web.growths()) == 2
    place.change(mode="static")
    web.add("c")
    web.stays(lambda: len(web.grown()) == 2 and not web.address("c"), "no growth in static mode", 2.0)
    web.remove("c", "b")
    web.until(lambda: len(web.growths()) == 1, "what is idle goes back")
    assert web.address("a")
    place.verdict()
    web.add("d")
    web.stays(lambda: not web.address("d"), "no growth in static mode", 1.0)
    place.change(mode="elastic")
    web.gets("d")
    place.verdict()


@story
def test_a_static_tenant_becomes_elastic(estate: Elastic) -> None:
    place = estate.place(mode="static", initial=2)
    web = place.started()
    web.add("a", "b")
    web.sees(lambda: web.address("a") or web.address("b"), "one is served")
    web.until(lambda: web.use().get("waitingServices") == 1, "one waits")
    web.until(lambda: web.condition(CONDITION).get("status") == "False", "it is told when it lasts")
    assert web.condition(CONDITION)["reason"] != "Growing", web.message(CONDITION)
    assert web.growths() == []
    place.change(mode="elastic")
    web.gets("a", "b")
    web.says(CONDITION, "True", "InStep")
    place.verdict()


@story
def test_another_increment_counts_from_the_next_growth_on(estate: Elastic) -> None:
    place = estate.place(initial=1, increment=1)
    web = place.started()
    web.add("a")
    web.gets("a")
    place.change(increment=3)
    web.stays(lambda: len(web.grown()) == 1, "no Service asked", 1.0)
    web.add("b")
    web.gets("b")
    assert sorted(web.grown().values()) == [1, 3]
    place.verdict()


@story
def test_a_pool_that_leaves_the_provider_keeps_its_tenants_addresses(estate: Elastic) -> None:
    place = estate.place(initial=1, spare=8)
    web = place.started()
    web.add("a")
    before = web.gets("a")
    place.change(pools=[{"name": place.spare_pool}])
    web.add("b")
    assert web.gets("b") == [f"{place.spare_network}.16"]
    web.stays(lambda: web.gets("a") == before, "the old address stays")
    place.verdict()
    web.remove("a", "b")
    web.shrinks_to(1)
    place.verdict()
