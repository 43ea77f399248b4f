"""Nothing is given back before the real MetalLB shows that it has taken in the change: frozen, dead, or refusing.

What MetalLB shows is in its ConfigurationState and in the pool's status; what it does not show, it may not have done,
and an address that it still has in memory it may still hand out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from elastic.chronicle import phase
from elastic.real_metallb.taken_in import given_back_unseen
from elastic.telling import insist

if TYPE_CHECKING:
    from elastic.real_metallb.real_tenant import RealEstate, RealPlace, RealTenant

pytestmark = pytest.mark.real_metallb
LONG = 4.0
"""Seconds: twice the grace time, and much longer than a drain takes."""
CONDITION = "LoadBalancersReady"


def _grown(real: RealEstate) -> tuple[RealPlace, RealTenant]:
    """A tenant with a growth allocation that one Service uses."""
    place = real.place(initial=1)
    web = place.begin()
    web.add("first")
    web.gets("first")
    web.add("chat")
    web.gets("chat")
    return place, web


def _judged(place: RealPlace) -> None:
    place.verdict()
    chronicle = place.elastic.record.chronicle([tenant.uid for tenant in place.tenants])
    insist(given_back_unseen(chronicle), f"{place.namespace}: ")


def test_a_metallb_that_hangs_before_the_drain_stops_it(real: RealEstate) -> None:
    place, web = _grown(real)
    with real.frozen_metallb():
        web.remove("chat")  # MetalLB has it in its memory still
        web.sees(lambda: not web.hands_out(), "the drain has begun")
        web.keeps_all(LONG)
        assert web.published() == [place.range(16), place.range(17)]
    web.shrinks_to(1)
    _judged(place)


def test_a_metallb_that_hangs_after_it_stopped_handing_out_stops_the_release(real: RealEstate) -> None:
    place, web = _grown(real)
    web.remove("chat")
    web.drain_has_begun()
    with real.frozen_metallb():
        web.publishes(place.range(16))
        web.keeps_all(LONG)
        (growth,) = web.growths()
        assert phase(growth) == "Allocated"
        assert growth["status"]["drainingSince"]
    web.shrinks_to(1)
    _judged(place)


def test_a_metallb_that_hangs_at_the_withdrawal_has_taken_it_in_or_stops_the_release(real: RealEstate) -> None:
    place, web = _grown(real)
    web.remove("chat")
    web.publishes(place.range(16))
    with real.frozen_metallb():  # some milliseconds late, or not: what it had sent it has sent, and the record tells
        time.sleep(LONG / 2)
    web.shrinks_to(1)
    _judged(place)


def test_a_service_that_comes_while_metallb_hangs_in_a_drain_ends_the_drain(real: RealEstate) -> None:
    place, web = _grown(real)
    web.remove("chat")
    web.drain_has_begun()
    with real.frozen_metallb():
        web.publishes(place.range(16))
        web.add("late")
        web.publishes(place.range(16), place.range(17))
        web.keeps_all(1.0)
    assert web.gets("late") == [place.address(17)]
    assert web.address("first") == place.address(16)
    assert len(web.grown()) == 1
    _judged(place)


def test_a_metallb_that_is_dead_keeps_everything(real: RealEstate) -> None:
    place, web = _grown(real)
    real.metallb.kill()
    web.remove("chat")
    web.sees(lambda: not web.hands_out(), "the drain has begun")
    web.keeps_all(LONG)
    real.start_metallb()
    web.shrinks_to(1)
    assert web.address("first") == place.address(16)
    _judged(place)


def test_a_configuration_that_metallb_refuses_is_told_and_gives_nothing_back(real: RealEstate) -> None:
    place, web = _grown(real)
    web.overlap("mine", f"{place.network}.16/32")
    web.remove("chat")
    said = web.says(CONDITION, "False", "Refused")
    assert "MetalLB does not accept its configuration" in said
    assert "overlap" in said
    web.keeps_all(LONG)
    assert web.published() == [place.range(16), place.range(17)]
    assert web.hands_out(), "a drain that cannot go on holds nothing back"
    web.lift("mine")
    web.says(CONDITION, "True", "InStep")
    web.shrinks_to(1)
    _judged(place)


def test_a_service_that_waits_because_metallb_refuses_is_told_why(real: RealEstate) -> None:
    place, web = _grown(real)
    web.overlap("mine", f"{place.network}.16/32")
    web.add("late")
    assert "overlap" in web.says(CONDITION, "False", "Refused")
    assert not web.address("late")
    web.lift("mine")
    assert web.gets("late") == [place.address(18)]
    web.says(CONDITION, "True", "InStep")
    _judged(place)


def test_services_keep_their_addresses_when_metallb_dies_and_comes_back(real: RealEstate) -> None:
    place = real.place(initial=1)
    web = place.begin()
    web.add(*(f"s{number}" for number in range(4)))
    before = web.gets(*(f"s{number}" for number in range(4)))
    real.metallb.kill()
    web.remove("s0")
    web.add("late")
    real.start_metallb()
    web.gets("late")
    assert web.gets(*(f"s{number}" for number in range(1, 4))) == before[1:]
    _judged(place)
