"""Large requests may be passed by smaller ones, unless the pool keeps its space for the oldest after a while."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.rules.allocation.release import DELETED_BY_REQUEST, released
from butler.rules.pool.outcomes import granted, refused
from unit.controllers.networkpool.values import NOW, allocation, grants, intent, planned, pool, reasons

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocationStatus

HOUR = 3600


def keeping(minutes: int | None, *windows: str) -> object:
    found = pool(*(windows or ("10.0.0.1-10.0.0.16",)))
    return msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, keep_for_oldest_after_minutes=minutes)
    )


def waiting(status: IPAllocationStatus) -> str | None:
    found = find_condition(status.conditions, ConditionType.WAITING)
    return found.message if found else None


HELD = allocation("held", 8, holds="10.0.0.1-10.0.0.8")


def test_by_default_what_fits_now_never_waits_for_what_does_not() -> None:
    made = planned(keeping(None), HELD, allocation("large", 16, age=9 * HOUR), allocation("small", 2))  # type: ignore[arg-type]
    assert (set(grants(made)), reasons(made)) == ({"small"}, {"large": "PoolExhausted"})
    assert made.next_refusal is None


def test_after_the_stated_time_space_is_kept_for_the_oldest() -> None:
    made = planned(keeping(30), HELD, allocation("large", 16, age=31 * 60), allocation("small", 2))  # type: ignore[arg-type]
    assert (grants(made), reasons(made)) == ({}, {"large": "PoolExhausted", "small": "KeptForOlder"})
    assert made.refusals[1].message == (
        "needs 2 contiguous addresses; vlan40 keeps what is free for large, which has waited longer than"
        " spec.keepForOldestAfterMinutes: make room for that one, use another pool, or unset the field"
    )


def test_before_that_it_is_passed_and_the_pool_is_looked_at_again_in_time() -> None:
    made = planned(keeping(30), HELD, allocation("large", 16, age=29 * 60), allocation("small", 2))  # type: ignore[arg-type]
    assert set(grants(made)) == {"small"}
    assert made.next_refusal == pytest.approx(60.0)


def test_the_oldest_gets_it_when_there_is_room() -> None:
    made = planned(keeping(30), allocation("large", 16, age=HOUR), allocation("small", 2))  # type: ignore[arg-type]
    assert (set(grants(made)), reasons(made)) == ({"large"}, {"small": "PoolExhausted"})


def test_who_is_older_still_is_not_held_up() -> None:
    asking = [allocation("older", 2, age=2 * HOUR), allocation("large", 16, age=HOUR)]
    assert set(grants(planned(keeping(30), HELD, *asking))) == {"older"}  # type: ignore[arg-type]


def test_nothing_is_kept_for_what_the_pool_could_never_hold() -> None:
    two = keeping(30, "10.0.0.1-10.0.0.8", "10.0.0.20-10.0.0.27")
    made = planned(two, allocation("large", 9, age=HOUR), allocation("small", 2))  # type: ignore[arg-type]
    assert set(grants(made)) == {"small"}


def test_a_pinned_request_has_its_own_place() -> None:
    made = planned(
        keeping(30),  # type: ignore[arg-type]
        HELD,
        allocation("large", 16, age=HOUR),
        allocation("pinned", None, pinned="10.0.0.15-10.0.0.16"),
    )
    assert set(grants(made)) == {"pinned"}


def test_a_refusal_says_how_often_its_request_was_passed() -> None:
    made = planned(keeping(None), HELD, allocation("large", 16, age=HOUR), allocation("a", 2), allocation("b", 2))  # type: ignore[arg-type]
    (refusal,) = made.refusals
    assert refusal.passed == 2
    first = refused(allocation("large", 16), refusal, None, NOW, passed=2)
    assert first.passed_by == 2
    again = msgspec.structs.replace(allocation("large", 16), status=first)
    assert refused(again, refusal, None, NOW, passed=3).passed_by == 5
    assert refused(again, refusal, None, NOW) == first, "nothing is written where nothing is new"


def test_who_waits_for_room_says_since_when_and_never_for_how_long() -> None:
    """A duration would be new at every look, and written for ever."""
    large = allocation("large", 16, age=HOUR)
    (refusal,) = planned(keeping(None), HELD, large).refusals  # type: ignore[arg-type]
    first = refused(large, refusal, None, NOW)
    asked = f"{large.metadata.creation_timestamp:%Y-%m-%dT%H:%M:%SZ}"
    assert waiting(first) == f"waits for room since {asked}; no younger request has been met before it"
    waits = msgspec.structs.replace(large, status=first)
    assert refused(waits, refusal, None, NOW + timedelta(days=1)) == first, "nothing is written at rest"
    assert waiting(refused(waits, refusal, None, NOW, passed=1)) == (
        f"waits for room since {asked}; 1 younger request was met before it"
    )
    assert waiting(refused(waits, refusal, None, NOW, passed=48)) == (
        f"waits for room since {asked}; 48 younger requests were met before it"
    )


def test_who_is_met_or_gone_or_refused_for_another_reason_waits_no_longer() -> None:
    large = allocation("large", 16, age=HOUR)
    (refusal,) = planned(keeping(None), HELD, large).refusals  # type: ignore[arg-type]
    waits = msgspec.structs.replace(large, status=refused(large, refusal, None, NOW))
    assert waiting(waits.status)
    assert waiting(granted(waits, intent("large", "10.0.0.1-10.0.0.16"), None, NOW)) is None
    assert waiting(released(waits, DELETED_BY_REQUEST, NOW)) is None
    (other,) = planned(pool("10.0.0.1-10.0.0.16"), allocation("large", None, pinned="10.9.0.1-10.9.0.2")).refusals
    assert waiting(refused(waits, other, None, NOW)) is None
