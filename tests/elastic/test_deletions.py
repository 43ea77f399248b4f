"""An allocation that a person deletes while its tenant lives, where no admission refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from elastic.allocations import delete, deleting, found, pinned
from elastic.chronicle import phase
from elastic.estate import GRACE
from elastic.stories import story

if TYPE_CHECKING:
    from elastic.estate import Elastic

WITHOUT_INGRESS = {"ingress": {"enabled": False}}
MODES = pytest.mark.parametrize("mode", ["static", "elastic"])
CONDITION = "LoadBalancersReady"


@MODES
@story
def test_what_a_service_uses_stays_and_goes_by_the_drain_when_none_does(estate: Elastic, mode: str) -> None:
    place = estate.place(mode=mode, initial=2)
    web = place.started(addons=WITHOUT_INGRESS)
    web.add("a")
    (address,) = web.gets("a")
    (name,) = [allocation["metadata"]["name"] for allocation in web.allocations("loadbalancer")]
    delete(place, name)
    # Another allocation waits for that very address.
    rival = f"{place.namespace}-rival"
    pinned(place, rival, address, {"name": "no-tenant", "namespace": place.namespace})
    web.until(lambda: deleting(web, name).get("reason") == "InUse", "it says that it is in use")
    assert "default/a" in deleting(web, name)["message"]
    assert "default/a" in web.says(CONDITION, "False", "DeletionWaits")
    web.stays(lambda: phase(found(web, name)) == "Allocated" and web.address("a") == address, "it stays", 2 * GRACE)
    assert phase(found(web, rival)) != "Allocated"
    web.remove("a")
    web.until(lambda: phase(found(web, rival)) == "Allocated", "the address goes to the request that waits for it")
    web.until(lambda: found(web, name).get("status", {}).get("drainingSince") is None, "the old one is gone")
    web.says(CONDITION, "True", "InStep")
    web.add("b")
    assert web.gets("b") != [address]
    place.verdict()
    delete(place, rival)


@story
def test_growth_and_hand_made_ranges_go_the_same_way_and_services_get_other_addresses(estate: Elastic) -> None:
    place = estate.place(initial=1)
    web = place.started(addons=WITHOUT_INGRESS)
    web.add("a", "b")
    web.gets("a", "b")
    by_hand = f"{place.namespace}-by-hand"
    pinned(place, by_hand, place.address(30), {"name": web.name, "namespace": web.namespace})
    web.sees(lambda: place.range(30) in web.published(), "what was made by hand is published too")
    web.add("c", annotations={"metallb.io/loadBalancerIPs": place.address(30)})
    web.gets("c")
    (growth,) = [obj["metadata"]["name"] for obj in web.growths()]
    delete(place, growth)
    delete(place, by_hand)
    web.until(lambda: "default/c" in deleting(web, by_hand).get("message", ""), "it says who uses it")
    web.until(lambda: deleting(web, growth).get("reason") == "InUse", "and so does the other")
    used = set(web.gets("a", "b", "c"))
    web.add("d", "e")
    assert not used & set(web.gets("d", "e"))
    assert set(web.gets("a", "b", "c")) == used
    web.remove("a", "b", "c")
    for name in (growth, by_hand):
        web.until(lambda name=name: phase(found(web, name)) in ("", "Released"), f"{name} goes back")
    web.says(CONDITION, "True", "InStep")
    place.verdict()
