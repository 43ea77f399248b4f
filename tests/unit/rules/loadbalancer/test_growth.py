"""What is asked for when Services wait, and from which pool."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from butler.api.ipallocation import IPAllocationType
from butler.api.labels import LoadBalancerReason
from butler.rules.loadbalancer.growth import ENOUGH, Ask, Growth, grow
from butler.rules.tenant.address_requests import further_names
from unit.controllers.tenantcluster.values import cluster, pool
from unit.rules.loadbalancer.balancers import ELASTIC, asked, lb, look, refused, service, waiting

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation
    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.usage import Usage

FULL = [service("a", "10.40.0.20"), service("b", "10.40.0.21")]


def growth(found: Usage, policy: LoadBalancerPolicy = ELASTIC, **free: int | None) -> Growth:
    """With pools that have such a longest free run each; None: the pool is not ready."""
    pools = {
        name: pool(name, free=0 if size is None else size, ready=size is not None)
        for name, size in (free or {"vlan40": 100, "vlan41": 100}).items()
    }
    return grow(found, policy, pools)


def asks(found: Usage, policy: LoadBalancerPolicy = ELASTIC, **free: int | None) -> list[tuple[str, int]]:
    return [(ask.pool, ask.count) for ask in growth(found, policy, **free).ask]


# How many.


def test_nothing_is_asked_for_while_no_service_waits() -> None:
    assert growth(look(lb(), services=FULL)) == ENOUGH
    assert growth(look()) == ENOUGH


def test_the_worked_example_of_the_third_service_gets_the_increment() -> None:
    """Two addresses, both in use, and a third Service: growthIncrement 1 makes it exactly one more."""
    found = look(lb(), services=[*FULL, *waiting(1)])
    assert asks(found, replace(ELASTIC, increment=1)) == [("vlan40", 1)]
    assert asks(found, replace(ELASTIC, increment=3)) == [("vlan40", 3)]


def test_a_burst_is_met_in_one_step() -> None:
    assert asks(look(lb(), services=[*FULL, *waiting(5)])) == [("vlan40", 5)]


def test_a_tenant_without_any_address_grows_too() -> None:
    assert asks(look(services=waiting(1))) == [("vlan40", 2)]


def test_free_addresses_are_metallbs_to_hand_out_first() -> None:
    """The original grew although addresses were free, also while MetalLB was down."""
    assert growth(look(lb(), services=waiting(2))) == ENOUGH
    assert asks(look(lb(), services=waiting(3))) == [("vlan40", 2)]


def test_an_address_that_is_only_asked_for_by_name_is_free_for_any_service() -> None:
    """MetalLB does not reserve it for a Service."""
    assert growth(look(lb(), services=[service("x", asks=("10.40.0.20",)), *waiting(2)])) == ENOUGH


def test_partly_used_blocks_count_with_what_is_left_of_them() -> None:
    grown = lb("web-lb-2", "10.40.0.30", 4, growth=True)
    used = [*FULL, service("c", "10.40.0.30")]
    assert growth(look(lb(), grown, services=[*used, *waiting(3)])) == ENOUGH
    assert asks(look(lb(), grown, services=[*used, *waiting(4)])) == [("vlan40", 2)]


@pytest.mark.parametrize("request_", [asked(count=3), refused(count=3)])
def test_what_is_under_way_is_not_asked_for_again(request_: IPAllocation) -> None:
    """Five wait, three are under way: two are missing. The original did not count what had no phase, or failed."""
    found = look(lb(), request_, services=[*FULL, *waiting(5)])
    assert asks(found, vlan40=0, vlan41=0) == [("vlan40", 2)]
    enough = look(lb(), request_, services=[*FULL, *waiting(3)])
    assert growth(enough, vlan40=0, vlan41=0).ask == ()


def test_the_first_of_five_that_is_served_does_not_make_the_other_four_be_asked_for_again() -> None:
    grown = lb("web-lb-2", "10.40.0.30", 5, growth=True)
    assert growth(look(lb(), grown, services=[*FULL, service("c", "10.40.0.30"), *waiting(4)])) == ENOUGH


def test_what_is_being_drained_serves_no_service() -> None:
    found = look(lb("web-lb-2", "10.40.0.30", 2, growth=True, draining=1), services=waiting(1))
    assert asks(found) == [("vlan40", 2)]


# Quota.


def test_a_step_is_cut_to_what_the_quota_leaves() -> None:
    """The original gave nothing where one address was left and the increment was two."""
    found = look(lb(), services=[*FULL, *waiting(1)])
    assert asks(found, replace(ELASTIC, increment=4, most=3)) == [("vlan40", 1)]


def test_requests_under_way_count_against_the_quota() -> None:
    found = look(lb(), asked(count=2), services=[*FULL, *waiting(5)])
    assert asks(found, replace(ELASTIC, most=5)) == [("vlan40", 1)]


def test_a_quota_that_is_reached_is_told_and_nothing_is_asked_for() -> None:
    found = growth(look(lb(), services=[*FULL, *waiting(2)]), replace(ELASTIC, most=2))
    assert found.ask == ()
    assert found.short is not None
    assert found.short.reason is LoadBalancerReason.QUOTA_REACHED
    for word in ("web/waits-0", "holds 2", "may hold 2", "maxLoadBalancerIPs"):
        assert word in found.short.message


def test_a_quota_that_serves_some_of_those_who_wait_is_told_too() -> None:
    found = growth(look(lb(), services=[*FULL, *waiting(3)]), replace(ELASTIC, most=3))
    assert found.ask == (Ask("vlan40", 1),)
    assert found.short is not None
    assert found.short.reason is LoadBalancerReason.QUOTA_REACHED


def test_a_quota_below_what_is_held_leaves_that_alone() -> None:
    found = growth(look(lb(count=8), services=waiting(9)), replace(ELASTIC, most=4))
    assert (found.ask, found.drop) == ((), ())


# From where.


def test_a_step_comes_from_the_first_pool_that_has_a_run_long_enough() -> None:
    """By the longest run, not by the number of free addresses: a fragmented pool has many and can give none."""
    found = look(services=waiting(4))
    assert asks(found, vlan40=4, vlan41=100) == [("vlan40", 4)]
    assert asks(found, vlan40=3, vlan41=100) == [("vlan41", 4)]
    assert asks(found, vlan40=None, vlan41=100) == [("vlan41", 4)]
    assert asks(found, vlan41=100) == [("vlan41", 4)]


def test_comfort_gives_way_before_need_does() -> None:
    policy = replace(ELASTIC, increment=8)
    assert asks(look(services=waiting(2)), policy, vlan40=3, vlan41=1) == [("vlan40", 2)]


def test_a_need_that_no_run_can_hold_is_met_in_pieces() -> None:
    found = look(services=waiting(5))
    assert asks(found, vlan40=3, vlan41=4) == [("vlan40", 3), ("vlan41", 2)]
    assert asks(found, vlan40=2, vlan41=1) == [("vlan40", 2), ("vlan41", 1)]


def test_where_nothing_is_free_a_request_for_what_is_needed_waits_in_the_first_pool() -> None:
    policy = replace(ELASTIC, increment=8)
    assert asks(look(services=waiting(3)), policy, vlan40=0, vlan41=0) == [("vlan40", 3)]
    assert asks(look(services=waiting(3)), policy, vlan41=0) == [("vlan41", 3)], "the first that exists"
    assert grow(look(services=waiting(3)), policy, {}).ask == (Ask("vlan40", 3),)


# Other modes.


def test_a_static_tenant_asks_for_nothing_and_is_told_so() -> None:
    found = growth(look(lb(), services=[*FULL, *waiting(1)]), replace(ELASTIC, elastic=False))
    assert (found.ask, found.drop) == ((), ())
    assert found.short is not None
    assert found.short.reason is LoadBalancerReason.SERVICES_WAITING
    assert "not elastic" in found.short.message
    assert growth(look(lb(), services=waiting(1)), replace(ELASTIC, elastic=False)) == ENOUGH


def test_a_provider_without_pools_for_load_balancers_is_told_of() -> None:
    found = growth(look(services=waiting(1)), replace(ELASTIC, pools=()))
    assert found.ask == ()
    assert found.short is not None
    assert "no pool" in found.short.message


def test_the_reason_names_who_waits_and_not_all_of_a_thousand() -> None:
    because = growth(look(lb(), services=[*FULL, *waiting(1000)]), replace(ELASTIC, most=None)).because
    assert because.startswith("1000 Services wait for an address (web/waits-0, ")
    assert "0 of 2 addresses are free" in because
    assert len(because) < 200


def test_names_take_the_lowest_numbers_that_are_free() -> None:
    """By counting allocations, the original came upon a name that existed, and was stuck."""

    def names(*taken: str) -> list[str]:
        return list(itertools.islice(further_names(cluster(), IPAllocationType.LOAD_BALANCER, taken.__contains__), 2))

    assert names() == ["web-lb-2", "web-lb-3"]
    assert names("web-lb", "web-lb-3") == ["web-lb-2", "web-lb-4"]
    assert names("web-lb-2", "web-lb-3") == ["web-lb-4", "web-lb-5"]
