"""A range that a person deletes, on the real MetalLB: who has an address keeps it, and new Services get others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from elastic.allocations import delete, deleting, found
from elastic.chronicle import phase

if TYPE_CHECKING:
    from elastic.real_metallb.real_tenant import RealEstate

pytestmark = pytest.mark.real_metallb


def test_a_range_that_is_deleted_in_use_is_handed_out_no_more_and_goes_when_it_is_idle(real: RealEstate) -> None:
    place = real.place(initial=4)
    web = place.begin()
    web.add("a")
    before = web.gets("a")
    (name,) = [allocation["metadata"]["name"] for allocation in web.allocations("loadbalancer")]
    delete(place, name)
    web.until(lambda: deleting(web, name).get("reason") == "InUse", "it says that it is in use")
    web.sees(lambda: not web.hands_out(), "no Service gets what is to go")
    web.add("b", "c")
    served = web.gets("b", "c")
    first = set(place.addresses(16, 19))
    assert not first & set(served), "three of the first four are free, and are not handed out"
    assert web.gets("a") == before
    assert web.published()[-1] == place.range(16, 19), "MetalLB takes the entries in their order"
    # A Service that comes before MetalLB hears of `autoAssign: false` is served from the last entry too.
    web.sees(lambda: not web.hands_out(), "all others are taken, so it hands out nothing")
    web.add("d")
    assert not first & set(web.gets("d"))
    web.remove("a")
    web.until(lambda: phase(found(web, name)) in ("", "Released"), "it goes")
    web.sees(lambda: place.range(16, 19) not in web.published() and web.hands_out(), "MetalLB has the others")
    assert not first & set(web.gets("b", "c", "d"))
    place.comes_to_rest()


def test_a_service_that_asks_for_an_address_of_a_range_that_goes_keeps_it(real: RealEstate) -> None:
    place = real.place(initial=2)
    web = place.begin()
    web.add("a")
    web.gets("a")
    (name,) = [allocation["metadata"]["name"] for allocation in web.allocations("loadbalancer")]
    delete(place, name)
    web.sees(lambda: not web.hands_out(), "no Service gets what is to go")
    wanted = place.address(17)
    web.add("named", annotations={"metallb.io/loadBalancerIPs": wanted})
    assert web.gets("named") == [wanted]
    web.remove("a")
    web.keeps_all(3.0)
    web.remove("named")
    web.until(lambda: phase(found(web, name)) in ("", "Released"), "it goes")
    web.add("b")
    web.gets("b")
    place.comes_to_rest()
