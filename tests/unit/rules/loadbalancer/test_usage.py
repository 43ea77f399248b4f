"""How a tenant's Services and its addresses stand to each other."""

from __future__ import annotations

import msgspec
import pytest

from butler.rules.loadbalancer.demand import CHANCE_TO_SHARE
from butler.rules.loadbalancer.usage import asked_count, granted_range, is_growth
from unit.controllers.tenantcluster.values import NOW, allocation
from unit.rules.loadbalancer.balancers import asked, lb, look, refused, service, waiting


def test_addresses_held_are_in_use_or_free() -> None:
    found = look(lb(), lb("web-lb-2", "10.40.0.30", 4, growth=True), services=[service("a", "10.40.0.20")])
    assert (found.held, found.in_use, found.free, found.demand) == (6, 1, 5, 0)


def test_a_block_far_longer_than_256_addresses_is_in_use_when_its_last_address_is() -> None:
    """The original looked at the first 256 only."""
    found = look(lb("big", "10.41.0.0", 4096, growth=True), services=[service("a", "10.41.15.255")])
    assert found.blocks[0].claimed == 1


def test_an_address_next_to_a_block_is_not_in_it() -> None:
    found = look(lb(start="10.40.0.20", count=2), services=[service("a", "10.40.0.19"), service("b", "10.40.0.22")])
    assert found.blocks[0].claimed == 0


def test_addresses_of_machines_are_none_of_ours() -> None:
    assert look(allocation("web-nodes", "nodes", start="10.40.0.10")).blocks == ()


@pytest.mark.parametrize("phase", ["Released", "Pending", "Failed"])
def test_only_what_was_granted_is_held(phase: str) -> None:
    assert look(lb(phase=phase)).held == 0


def test_what_is_being_deleted_is_held_and_not_free_and_a_request_is_not_under_way() -> None:
    found = look(lb(deleting=True), asked(deleting=True))
    assert (found.held, found.free, found.under_way) == (2, 0, 0)


def test_metallb_hands_out_as_long_as_a_block_that_stays_has_a_free_address() -> None:
    going, staying = lb(deleting=True), lb("web-lb-2", "10.40.0.22", growth=True)
    full = [service("a", "10.40.0.22"), service("b", "10.40.0.23")]
    for more_comes in (True, False):
        assert look(staying).hands_out(more_comes=more_comes)
        assert look(staying, services=waiting(3)).hands_out(more_comes=more_comes)
        assert look().hands_out(more_comes=more_comes)
        assert look(going, staying, services=waiting(2)).hands_out(more_comes=more_comes)
        assert not look(going).hands_out(more_comes=more_comes)
        assert not look(going, staying, services=full).hands_out(more_comes=more_comes)


def test_what_goes_is_not_handed_out_to_whom_the_others_are_not_enough_if_more_comes() -> None:
    going, staying = lb(deleting=True), lb("web-lb-2", "10.40.0.22", growth=True)
    found = look(going, staying, services=waiting(3))
    assert not found.hands_out(more_comes=True)
    assert found.hands_out(more_comes=False), "those who can be served are"


def test_a_service_that_could_only_have_an_address_that_goes_holds_nothing_up() -> None:
    going, staying = lb(deleting=True), lb("web-lb-2", "10.40.0.22", growth=True)
    full = [service("a", "10.40.0.22"), service("b", "10.40.0.23")]
    assert look(going, staying, services=waiting(1)).is_held_up
    assert not look(going, staying, services=[*full, *waiting(1)]).is_held_up
    assert look(lb("web-lb-2", growth=True, draining=1), services=waiting(1)).is_held_up


def test_requests_that_wait_or_were_refused_are_under_way() -> None:
    found = look(asked("a", 2), refused("b", 3), asked("c", growth=False, pinned=("10.40.0.50", "10.40.0.54")))
    assert found.under_way == 10
    assert asked_count(asked("d", growth=False, pinned=("10.40.0.50", "junk"))) == 0


def test_requests_stand_in_order_of_age() -> None:
    found = look(asked("young", age=1), asked("b", age=9), asked("a", age=9))
    assert [request.metadata.name for request in found.requests] == ["a", "b", "young"]


def test_what_is_being_drained_is_held_and_not_free() -> None:
    found = look(lb(), lb("web-lb-2", "10.40.0.30", 3, growth=True, draining=1))
    assert (found.held, found.free) == (5, 2)
    assert [block.allocation.metadata.name for block in found.draining] == ["web-lb-2"]


def test_only_what_came_for_demand_may_go() -> None:
    assert is_growth(lb(growth=True))
    assert not is_growth(lb())
    assert not is_growth(lb(growth=True, pinned=("10.40.0.20", "10.40.0.21"))), "a user picked it"


def test_a_grant_that_cannot_be_read_is_not_announced() -> None:
    granted = lb()
    broken = msgspec.structs.replace(granted, status=msgspec.structs.replace(granted.status, end_address="10.40.0.1"))
    assert granted_range(broken) is None
    assert look(broken).held == 0


def test_services_count_that_have_one_of_the_tenants_addresses() -> None:
    found = look(
        lb(),
        services=[
            service("traefik", "10.40.0.20", platform=True),
            service("shop", "10.40.0.21"),
            service("elsewhere", "192.0.2.1", platform=True),
            service("asks", asks=("10.40.0.21",)),
            *waiting(1),
        ],
    )
    assert (found.services, found.platform_services, len(found.waiting)) == (2, 1, 1)


def test_demand_is_what_waits_for_the_class_that_metallb_serves() -> None:
    services = [service("a"), service("b", class_name="metallb")]
    assert [item.name for item in look(services=services, served_class="metallb").waiting] == ["b"]


def test_a_service_that_may_share_an_address_is_left_to_metallb_for_a_moment() -> None:
    http = service("http", "10.40.0.20", sharing_key="web")
    https = service("https", sharing_key="web", created=NOW)
    found = look(lb(), services=[http, https])
    assert (found.demand, found.about_to_share, len(found.waiting)) == (0, 1, 1)


def test_one_that_did_not_get_to_share_needs_an_address() -> None:
    http = service("http", "10.40.0.20", sharing_key="web")
    late = service("https", sharing_key="web", created=NOW - CHANCE_TO_SHARE)
    unknown = service("other", sharing_key="mail", created=NOW)
    found = look(lb(), services=[http, late, unknown])
    assert (found.demand, found.about_to_share) == (2, 0)


def test_an_address_that_is_only_asked_for_is_spoken_for_and_not_in_use() -> None:
    found = look(lb(), services=[service("x", asks=("10.40.0.20",))])
    (block,) = found.blocks
    assert (block.used, block.claimed, block.free, found.in_use) == (0, 1, 2, 0)
