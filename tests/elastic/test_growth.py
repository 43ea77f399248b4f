"""How much a tenant grows, and from where: batches, waves, pools by priority, and pools in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elastic.stories import story
from tenants.estate import API, HOME

if TYPE_CHECKING:
    from elastic.estate import Elastic, Place
    from ipam.history import Json

WITHOUT_INGRESS = {"ingress": {"enabled": False}}


@story
def test_services_that_come_at_once_are_served_by_one_growth(estate: Elastic) -> None:
    place = estate.place(increment=2)
    web = place.started()
    names = [f"s{number}" for number in range(6)]
    with estate.butler.frozen():
        web.add(*names)
        web.sees(lambda: web.address("s0") or web.address("s1"), "one takes what was free")
    web.gets(*names)
    assert list(web.grown().values()) == [5]
    assert web.published() == [place.range(16, 17), place.range(18, 22)]
    place.verdict()


@story
def test_waves_of_services_are_counted_once(estate: Elastic) -> None:
    place = estate.place(initial=1, size=40)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    names: list[str] = []
    for wave in range(4):
        fresh = [f"w{wave}-{number}" for number in range(wave + 1)]
        web.add(*fresh)  # while the wave before is still being served
        names += fresh
    web.gets(*names)
    assert sum(web.grown().values()) == len(names), "as many as were missing, however they came"
    place.verdict()
    web.remove(*names)
    web.shrinks_to(1)
    place.verdict()


@story
def test_a_growth_takes_at_least_the_increment_and_later_services_use_it_up(estate: Elastic) -> None:
    place = estate.place(initial=1, increment=4)
    web = place.started()
    web.add("a")
    web.gets("a")
    assert list(web.grown().values()) == [4]
    web.add("b", "c", "d")
    web.gets("b", "c", "d")
    assert list(web.grown().values()) == [4]
    web.remove("a", "b", "c")
    web.stays(lambda: len(web.growths()) == 1, "one Service keeps the range")
    assert web.address("d")
    place.verdict()


@story
def test_services_that_share_an_address_need_one(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started()
    web.gets("traefik", namespace="traefik")
    together = {"metallb.io/allow-shared-ip": "together"}
    with estate.butler.frozen():
        web.add("http", annotations=together, port=80)
        web.add("https", annotations=together, port=443)
    web.sees(lambda: web.address("http") and web.address("http") == web.address("https"), "both have one address")
    assert list(web.grown().values()) == [1]
    place.verdict()


@story
def test_a_tenant_that_shrinks_makes_room_for_another(estate: Elastic) -> None:
    place = estate.place(size=3, initial=1)
    one = place.started("one", addons=WITHOUT_INGRESS)
    two = place.started("two", addons=WITHOUT_INGRESS)
    one.add("a", "b")
    one.gets("a", "b")
    two.add("a", "b")
    two.gets("a")
    two.says("LoadBalancersReady", "False", "PoolExhausted")
    assert two.until(lambda: two.events("LoadBalancerPoolExhausted"), "it is told")[0]["type"] == "Warning"
    (waiting,) = two.growths()
    assert waiting["spec"]["count"] == 1
    place.verdict()
    one.remove(next(name for name in "ab" if one.address(name) in one.growths()[0]["status"]["addresses"]))
    two.gets("b")
    two.says("LoadBalancersReady", "True", "InStep")
    place.verdict()


@story
def test_a_pool_that_is_added_serves_those_who_wait(estate: Elastic) -> None:
    place = estate.place(size=2, spare=4)
    web = place.started()
    web.add("a", "b")
    web.says("LoadBalancersReady", "False", "PoolExhausted")
    place.change(pools=[{"name": place.pool}, {"name": place.spare_pool}])
    _, added = sorted(web.gets("a", "b"), key=lambda text: not text.startswith("10."))
    assert added == f"{place.spare_network}.16"
    place.verdict()


@story
def test_pools_are_tried_by_priority(estate: Elastic) -> None:
    place = estate.place(size=4, spare=8)
    place.change(pools=[{"name": place.spare_pool, "priority": 20}, {"name": place.pool, "priority": 10}])
    web = place.started()
    with estate.butler.frozen():
        web.add("a", "b", "c")
    web.gets("a", "b", "c")
    assert {growth["spec"]["poolRef"]["name"] for growth in web.growths()} == {place.pool}
    with estate.butler.frozen():
        web.add("d", "e")
    assert sorted(web.gets("d", "e")) == [f"{place.spare_network}.16", f"{place.spare_network}.17"]
    assert {growth["spec"]["poolRef"]["name"] for growth in web.growths()} == {place.pool, place.spare_pool}
    place.verdict()


@story
def test_a_pool_in_pieces_serves_a_batch_in_pieces(estate: Elastic) -> None:
    place = estate.place(size=12)
    web = place.started()  # has .16 and .17
    web.gets("traefik", namespace="traefik")
    estate.apply(*(_held(place, last) for last in (20, 23, 26)))

    def free() -> tuple[int, int]:
        status = (estate.witness.get("networkpools", HOME, place.pool) or {})["status"]
        return status["availableIPs"], status["largestFreeBlock"]

    estate.until(lambda: free() == (7, 2), "the pool has holes")
    names = [f"s{number}" for number in range(6)]
    with estate.butler.frozen():
        web.add(*names)
    web.gets(*names)
    assert sorted(growth["status"]["allocatedCount"] for growth in web.growths()) == [1, 2, 2]
    assert len(web.published()) == 4
    place.verdict()


def _held(place: Place, last: int) -> Json:
    """An address that an operator prepared for a cluster that is yet to come."""
    return {
        "apiVersion": API,
        "kind": "IPAllocation",
        "metadata": {"name": f"{place.namespace}-{last}", "namespace": HOME},
        "spec": {
            "poolRef": {"name": place.pool},
            "tenantClusterRef": {"name": "later", "namespace": place.namespace},
            "type": "loadbalancer",
            "pinnedRange": {"startAddress": place.address(last), "endAddress": place.address(last)},
        },
    }
