"""Which addresses no Service needs any more, and since when."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from butler.rules.loadbalancer.idleness import WORTH_STORING, due, idle_marks, still_idle, when_idle_changes
from butler.rules.loadbalancer.policy import LoadBalancerPolicy
from unit.controllers.tenantcluster.values import NOW
from unit.rules.loadbalancer.balancers import ELASTIC, GRACE, asked, lb, look, service, waiting

if TYPE_CHECKING:
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.rules.loadbalancer.usage import Usage

LONG = GRACE.total_seconds()
GROWN = "10.40.0.30"


def going(found: Usage, policy: LoadBalancerPolicy = ELASTIC, *, later: float = 0) -> list[str]:
    return [block.allocation.metadata.name for block in due(found, policy, NOW + timedelta(seconds=later), GRACE)]


def grown(
    name: str = "web-lb-2", start: str = GROWN, count: int = 2, *, idle: float | None = LONG, **more: Any
) -> IPAllocation:
    return lb(name, start, count, growth=True, idle=idle, **more)


# What goes back.


def test_a_block_goes_when_it_was_idle_for_the_grace_time_and_not_a_second_before() -> None:
    assert going(look(lb(), grown(idle=LONG - 1))) == []
    assert going(look(lb(), grown(idle=LONG - 1)), later=1) == ["web-lb-2"]


def test_the_age_of_a_block_is_not_how_long_it_was_idle() -> None:
    """The original measured from the block's creation: a Service deleted from an old one cost its addresses at once."""
    assert going(look(lb(), grown(idle=3, age=86_400))) == []
    assert going(look(lb(), grown(idle=None, age=86_400))) == []


def test_a_block_goes_as_a_whole_or_not_at_all() -> None:
    assert going(look(lb(), grown(count=4), services=[service("a", "10.40.0.33")])) == []
    assert going(look(lb(), grown(count=4), services=[service("a", asks=("10.40.0.33",))])) == []
    assert going(look(lb(), grown(count=4), services=[service("a", "10.40.0.33", deleting=True)])) == []


def test_what_a_cluster_began_with_or_picked_by_hand_never_goes() -> None:
    assert going(look(lb(idle=LONG * 9))) == []
    assert going(look(grown(pinned=("10.40.0.30", "10.40.0.31")))) == []


@pytest.mark.parametrize(("least", "expected"), [(0, ["a", "b"]), (2, ["a", "b"]), (3, ["a"]), (4, ["a"]), (5, [])])
def test_never_below_what_the_cluster_asks_for(least: int, expected: list[str]) -> None:
    found = look(lb(), grown("a", "10.40.0.30"), grown("b", "10.40.0.40"))
    assert going(found, replace(ELASTIC, least=least)) == expected


def test_a_smaller_block_goes_where_a_larger_one_has_to_stay() -> None:
    found = look(lb(), grown("large", "10.40.0.30", 4), grown("small", "10.40.0.40", 1))
    assert going(found, replace(ELASTIC, least=6)) == ["small"]


def test_nothing_goes_while_a_service_waits() -> None:
    assert going(look(lb(), grown(), services=waiting(1))) == []


def test_a_service_that_can_never_be_served_does_not_keep_idle_blocks() -> None:
    assert going(look(lb(), grown(), services=[service(class_name="other")])) == ["web-lb-2"]


def test_nothing_goes_while_something_is_asked_for_or_another_drain_is_under_way() -> None:
    assert going(look(lb(), grown(), asked("web-lb-3"))) == []
    assert going(look(lb(), grown(), grown("web-lb-3", "10.40.0.40", draining=1))) == []


def test_what_is_left_of_elastic_days_goes_back_in_static_mode() -> None:
    assert going(look(lb(), grown()), LoadBalancerPolicy()) == ["web-lb-2"]


# What is written down.


def marks(found: Usage, seen: dict[str, datetime], grace: timedelta = GRACE) -> list[tuple[str, datetime | None]]:
    return [(mark.block.allocation.metadata.name, mark.since) for mark in idle_marks(found, seen, NOW, grace)]


def test_the_moment_a_block_fell_idle_is_written_down_when_that_has_lasted() -> None:
    found = look(lb(), grown(idle=None))
    before = NOW - WORTH_STORING
    assert marks(found, {"uid-web-lb-2": before}) == [("web-lb-2", before)]
    assert marks(found, {"uid-web-lb-2": before + timedelta(seconds=1)}) == []
    assert marks(found, {}) == []


def test_a_short_grace_time_does_not_wait_for_that() -> None:
    second = NOW - timedelta(seconds=1)
    assert marks(look(grown(idle=None)), {"uid-web-lb-2": second}, timedelta(seconds=4)) == [("web-lb-2", second)]


def test_what_is_written_down_already_stays_as_it_is() -> None:
    """A restart sees the block idle from now on, and must not begin the wait anew."""
    assert marks(look(grown(idle=400)), {"uid-web-lb-2": NOW - timedelta(seconds=9)}) == []


def test_a_block_that_is_used_again_is_idle_no_more() -> None:
    assert marks(look(grown(idle=400), services=[service("a", GROWN)]), {}) == [("web-lb-2", None)]
    assert marks(look(grown(idle=None), services=[service("a", GROWN)]), {}) == []


def test_nothing_is_written_about_blocks_that_never_go() -> None:
    assert marks(look(lb()), {"uid-web-lb": NOW - GRACE}) == []


def test_a_block_is_idle_from_the_first_look_that_saw_it_so() -> None:
    idle = still_idle(look(grown(idle=None)), {}, NOW)
    idle = still_idle(look(grown(idle=None)), idle, NOW + timedelta(seconds=7))
    assert idle == {"uid-web-lb-2": NOW}
    idle = still_idle(look(grown(idle=None), services=[service("a", GROWN)]), idle, NOW)
    assert idle == {}
    idle = still_idle(look(grown(idle=None)), idle, NOW + timedelta(seconds=9))
    assert idle == {"uid-web-lb-2": NOW + timedelta(seconds=9)}


# When the clock has something to say.


def test_the_clock_is_waited_for_until_a_block_may_go() -> None:
    assert when_idle_changes(look(grown(idle=LONG - 7)), {}, NOW, GRACE) == NOW + timedelta(seconds=7)


def test_the_clock_is_waited_for_until_idleness_is_worth_a_word() -> None:
    seen = {"uid-web-lb-2": NOW - timedelta(seconds=2)}
    assert when_idle_changes(look(grown(idle=None)), seen, NOW, GRACE) == NOW + timedelta(seconds=3)
    assert when_idle_changes(look(grown(idle=None)), {"uid-web-lb-2": NOW - GRACE}, NOW, GRACE) == NOW


def test_the_clock_alone_changes_nothing_else() -> None:
    assert when_idle_changes(look(lb()), {}, NOW, GRACE) is None
    assert when_idle_changes(look(grown(idle=1), services=[service("a", GROWN)]), {}, NOW, GRACE) is None
    assert when_idle_changes(look(grown(idle=LONG)), {}, NOW, GRACE) is None, "no busy loop about one that has to stay"
