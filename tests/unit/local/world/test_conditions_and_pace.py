"""Conditions keep the time of their last change; stopwatches outlive neither their process nor the truth."""

from __future__ import annotations

from typing import Any

from butler.local.world.conditions import false, is_true, judged, merged, status_change, true
from butler.local.world.pace import Pace, moment, timestamp

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"


def test_a_condition_that_says_the_same_keeps_its_time() -> None:
    obj: dict[str, Any] = {"status": {"conditions": merged({}, [true("Ready"), false("Well", "Ill", "a cold")], NOW)}}
    again = merged(obj, [true("Ready"), false("Well", "Ill", "a fever")], LATER)
    assert [item["lastTransitionTime"] for item in again] == [NOW, LATER]
    assert is_true(obj, "Ready")
    assert not is_true(obj, "Well")
    assert not is_true(obj, "Unknown")


def test_conditions_of_others_are_kept() -> None:
    obj: dict[str, Any] = {"status": {"conditions": [{"type": "Theirs", "status": "True", "lastTransitionTime": NOW}]}}
    assert [item["type"] for item in merged(obj, [true("Ours")], LATER)] == ["Theirs", "Ours"]


def test_judged_says_why_only_when_it_is_not_so() -> None:
    assert judged("Ready", True, "Waits") == {"type": "Ready", "status": "True"}
    assert judged("Ready", False, "Waits")["reason"] == "Waits"


def test_only_what_changes_is_written() -> None:
    obj: dict[str, Any] = {"status": {"phase": "Running", "replicas": 2}}
    assert status_change(obj, {"phase": "Running"}) is None
    assert status_change(obj, {"phase": "Running", "replicas": 3}) == {"status": {"replicas": 3}}
    assert status_change({}, {"ready": True}) == {"status": {"ready": True}}


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_what_begins_here_takes_exactly_its_time() -> None:
    clock = Clock()
    pace = Pace(clock, clock)
    since = timestamp(1000)
    assert pace.remaining("web-1", since, 2.0) == 2.0
    clock.seconds += 1.5
    assert pace.remaining("web-1", since, 2.0) == 0.5
    clock.seconds += 1
    assert pace.remaining("web-1", since, 2.0) == 0.0


def test_after_a_restart_the_object_says_when_it_is_over() -> None:
    clock = Clock()
    clock.seconds = 1004.0
    assert Pace(clock, clock).remaining("web-1", timestamp(1000), 2.0) == 0.0
    assert Pace(clock, clock).remaining("web-1", timestamp(1003), 2.0) == 2.0


def test_what_takes_no_time_is_over_at_once_and_nothing_is_remembered() -> None:
    clock = Clock()
    pace = Pace(clock, clock)
    assert pace.remaining("web-1", None, 0.0) == 0.0
    clock.seconds += 5
    assert pace.remaining("web-1", None, 2.0) == 2.0
    pace.forget("web-1")
    pace.forget("web-1")


def test_times_are_those_of_kubernetes() -> None:
    assert moment("1970-01-01T00:00:10Z") == 10.0
    assert timestamp(10.7) == "1970-01-01T00:00:10Z"
