"""How many addresses were held, as far as the record reaches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from butler.api.ipallocation import IPAllocation
from butler.reports.pool.history import levels, moments, note

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _held(name: str, days: float, last: int, *, released: float | None = None, pool: str = "lab") -> IPAllocation:
    """Granted so many days ago, from 10.0.0.1 to 10.0.0.`last`."""
    status = {
        "phase": "Allocated" if released is None else "Released",
        "startAddress": "10.0.0.1",
        "endAddress": f"10.0.0.{last}",
        "allocatedAt": (NOW - timedelta(days=days)).isoformat(),
    }
    if released is not None:
        status["releasedAt"] = (NOW - timedelta(days=released)).isoformat()
    spec = {
        "poolRef": {"name": pool},
        "tenantClusterRef": {"name": "shop", "namespace": "team"},
        "type": "nodes",
        "count": last,
    }
    return msgspec.convert({"metadata": {"name": name}, "spec": spec, "status": status}, IPAllocation)


def test_the_curve_rises_with_grants_and_falls_with_releases_and_ends_now() -> None:
    found = moments("lab", [_held("one", 3, 5), _held("two", 2, 3, released=1), _held("far", 9, 9, pool="other")], NOW)
    assert [(moment.action, moment.allocation) for moment in found] == [
        ("granted", "one"),
        ("granted", "two"),
        ("released", "two"),
    ]
    assert [level.allocated for level in levels(found, NOW, 500)] == [5, 8, 5, 5]
    assert levels(found, NOW, 500)[-1].at == NOW


def test_what_happened_at_one_moment_is_one_step() -> None:
    found = moments("lab", [_held("one", 1, 5), _held("two", 1, 3)], NOW)
    assert [level.allocated for level in levels(found, NOW, 500)] == [8, 8]


def test_a_grant_of_a_clock_that_is_ahead_was_made_now() -> None:
    found = moments("lab", [_held("one", -1, 5)], NOW)
    assert [(level.at, level.allocated) for level in levels(found, NOW, 500)] == [(NOW, 5)]


def test_of_thousands_of_steps_few_are_shown_and_the_last_one_is_right() -> None:
    found = moments("lab", [_held(f"many-{number}", number / 100, 2) for number in range(1, 3000)], NOW)
    shown = levels(found, NOW, 100)
    assert len(shown) <= 101
    assert shown[-1].allocated == 2 * 2999
    assert [item.at for item in shown] == sorted(level.at for level in shown)


def test_an_empty_record_says_so() -> None:
    assert [level.allocated for level in levels([], NOW, 5)] == [0]
    assert note([]).startswith("Nothing is on record")
