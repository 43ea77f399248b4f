"""Addresses of pools that a tenant's Services show and that it does not hold."""

from __future__ import annotations

from typing import Any, cast

import pytest

from butler.api.tenantcluster import MOST_FOREIGN
from butler.ipam.addresses import parse_address
from butler.rules.loadbalancer.foreign_addresses import (
    COUNTS_AFTER,
    SHOWN_FOR,
    as_told,
    counting,
    foreign,
    recalled,
    remembered,
    seconds_to_next,
)
from unit.controllers.loadbalancers.household import KEY, Household
from unit.controllers.tenantcluster.values import allocation, pool
from unit.rules.loadbalancer.balancers import lb, service


def number(text: str) -> int:
    return parse_address(text)[1]


def shown(*texts: str) -> list[str]:
    """Of what Services show, what is foreign to a tenant with 10.40.0.20-21 and nodes on 10.40.0.10-14."""
    own = [lb(), allocation("web-nodes", "nodes", 5, start="10.40.0.10")]
    services = [service(f"s{text}", text) for text in texts]
    return list(as_told(foreign(services, own, lambda address: address < number("10.40.1.0"))))


def test_what_the_tenant_holds_is_not_foreign_nor_what_no_pool_hands_out() -> None:
    assert shown("10.40.0.20", "10.40.0.14", "10.41.0.7", "fd00::1") == []
    assert shown("10.40.0.22", "10.40.0.20", "10.40.0.9") == ["10.40.0.9", "10.40.0.22"]


def test_an_address_counts_once_it_was_shown_for_a_moment_and_for_a_while_after_it_went() -> None:
    first = remembered([1, 2], {}, 100.0)
    assert counting(first) == []
    assert seconds_to_next(first, 100.0) == pytest.approx(COUNTS_AFTER, abs=0.1)
    assert remembered([2], first, 101.0).keys() == {2}, "a view that was late for a moment accuses no tenant"
    known = remembered([1, 2], first, 100.0 + COUNTS_AFTER)
    assert counting(known) == [1, 2]
    later = remembered([2], known, 100.0 + SHOWN_FOR)
    assert counting(later) == [1, 2]
    assert counting(remembered([2], later, 100.0 + COUNTS_AFTER + SHOWN_FOR)) == [2]


def test_what_grants_wait_for_counts_at_once() -> None:
    first = remembered([1], {}, 100.0)
    assert counting(remembered([1, 2], first, 100.5, at_once=True)) == [1, 2]


def test_what_an_earlier_process_told_counts_until_it_was_not_shown_for_a_while() -> None:
    known = recalled(["10.40.0.48"], 7.0)
    assert as_told(counting(remembered([], known, 8.0))) == ("10.40.0.48",)
    assert counting(remembered([], known, 7.0 + SHOWN_FOR)) == []


def test_so_many_count_and_the_first_seen_stay() -> None:
    first = remembered([50], {}, 0.0)
    many = remembered(range(100), first, 1.0)
    assert len(many) == MOST_FOREIGN
    assert 50 in many


@pytest.fixture
async def house() -> Household:
    found = Household()
    found.management.put("networkpools", pool(free=18))
    await found.live(10)
    return found


def told(house: Household) -> tuple[str, ...]:
    figures = house.cluster().status.load_balancers
    assert figures is not None
    return figures.foreign_addresses


async def test_they_are_told_in_status_condition_and_event_and_no_longer_when_they_are_gone(house: Household) -> None:
    house.tenant.metallb_hangs = True  # the tenant serves these itself
    house.tenant.add_service("mine", ip="10.40.0.48", loadBalancerClass="example.com/mine")
    await house.live(5)
    assert told(house) == ("10.40.0.48",)
    assert house.reason() == "ForeignAddresses"
    assert "shop/mine (10.40.0.48)" in house.said()
    assert house.events.reasons().count("LoadBalancerForeignAddresses") == 1
    house.tenant.remove_service("mine")
    await house.live(5)
    assert told(house) == ("10.40.0.48",), "a moment ago is now"
    house.restart()
    await house.live(5)
    assert told(house) == ("10.40.0.48",), "also to the next process"
    await house.live(SHOWN_FOR + 5)
    assert told(house) == ()
    assert house.reason() == "InStep"


async def test_a_tenant_that_changes_them_all_the_time_does_not_write_all_the_time(house: Household) -> None:
    house.tenant.metallb_hangs = True
    await house.live(10)
    before = house.management.counts["patch tenantclusters"]
    for turn in range(30):
        house.tenant.add_service("mine", ip=f"10.40.0.{100 + turn}", loadBalancerClass="example.com/mine")
        await house.live(3)
    assert house.management.counts["patch tenantclusters"] - before < 100, "at most one in a while"
    assert len(told(house)) == MOST_FOREIGN


async def test_a_tenant_that_cannot_be_reached_keeps_them(house: Household) -> None:
    house.tenant.add_service("mine", ip="10.40.0.48", loadBalancerClass="example.com/mine")
    house.tenant.metallb_hangs = True
    await house.live(5)
    house.feeds.feed.trouble = "connection refused"
    await house.live(600)
    assert told(house) == ("10.40.0.48",)


async def test_a_process_that_starts_tells_them_before_any_pool_grants_something(house: Household) -> None:
    """As after a restore: what was granted is on no record, and only the Service shows it."""
    house.tenant.metallb_hangs = True
    house.tenant.add_service("mine", ip="10.40.0.48", loadBalancerClass="example.com/mine")
    house.tenant.add_service("waits")  # so that there is nothing settled to say yet
    house.restart()
    assert house.looks.seconds_left()
    await house.controller.reconcile(KEY)
    assert not house.looks.seconds_left()
    assert told(house) == ("10.40.0.48",)


async def test_versions_that_went_back_ask_for_a_look_at_the_allocations_as_they_are_now(house: Household) -> None:
    assert not house.looks.seconds_left()
    house.tenant.metallb_hangs = True
    house.tenant.add_service("mine", ip="10.40.0.48", loadBalancerClass="example.com/mine")
    house.timeline.went_back("a test")
    view = cast("Any", house.views.allocations)
    view.is_followed = False
    after = await house.controller.reconcile(KEY)
    assert after is not None
    assert after.seconds <= 0.2
    assert house.looks.seconds_left(), "the view may still show what is no longer on record"
    view.is_followed = True
    await house.controller.reconcile(KEY)
    assert not house.looks.seconds_left()
    assert told(house) == ("10.40.0.48",)
