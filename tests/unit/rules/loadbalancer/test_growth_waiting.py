"""Requests that were not granted: which are kept, given up, or taken elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from butler.api.labels import LoadBalancerReason
from unit.rules.loadbalancer.balancers import ELASTIC, asked, lb, look, refused, service, waiting
from unit.rules.loadbalancer.test_growth import FULL, growth

if TYPE_CHECKING:
    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.usage import Usage


def dropped(found: Usage, policy: LoadBalancerPolicy = ELASTIC, **free: int | None) -> list[str]:
    return [allocation.metadata.name for allocation in growth(found, policy, **free).drop]


def test_a_request_that_no_service_waits_for_any_more_is_given_up() -> None:
    assert dropped(look(lb(), asked(), services=FULL)) == ["web-lb-2"]
    assert dropped(look(lb(), refused(), services=FULL)) == ["web-lb-2"]


def test_of_several_requests_the_youngest_go_as_far_as_the_others_are_enough() -> None:
    old, young = asked("old", 2, age=9), asked("young", 2, age=1)
    assert dropped(look(old, young, services=waiting(2))) == ["young"]
    assert dropped(look(old, young, services=waiting(3))) == []
    assert dropped(look(old, young)) == ["young", "old"]


def test_what_a_cluster_begins_with_is_never_given_up() -> None:
    first = asked("web-lb", growth=False)
    assert dropped(look(first)) == []
    assert dropped(look(first), replace(ELASTIC, elastic=False)) == []
    assert dropped(look(asked("picked", growth=True, pinned=("10.40.0.50", "10.40.0.51")))) == []


def test_a_request_for_the_size_that_the_cluster_names_is_not_given_up() -> None:
    assert dropped(look(lb(), asked(), services=FULL), replace(ELASTIC, least=4)) == []
    assert dropped(look(lb(), refused(), services=FULL), replace(ELASTIC, least=4), vlan40=0, vlan41=1) == []


def test_a_provider_that_became_static_gives_up_what_it_was_growing_by() -> None:
    assert dropped(look(lb(), asked(), services=[*FULL, *waiting(2)]), replace(ELASTIC, elastic=False)) == ["web-lb-2"]


def test_a_request_above_a_quota_that_was_lowered_is_given_up_and_asked_for_as_far_as_it_goes() -> None:
    policy = replace(ELASTIC, most=3)
    services = [*FULL, *waiting(2)]
    assert dropped(look(lb(), asked(count=2), services=services), policy) == ["web-lb-2"]
    after = growth(look(lb(), services=services), policy)
    assert [ask.count for ask in after.ask] == [1]


def test_a_refused_request_waits_where_it_is_while_nothing_is_free_anywhere() -> None:
    found = growth(look(lb(), refused(), services=[*FULL, *waiting(2)]), vlan40=0, vlan41=0)
    assert (found.ask, found.drop) == ((), ())
    assert found.short is not None
    assert found.short.reason is LoadBalancerReason.POOL_EXHAUSTED
    for word in ("web/waits-0", "pool vlan40: no run of free addresses", "pool vlan41 has no run"):
        assert word in found.short.message


def test_a_refused_request_moves_to_a_pool_that_has_room() -> None:
    """The original deleted it and asked the same pool again, for ever."""
    found = look(lb(), refused(), services=[*FULL, *waiting(2)])
    assert dropped(found, vlan40=0, vlan41=2) == ["web-lb-2"]
    after = growth(look(lb(), services=[*FULL, *waiting(2)]), vlan40=0, vlan41=2)
    assert [(ask.pool, ask.count) for ask in after.ask] == [("vlan41", 2)]


def test_a_refused_request_goes_in_pieces_as_soon_as_anything_is_free() -> None:
    assert dropped(look(lb(), refused(count=4), services=[*FULL, *waiting(4)]), vlan40=1, vlan41=0) == ["web-lb-2"]


def test_a_refused_request_that_its_pool_can_hold_now_is_left_to_the_pool() -> None:
    assert dropped(look(lb(), refused(), services=[*FULL, *waiting(2)]), vlan40=2, vlan41=9) == []


def test_a_request_in_a_pool_that_is_not_the_providers_any_more_is_taken_elsewhere() -> None:
    assert dropped(look(lb(), refused(of="old"), services=[*FULL, *waiting(2)]), vlan40=0, vlan41=0) == ["web-lb-2"]


def test_a_request_that_the_pool_has_not_answered_yet_is_not_moved() -> None:
    assert dropped(look(lb(), asked(), services=[*FULL, *waiting(2)]), vlan40=0, vlan41=9) == []


def test_who_waits_while_requests_wait_is_asked_for_as_well() -> None:
    found = growth(look(lb(), refused(count=2), services=[*FULL, *waiting(3)]), vlan40=0, vlan41=0)
    assert [(ask.pool, ask.count) for ask in found.ask] == [("vlan40", 1)]


def test_a_service_that_can_never_be_served_asks_for_nothing() -> None:
    """Growing for it, and giving back what no Service uses, went on for ever."""
    hopeless = [
        service("a", class_name="other"),
        service("b", asks=("192.0.2.9",)),
        service("c", has_hostname=True),
        service("d", deleting=True),
        service("e", families=("IPv6",)),
    ]
    found = growth(look(lb(), services=[*FULL, *hopeless]))
    assert (found.ask, found.drop, found.short) == ((), (), None)
