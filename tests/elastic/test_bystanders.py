"""Services that want no address of ours, and Services that keep one without showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.estate import GRACE
from elastic.stories import early_story, story

if TYPE_CHECKING:
    from elastic.estate import Elastic

WITHOUT_INGRESS = {"ingress": {"enabled": False}}
HELD = ["example.com/held"]


@early_story
def test_services_that_growth_cannot_help_cause_none(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    with estate.butler.frozen():
        web.add("outside", loadBalancerIP="192.0.2.7")
        web.add("outside-by-note", annotations={"metallb.io/loadBalancerIPs": "192.0.2.8"})
        web.add("outside-by-old-note", annotations={"metallb.universe.tf/loadBalancerIPs": "192.0.2.9"})
        web.add("other-class", loadBalancerClass="example.com/other")
        web.add("other-pool", annotations={"metallb.io/address-pool": "special"})
        # Without a class, MetalLB would take the host name away and give an address.
        web.add("by-name", loadBalancerClass="example.com/cloud")
        named = {"status": {"loadBalancer": {"ingress": [{"hostname": "here.example.com"}]}}}
        web.merge(web.service_path("by-name") + "/status", named)
        web.add("going", finalizers=HELD)
        web.remove("going")
    web.stays(lambda: web.grown() == {}, "no Service there that an address would help", 4 * GRACE)
    assert web.published() == [place.range(16)]
    web.says("LoadBalancersReady", "True", "InStep")
    assert web.use()["waitingServices"] == 0
    place.verdict()
    web.merge(web.service_path("going"), {"metadata": {"finalizers": None}})  # MetalLB would serve it after all
    web.sees(lambda: not web.service("going"), "it is gone")
    web.add("plain")
    assert web.gets("plain") == [place.address(17)]
    assert list(web.grown().values()) == [1]
    web.remove("plain")
    web.shrinks_to(1)
    web.stays(lambda: len(web.grown()) == 1, "and no circle begins", 2 * GRACE)
    place.verdict()


@early_story
def test_services_for_ipv6_are_no_demand_and_move_no_service(estate: Elastic) -> None:
    """Butler's addresses are IPv4: they cannot serve IPv6 alone, nor a Service that requires both families."""
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.add("a")
    before = web.gets("a")
    both = ["IPv4", "IPv6"]
    with estate.butler.frozen():
        web.add("six", ipFamilies=["IPv6"], ipFamilyPolicy="SingleStack")
        web.add("required", ipFamilies=both, ipFamilyPolicy="RequireDualStack")
        web.add("required-six-first", ipFamilies=both[::-1], ipFamilyPolicy="RequireDualStack")
    web.stays(lambda: web.grown() == {}, "no Service there that an address would help", 2 * GRACE)
    web.says("LoadBalancersReady", "True", "InStep")
    assert web.use()["waitingServices"] == 0
    place.verdict()
    web.add("preferred", ipFamilies=both, ipFamilyPolicy="PreferDualStack")
    web.add("preferred-six-first", ipFamilies=both[::-1], ipFamilyPolicy="PreferDualStack")
    served = web.gets("preferred", "preferred-six-first")
    assert sorted(served) == [place.address(17), place.address(18)], "which are content with IPv4"
    assert web.gets("a") == before
    assert not [name for name in ("six", "required", "required-six-first") if web.address(name)]
    place.verdict()
    web.remove("preferred", "preferred-six-first")
    web.shrinks_to(1)
    assert web.gets("a") == before
    place.verdict()


@early_story
def test_a_service_that_is_being_deleted_keeps_its_address_until_it_is_gone(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.add("going", finalizers=HELD)
    (address,) = web.gets("going")
    web.remove("going")
    web.stays(lambda: address in web.addresses("loadbalancer") and len(web.growths()) == 1, "it is still there")
    assert web.address("going") == address
    web.merge(web.service_path("going"), {"metadata": {"finalizers": None}})
    web.shrinks_to(1)
    place.verdict()


@early_story
def test_an_address_that_a_service_names_keeps_its_range_though_it_does_not_have_it(estate: Elastic) -> None:
    place = estate.place(initial=1, increment=2)
    web = place.started()
    web.add("a")
    assert web.gets("a") == [place.address(17)]
    wish = {"metallb.io/loadBalancerIPs": place.address(18), "metallb.io/address-pool": "special"}
    web.add("named", annotations=wish)  # which MetalLB cannot grant: the address is not in that pool
    web.remove("a")
    web.stays(lambda: len(web.addresses("loadbalancer")) == 3, "the range is spoken for", 3 * GRACE)
    assert not web.address("named")
    web.remove("named")
    web.shrinks_to(1)
    place.verdict()


@story
def test_an_address_that_a_service_only_names_is_not_in_use(estate: Elastic) -> None:
    place = estate.place(initial=2)
    web = place.started(addons=WITHOUT_INGRESS)
    wish = {"metallb.io/loadBalancerIPs": place.address(17), "metallb.io/address-pool": "special"}
    web.add("named", annotations=wish)
    web.add("a")
    web.gets("a")
    figures = {"held": 2, "inUse": 1, "idle": 1, "services": 1, "waitingServices": 0}
    web.until(lambda: figures.items() <= web.use().items(), f"the figures are {figures}")
    place.verdict()


@story
def test_the_lowest_ranges_stay_and_only_idle_growth_goes(estate: Elastic) -> None:
    place = estate.place(initial=2)
    web = place.started(addons=WITHOUT_INGRESS)
    names = ["a", "b", "c", "d", "e"]
    for name in names:
        web.add(name)
        web.gets(name)
    assert len(web.growths()) == 3
    kept = web.gets("e")
    web.remove("a", "b", "c", "d")
    web.until(lambda: len(web.growths()) == 1, "two idle ranges go back")
    assert web.gets("e") == kept
    web.stays(lambda: len(web.addresses("loadbalancer")) == 3, "the first ones stay, idle or not")
    place.verdict()


@story
def test_a_service_that_comes_while_a_range_is_idle_takes_it(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    for turn in range(5):
        web.add(f"t{turn}")
        assert web.gets(f"t{turn}") == [place.address(17)]
        web.remove(f"t{turn}")
    web.shrinks_to(1)
    place.verdict()
