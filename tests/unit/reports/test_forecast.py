"""Forecasts: held against what then happens, and honest where nothing can be said."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import msgspec
import pytest

from butler.api.ipallocation import PinnedIPRange
from butler.api.networkpool import Intent
from butler.ipam.capacity import THRESHOLDS
from butler.reports.forecast.demand_record import read_record
from butler.reports.forecast.forecast import BAND, forecast
from butler.reports.forecast.forecast_json import forecast_json
from unit.reports.histories import NOW, live

HISTORIES = 36
LIVES: dict[str, dict[str, Any]] = {
    "no tenant leaves": {"per_day": 0.4, "past": 30},
    "tenants stay for two months": {"per_day": 0.5, "past": 30, "stays": 60.0},
    "tenants come three at a time": {"per_day": 0.4, "past": 40, "burst": 3},
}


@pytest.mark.parametrize("kind", LIVES)
def test_the_band_holds_the_truth_about_as_often_as_it_says(kind: str) -> None:
    within = asked = 0
    for number in range(HISTORIES):
        history = live(Random(f"{kind} {number}"), future=500, **LIVES[kind])
        estate = history.estate()
        found = forecast(estate.pools[0], estate, NOW, size=8, seed=number, futures=30)
        for mark in found.marks:
            truth = history.above.get(THRESHOLDS[mark.tier]) if mark.tier else history.refused.get(8)
            if truth == 0 or found.problem:
                continue  # nothing had to be foreseen
            asked += 1
            low = mark.low if mark.low is not None else found.horizon
            high = mark.high if mark.high is not None else math.inf
            within += low <= (truth if truth is not None else math.inf) <= high
    assert asked > 2 * HISTORIES
    assert BAND - 17 <= within * 100 / asked <= BAND + 15, f"{within} of {asked}"


def test_the_same_record_gives_the_same_answer() -> None:
    estate = live(Random(3), past=30, future=0).estate()
    assert forecast(estate.pools[0], estate, NOW) == forecast(estate.pools[0], estate, NOW)


def test_larger_blocks_are_refused_first_and_tiers_come_in_order() -> None:
    estate = live(Random(4), past=30, future=0).estate()
    found = forecast(estate.pools[0], estate, NOW)
    for ordered in (
        [mark.median or math.inf for mark in found.marks if mark.tier],
        [mark.median or math.inf for mark in reversed(found.marks) if mark.size],
    ):
        assert ordered == sorted(ordered)
    assert [mark.size for mark in found.marks if mark.size] == [1, 2, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize(
    ("life", "words"),
    [
        ({"past": 3, "per_day": 5}, "arrivals in 3.0 days, and it takes 5 arrivals in 7 days"),
        ({"past": 30, "per_day": 0.001}, "not enough is on record to say: 0 arrivals in 30.0 days"),
    ],
)
def test_too_short_a_record_is_an_answer(life: dict[str, Any], words: str) -> None:
    estate = live(Random(2), future=0, **life).estate()
    found = forecast(estate.pools[0], estate, NOW)
    assert words in found.problem
    assert all(mark.is_now for mark in found.marks), "only what is so already"
    assert forecast_json(found)["tiers"] == [tier for tier in forecast_json(found)["tiers"] if tier["now"]]


def test_what_is_so_already_is_now() -> None:
    estate = live(Random(5), past=30, per_day=1.5, future=0).estate()
    found = forecast(estate.pools[0], estate, NOW, size=200)
    assert found.marks[-1].size == 200
    assert found.marks[-1].is_now


def test_blocks_that_a_tenant_got_together_are_one_arrival_and_pinned_ones_none() -> None:
    history = live(Random(6), past=30, per_day=1, sizes=((5, 8),), future=0, cidr="10.40.0.0/22")
    estate = history.estate()
    record = read_record(history.pool, estate.allocations, NOW)
    tenants = {lived.tenant for lived in history.lived if lived.comes <= 0}
    assert (len(record.arrivals), record.pinned) == (len(tenants), 0)
    assert all(arrival.sizes == (5, 8) for arrival in record.arrivals)
    pin = PinnedIPRange(start_address="10.40.0.1", end_address="10.40.0.1")
    pinned = [
        msgspec.structs.replace(allocation, spec=msgspec.structs.replace(allocation.spec, pinned_range=pin))
        for allocation in estate.allocations
    ]
    record = read_record(history.pool, pinned, NOW)
    assert (len(record.arrivals), record.pinned, len(record.held)) == (0, len(pinned), len(tenants))


def test_releases_count_as_long_as_they_are_on_record() -> None:
    history = live(Random(7), past=30, per_day=2, stays=10.0, future=0)
    record = read_record(history.pool, history.estate().allocations, NOW)
    gone = {lived.tenant for lived in history.lived if lived.comes <= 0 and -1 < lived.leaves <= 0}
    assert record.left == len(gone) > 0
    assert record.release_days == 1.0


def test_a_pool_that_makes_no_sense_says_so() -> None:
    estate = live(Random(8), future=0).estate()
    broken = msgspec.structs.replace(estate.pools[0], spec=msgspec.structs.replace(estate.pools[0].spec, cidr="x"))
    assert "hands out nothing: spec.cidr" in forecast(broken, estate, NOW).problem


def test_a_grant_to_an_allocation_that_is_gone_takes_nothing() -> None:
    estate = live(Random(9), past=30, per_day=0.2, future=0).estate()
    gone = Intent(uid="gone", name="gone", start_address="10.40.0.0", end_address="10.40.0.255")
    status = msgspec.structs.replace(estate.pools[0].status, intents=(gone,))
    assert forecast(msgspec.structs.replace(estate.pools[0], status=status), estate, NOW) == forecast(
        estate.pools[0], estate, NOW
    )
