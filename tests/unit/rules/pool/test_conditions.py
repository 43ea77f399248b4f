"""What a pool says about how full it is, and when it says so in an event."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
import pytest

from butler.api.conditions import find_condition
from butler.api.labels import PoolReason
from butler.api.networkpool import CapacityTier, NetworkPoolStatus
from butler.ipam.capacity import Capacity
from butler.rules.pool.conditions import NotHandingOut, names, with_capacity, with_readiness
from unit.controllers.networkpool.values import NOW, notice

MINUTE = timedelta(minutes=1)
WARNING, CRITICAL, EXHAUSTED = CapacityTier
EMPTY = NetworkPoolStatus()


def filled(allocated: int, total: int = 200) -> Capacity:
    return Capacity(total=total, allocated=allocated, largest_free_block=total - allocated, fragmentation_percent=0)


def told(
    status: NetworkPoolStatus, capacity: Capacity | None, now: datetime = NOW
) -> tuple[NetworkPoolStatus, list[str]]:
    after, notices, _ = with_capacity(status, capacity, now)
    return after, [item.reason for item in notices]


def tiers_of(status: NetworkPoolStatus) -> str:
    """The three conditions as the letters of those that hold."""
    found = {tier: find_condition(status.conditions, tier) for tier in CapacityTier}
    assert all(found.values()), "all three are always there"
    return "".join(tier[8] for tier, condition in found.items() if condition and condition.status == "True")


@pytest.mark.parametrize(
    ("allocated", "total", "tiers", "shown"),
    [
        (0, 200, "", "0%"),
        (100, 200, "", "50%"),
        (139, 200, "", "69%"),
        (140, 200, "W", "70%"),
        (160, 200, "W", "80%"),
        (169, 200, "W", "84%"),
        (170, 200, "WC", "85%"),
        (189, 200, "WC", "94%"),
        (190, 200, "WCE", "95%"),
        (200, 200, "WCE", "100%"),
        (28, 32, "WC", "87%"),
        (699, 1000, "", "69%"),
        (2, 3, "", "66%"),
        (0, 0, "", "0%"),
    ],
)
def test_a_tier_holds_at_or_above_its_threshold_and_the_figure_is_rounded_down(
    allocated: int, total: int, tiers: str, shown: str
) -> None:
    status, _ = told(EMPTY, filled(allocated, total))
    assert tiers_of(status) == tiers
    for condition in status.conditions:
        assert condition.message.startswith(f"{shown} of {total} addresses are allocated, ")
        holds = condition.status == "True"
        assert condition.reason == f"Utilization{'Above' if holds else 'Below'}Threshold"


def test_a_pool_that_cannot_be_read_shows_all_three_as_false_and_tells_nothing() -> None:
    full, _ = told(EMPTY, filled(200))
    status, events = told(full, None)
    assert tiers_of(status) == ""
    assert events == []
    assert status.capacity_notices == full.capacity_notices, "it does not forget what it told"
    assert told(status, filled(200))[1] == [], "nor does it say it again when it can be read again"


def test_each_crossing_is_told_once_per_tier() -> None:
    status, events = told(EMPTY, filled(100))
    assert events == []
    status, events = told(status, filled(150))
    assert events == ["PoolCapacityWarning"]
    status, events = told(status, filled(151))
    assert events == []
    status, events = told(status, filled(200))
    assert events == ["PoolCapacityCritical", "PoolCapacityExhausted"]


def test_the_event_says_the_figures_and_what_to_do() -> None:
    _, notices, _ = with_capacity(EMPTY, filled(28, 32), NOW)
    assert [(item.reason, item.type) for item in notices] == [
        ("PoolCapacityWarning", "Warning"),
        ("PoolCapacityCritical", "Warning"),
    ]
    assert notices[0].message == ("87% allocated (28 of 32 addresses), at or above 70%: plan an expansion of the pool")


def test_recovery_is_told_for_each_tier_that_was_told() -> None:
    full, _ = told(EMPTY, filled(200))
    after, notices, _ = with_capacity(full, filled(100), NOW + 11 * MINUTE)
    assert [(item.reason, item.type) for item in notices] == [("PoolCapacityRecovered", "Normal")] * 3
    assert notices[2].message == "50% allocated (100 of 200 addresses), back below 95% (CapacityExhausted)"
    assert told(after, filled(100), NOW + 30 * MINUTE)[1] == [], "and only once"


def test_a_pool_that_was_never_full_has_nothing_to_recover_from() -> None:
    assert told(EMPTY, filled(10))[1] == []


@pytest.mark.parametrize(
    ("story", "tier", "above", "ago", "allocated", "events", "wait"),
    [
        ("told a minute ago, down now", WARNING, True, MINUTE, 100, ["PoolCapacityRecovered"], None),
        ("told just now, down now", WARNING, True, 0 * MINUTE, 100, ["PoolCapacityRecovered"], None),
        ("told ten minutes ago, down now", WARNING, True, 10 * MINUTE, 100, ["PoolCapacityRecovered"], None),
        ("told eleven minutes ago, down now", WARNING, True, 11 * MINUTE, 100, ["PoolCapacityRecovered"], None),
        ("recovered a minute ago, up for the first time", WARNING, False, MINUTE, 150, ["PoolCapacityWarning"], None),
        ("recovered long ago, up again", WARNING, False, 60 * MINUTE, 150, ["PoolCapacityWarning"], None),
        ("told a minute ago and still so", WARNING, True, MINUTE, 150, [], None),
        ("another tier was told a minute ago", WARNING, True, MINUTE, 170, ["PoolCapacityCritical"], None),
        ("told by a clock that was set back", WARNING, True, -5 * MINUTE, 100, ["PoolCapacityRecovered"], None),
        ("told in the far future", WARNING, True, -5000 * MINUTE, 100, ["PoolCapacityRecovered"], None),
    ],
)  # fmt: skip
def test_a_tier_is_spoken_of_from_what_is_stored_alone(
    story: str, tier: str, above: bool, ago: timedelta, allocated: int, events: list[str], wait: float | None
) -> None:
    """There is nothing but the status to go by, so a restart makes no difference."""
    before = NetworkPoolStatus(capacity_notices=(notice(tier, above=above, ago=ago),))
    after, notices, next_notice = with_capacity(before, filled(allocated), NOW)
    assert [item.reason for item in notices] == events, story
    assert next_notice == wait, story
    if not events:
        assert after.capacity_notices == before.capacity_notices, "what was not told is not stored as told"


def test_a_recovery_is_told_at_once() -> None:
    full, _ = told(EMPTY, filled(200))
    down, events = told(full, filled(0), NOW)
    assert events == ["PoolCapacityRecovered"] * 3
    assert told(down, filled(0), NOW)[1] == [], "and only once, also in the same second"


def test_what_was_held_back_is_told_when_its_time_has_come_unless_it_is_over() -> None:
    full, _ = told(EMPTY, filled(200))
    down, _ = told(full, filled(0), NOW + MINUTE)
    again, notices, wait = with_capacity(down, filled(200), NOW + 2 * MINUTE)
    assert (notices, wait) == ((), 480.0)
    assert tiers_of(again) == tiers_of(full), "conditions do not wait"
    assert len(told(again, filled(200), NOW + 10 * MINUTE)[1]) == 3
    assert told(again, filled(0), NOW + 10 * MINUTE)[1] == [], "down again: nothing changed since it was told"
    _, notices, wait = with_capacity(told(again, filled(200), NOW + 10 * MINUTE)[0], filled(0), NOW + 10.5 * MINUTE)
    assert (notices, wait) == ((), 30.0), "one a direction"


def test_at_any_pace_of_filling_and_emptying_a_direction_is_spoken_of_once_in_ten_minutes() -> None:
    status: NetworkPoolStatus = EMPTY
    spoken: defaultdict[str, list[int]] = defaultdict(list)
    for second in range(0, 7200, 10):
        status, notices, _ = with_capacity(
            status, filled(200 if second // 10 % 2 else 0), NOW + timedelta(seconds=second)
        )
        # As from the server: a restart at every step.
        status = msgspec.json.decode(msgspec.json.encode(status), type=NetworkPoolStatus)
        for item in notices:
            spoken[item.reason] += [second] if "Exhausted" in item.reason + item.message else []
    assert set(spoken) >= {"PoolCapacityExhausted", "PoolCapacityRecovered"}
    for seconds in (spoken["PoolCapacityExhausted"], spoken["PoolCapacityRecovered"]):
        assert len(seconds) > 2
        assert all(later - earlier >= 600 for earlier, later in pairwise(seconds))


# Ready.


def test_a_ready_pool_says_how_much_it_has() -> None:
    status = with_readiness(NetworkPoolStatus(allocation_count=1), filled(5, 32), None, (), (), NOW)
    ready = find_condition(status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("True", "Ready")
    assert ready.message == "27 of 32 addresses available, 1 allocation"


def test_a_ready_pool_names_those_whose_addresses_it_no_longer_hands_out() -> None:
    status = with_readiness(
        NetworkPoolStatus(allocation_count=9), filled(5, 32), None, ["a", "b", "c", "d", "e"], (), NOW
    )
    message = status.conditions[0].message
    assert message.endswith("; outside what the pool hands out now, but still held: a, b, c and 2 more")


def test_an_obstacle_is_what_ready_says_whatever_is_free() -> None:
    why = NotHandingOut(PoolReason.OVERLAP, "10.0.0.0/24 overlaps NetworkPool x")
    status = with_readiness(EMPTY, filled(0), why, (), (), NOW)
    assert (status.conditions[0].status, status.conditions[0].reason) == ("False", "Overlap")
    assert status.conditions[0].message == why.message


def test_the_time_of_a_condition_moves_only_with_its_truth() -> None:
    first, _ = told(EMPTY, filled(150))
    second, _ = told(first, filled(151), NOW + MINUTE)
    third, _ = told(second, filled(0), NOW + 2 * MINUTE)
    times = [
        find_condition(network_pool_status.conditions, WARNING).last_transition_time
        for network_pool_status in (first, second, third)
    ]  # type: ignore[union-attr]
    assert times == [NOW, NOW, NOW + 2 * MINUTE]


def test_a_few_names_are_spelled_out_and_the_rest_is_counted() -> None:
    assert names(["a"]) == "a"
    assert names(["a", "b", "c"]) == "a, b, c"
    assert names(["a", "b", "c", "d"]) == "a, b, c and 1 more"
