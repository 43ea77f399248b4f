"""What Prometheus sees of pools and requests, and that it sees nothing of those that are gone."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from butler.api.meta import Condition, ConditionStatus
from butler.api.networkpool import NetworkPoolStatus
from butler.api.objects import Key
from butler.controllers.networkpool.metrics import _REMEMBERED, Inconsistency, IpamMetrics, Result, Step, Sweep
from butler.rules.allocation.release import Why

if TYPE_CHECKING:
    from collections.abc import Callable

POOL = Key("butler-system", "vlan40-pool")
OTHER = Key("butler-system", "rack-12")
NAMESAKE = Key("elsewhere", "vlan40-pool")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Page:
    """A registry as a scrape would see it, without the times of creation."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.now = 1000.0
        self.metrics = IpamMetrics(self.registry, now=lambda: self.now)

    def series(self, **labels: str) -> dict[tuple[str, ...], float]:
        """All series with these labels, as (name, *other label values)."""
        return {
            (sample.name, *(value for name, value in sorted(sample.labels.items()) if name not in labels)): sample.value
            for family in self.registry.collect()
            for sample in family.samples
            if labels.items() <= sample.labels.items() and not sample.name.endswith("_created")
        }

    def of(self, key: Key) -> dict[tuple[str, ...], float]:
        return self.series(pool=key.name, namespace=key.namespace)


@pytest.fixture
def page() -> Page:
    return Page()


def ready(status: bool, reason: str) -> Condition:
    state = ConditionStatus.TRUE if status else ConditionStatus.FALSE
    return Condition(type="Ready", status=state, reason=reason, message="", last_transition_time=NOON)


def a_status(**changes: object) -> NetworkPoolStatus:
    figures: dict[str, object] = {
        "total_ips": 32,
        "allocated_ips": 28,
        "available_ips": 4,
        "allocation_count": 14,
        "fragmentation_percent": 50,
        "largest_free_block": 2,
        "conditions": (ready(True, "Ready"),),
    }
    return NetworkPoolStatus(**(figures | changes))  # type: ignore[arg-type]


def everything_about(page: Page, key: Key) -> None:
    page.metrics.pool_status(key, a_status())
    page.metrics.waiting(key, 1, {"PoolExhausted": 2})
    for tell in late_news(page, key):
        tell()


def late_news(page: Page, key: Key) -> list[Callable[[], None]]:
    """All that work under way may still report about a pool that is gone."""
    metrics = page.metrics
    return [
        lambda: metrics.processed(key, "success"),
        lambda: metrics.granted(key, 0.02),
        lambda: metrics.granted(key, 90.0, refused_before=True),
        lambda: metrics.batch(key, 3),
        lambda: metrics.conflict(key, "reserve"),
        lambda: metrics.unknown_outcome(key, "commit"),
        lambda: metrics.reclaimed(key, 8, "deleted"),
        lambda: metrics.inconsistent(key, "overlap"),
    ]


# Pools.


def test_a_pool_shows_the_figures_of_its_status(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    shown = page.of(POOL)
    assert shown["butler_network_pool_total_ips",] == 32
    assert shown["butler_network_pool_allocated_ips",] == 28
    assert shown["butler_network_pool_available_ips",] == 4
    assert shown["butler_network_pool_allocation_count",] == 14
    assert shown["butler_network_pool_fragmentation_percent",] == 50
    assert shown["butler_network_pool_largest_free_block",] == 2
    assert shown["butler_network_pool_utilization_ratio",] == 0.875
    assert shown["butler_network_pool_ready", "Ready"] == 1


def test_an_empty_pool_is_not_full(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status(total_ips=0, allocated_ips=0, available_ips=0))
    assert page.of(POOL)["butler_network_pool_utilization_ratio",] == 0


def test_a_figure_that_is_no_longer_known_is_not_shown(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    page.metrics.pool_status(POOL, NetworkPoolStatus())
    gauges = {series[0] for series in page.of(POOL) if series[0].startswith("butler_network_pool_")}
    assert gauges == set()


def test_a_pool_has_one_reason_at_a_time_for_being_ready_or_not(page: Page) -> None:
    for status, reason in ((True, "Ready"), (False, "Overlap"), (False, "Overlap"), (False, "Deleting")):
        page.metrics.pool_status(POOL, a_status(conditions=(ready(status, reason),)))
        shown = {series: value for series, value in page.of(POOL).items() if series[0] == "butler_network_pool_ready"}
        assert shown == {("butler_network_pool_ready", reason): float(status)}


def test_the_counters_of_a_pool_start_at_zero(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    shown = page.of(POOL)
    for name, values in (
        ("butler_ip_allocation_processed_total", get_args(Result)),
        ("butler_ipam_write_conflicts_total", get_args(Step)),
        ("butler_ipam_unknown_outcomes_total", get_args(Step)),
        ("butler_ip_allocation_reclaimed_ips_total", get_args(Why)),
        ("butler_ipam_inconsistencies_total", get_args(Inconsistency)),
    ):
        assert {series[1]: value for series, value in shown.items() if series[0] == name} == dict.fromkeys(values, 0.0)


def test_a_later_status_does_not_set_counters_back(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    page.metrics.processed(POOL, "success")
    page.metrics.pool_status(POOL, a_status(allocated_ips=30))
    assert page.of(POOL)["butler_ip_allocation_processed_total", "success"] == 1


def test_counts_that_come_before_the_first_status_are_kept(page: Page) -> None:
    page.metrics.conflict(POOL, "reserve")
    page.metrics.pool_status(POOL, a_status())
    assert page.of(POOL)["butler_ipam_write_conflicts_total", "reserve"] == 1


# Series vanish.


def test_all_series_of_a_pool_vanish_with_it(page: Page) -> None:
    everything_about(page, POOL)
    everything_about(page, OTHER)
    everything_about(page, NAMESAKE)
    others = page.of(OTHER)
    page.metrics.pool_gone(POOL)
    assert page.of(POOL) == {}
    assert page.of(OTHER) == page.of(NAMESAKE) == others


def test_a_pool_that_goes_costs_no_look_at_the_series_of_others(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object) -> None:
        pytest.fail("the library searches all series")

    monkeypatch.setattr(MetricWrapperBase, "remove_by_labels", search)
    everything_about(page, POOL)
    page.metrics.pool_gone(POOL)
    assert page.of(POOL) == {}


def test_every_metric_that_is_labelled_with_a_pool_takes_part(page: Page) -> None:
    everything_about(page, POOL)
    labelled = {family.name for family in page.registry.collect() for s in family.samples if "pool" in s.labels}
    plain = {"butler_ipam_orphan_sweeps", "butler_ipam_orphans_suspected", "butler_ipam_last_sweep_timestamp_seconds"}
    assert labelled == {family.name for family in page.registry.collect()} - plain
    page.metrics.pool_gone(POOL)
    assert page.series(namespace=POOL.namespace) == {}


def test_what_is_still_under_way_does_not_bring_a_gone_pool_back(page: Page) -> None:
    everything_about(page, POOL)
    page.metrics.pool_gone(POOL)
    for tell in late_news(page, POOL):
        tell()
        assert page.of(POOL) == {}


def test_a_new_pool_of_the_same_name_starts_anew(page: Page) -> None:
    everything_about(page, POOL)
    page.metrics.pool_gone(POOL)
    page.metrics.pool_status(POOL, a_status())
    page.metrics.processed(POOL, "success")
    assert page.of(POOL)["butler_ip_allocation_processed_total", "success"] == 1
    assert page.of(POOL)["butler_network_pool_ready", "Ready"] == 1


def test_what_becomes_of_requests_counts_as_soon_as_a_pool_is_found(page: Page) -> None:
    page.metrics.pool_gone(POOL)
    page.metrics.pool_found(POOL)
    assert page.of(POOL)["butler_ip_allocation_processed_total", "success"] == 0
    page.metrics.processed(POOL, "success")
    page.metrics.batch(POOL, 3)
    page.metrics.pool_status(POOL, a_status())
    assert page.of(POOL)["butler_ip_allocation_processed_total", "success"] == 1
    assert page.of(POOL)["butler_ip_allocation_batch_size_sum",] == 3
    page.metrics.pool_gone(POOL)
    assert page.of(POOL) == {}


def test_pools_that_never_were_are_not_remembered_without_bound(page: Page) -> None:
    for number in range(_REMEMBERED + 100):
        page.metrics.pool_gone(Key("butler-system", f"typo-{number}"))
    assert len(page.metrics._gone) == _REMEMBERED


def test_who_no_longer_leads_shows_no_pools(page: Page) -> None:
    everything_about(page, POOL)
    everything_about(page, OTHER)
    page.metrics.swept("orphans", suspected=3)
    page.metrics.stood_down()
    assert page.of(POOL) == page.of(OTHER) == {}
    assert page.series()["butler_ipam_orphans_suspected",] == 0
    assert page.series()["butler_ipam_orphan_sweeps_total", "orphans"] == 1


def test_who_leads_again_shows_pools_again(page: Page) -> None:
    everything_about(page, POOL)
    page.metrics.stood_down()
    everything_about(page, POOL)
    assert page.of(POOL)["butler_ip_allocation_processed_total", "success"] == 1
    assert page.of(POOL)["butler_ip_allocations_waiting", "Failed", "PoolExhausted"] == 2


# Requests.


def waiting(page: Page, key: Key) -> dict[tuple[str, ...], float]:
    return {series[1:]: value for series, value in page.of(key).items() if series[0] == "butler_ip_allocations_waiting"}


def test_those_who_wait_are_shown_by_phase_and_reason(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    page.metrics.waiting(POOL, 3, {"PoolExhausted": 2, "InvalidRequest": 1})
    assert waiting(page, POOL) == {("Pending", ""): 3, ("Failed", "PoolExhausted"): 2, ("Failed", "InvalidRequest"): 1}


def test_a_reason_that_no_request_fails_for_any_more_is_not_shown(page: Page) -> None:
    page.metrics.pool_status(POOL, a_status())
    page.metrics.waiting(POOL, 0, {"PoolExhausted": 2, "InvalidRequest": 1})
    page.metrics.waiting(POOL, 0, {"PoolFragmented": 1, "InvalidRequest": 0})
    assert waiting(page, POOL) == {("Pending", ""): 0, ("Failed", "PoolFragmented"): 1}
    page.metrics.waiting(POOL, 0, {})
    assert waiting(page, POOL) == {("Pending", ""): 0}


def test_requests_for_a_pool_that_does_not_exist_are_shown_until_they_go(page: Page) -> None:
    page.metrics.pool_gone(POOL)
    page.metrics.waiting(POOL, 0, {"PoolNotFound": 4})
    assert waiting(page, POOL) == {("Failed", "PoolNotFound"): 4}
    page.metrics.waiting(POOL, 0, {})
    assert page.of(POOL) == {}


def test_a_grant_after_a_refusal_is_told_apart_from_a_direct_one(page: Page) -> None:
    page.metrics.granted(POOL, 0.02)
    page.metrics.granted(POOL, 7200.0, refused_before=True)
    shown = page.of(POOL)
    assert shown["butler_ip_allocation_seconds_count", "direct"] == 1
    assert shown["butler_ip_allocation_seconds_sum", "direct"] == 0.02
    assert shown["butler_ip_allocation_seconds_sum", "retried"] == 7200


def test_the_buckets_reach_from_5_ms_to_a_minute(page: Page) -> None:
    page.metrics.granted(POOL, 0.004)
    page.metrics.granted(POOL, 45.0)
    buckets = {
        series[1]: n for series, n in page.of(POOL).items() if series[0] == "butler_ip_allocation_seconds_bucket"
    }
    assert buckets["0.005"] == 1
    assert (buckets["30.0"], buckets["60.0"], buckets["+Inf"]) == (1, 2, 2)


def test_a_clock_that_ran_backwards_counts_as_no_time(page: Page) -> None:
    page.metrics.granted(POOL, -3.0)
    assert page.of(POOL)["butler_ip_allocation_seconds_sum", "direct"] == 0


def test_batches_and_reclaimed_addresses_add_up(page: Page) -> None:
    page.metrics.batch(POOL, 512)
    page.metrics.batch(POOL, 1)
    page.metrics.reclaimed(POOL, 8, "deleted")
    page.metrics.reclaimed(POOL, 5, "deleted")
    shown = page.of(POOL)
    assert shown["butler_ip_allocation_batch_size_sum",] == 513
    assert shown["butler_ip_allocation_batch_size_bucket", "512.0"] == 2
    assert shown["butler_ip_allocation_reclaimed_ips_total", "deleted"] == 13


# The sweep.


def test_a_sweep_with_a_result_moves_the_time_of_the_last_one(page: Page) -> None:
    page.metrics.swept("clean", suspected=0)
    page.now = 1060.0
    page.metrics.swept("orphans", suspected=2)
    shown = page.series()
    assert shown["butler_ipam_last_sweep_timestamp_seconds",] == 1060
    assert shown["butler_ipam_orphans_suspected",] == 2


def test_a_skipped_sweep_is_counted_and_leaves_the_rest_as_it_was(page: Page) -> None:
    page.metrics.swept("orphans", suspected=2)
    page.now = 1060.0
    page.metrics.swept("skipped")
    shown = page.series()
    assert shown["butler_ipam_last_sweep_timestamp_seconds",] == 1000
    assert shown["butler_ipam_orphans_suspected",] == 2
    assert {outcome: shown["butler_ipam_orphan_sweeps_total", outcome] for outcome in get_args(Sweep)} == {
        "clean": 0,
        "orphans": 1,
        "skipped": 1,
    }


def test_before_the_first_sweep_its_time_is_zero(page: Page) -> None:
    assert page.series()["butler_ipam_last_sweep_timestamp_seconds",] == 0
