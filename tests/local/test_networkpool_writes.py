"""What the allocator costs the server: about one write per allocation, none at rest; and what Prometheus sees."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from ipam_operator import ALLOCATIONS, POOLS, Desk, Json, RunningOperator, fresh_desk
from local.older_definition import older_definition, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

MANY = 200
AT_REST = 3.0
"""Seconds to watch for writes: longer than carried out intents may stay."""


@pytest.fixture
def desk(control_plane: ControlPlane, definitions: None) -> Iterator[Desk]:
    with fresh_desk(control_plane) as found:
        yield found


def ask_for_many(desk: Desk, stem: str = "a", number: int = MANY) -> None:
    with ThreadPoolExecutor(8) as hands:
        list(hands.map(lambda index: desk.ask(f"{stem}-{index:03}", 2), range(number)))


def allocations(desk: Desk) -> list[Json]:
    return list(desk.send("GET", desk.path(ALLOCATIONS))[1]["items"])


def all_granted(desk: Desk, number: int) -> list[Json]:
    def look() -> list[Json] | None:
        found = allocations(desk)
        done = [obj for obj in found if obj["status"]["phase"] == "Allocated"]
        return done if len(done) == number else None

    return list(desk.until(look, f"all {number} are granted"))


def insist_no_overlap(granted: list[Json]) -> None:
    held = [address for obj in granted for address in obj["status"]["addresses"]]
    assert len(held) == len(set(held)), "an address was granted twice"


def tidied(desk: Desk) -> None:
    """All intents are forgotten and all grants counted: between these two, on a slow machine, lies a write."""

    def look() -> bool:
        status = desk.status(POOLS, "pool")
        granted = [allocation for allocation in allocations(desk) if allocation["status"]["phase"] == "Allocated"]
        return not status.get("intents") and status.get("allocationCount") == len(granted)

    desk.until(look, "what was carried out is forgotten and counted")


def writes_at_rest(operator: RunningOperator) -> int:
    before = operator.writes()
    time.sleep(AT_REST)
    return operator.writes() - before


def test_requests_that_wait_cost_one_write_each_and_then_nothing(control_plane: ControlPlane, desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/16")
    ask_for_many(desk)
    with RunningOperator(control_plane, desk.namespace) as operator:
        granted = all_granted(desk, MANY)
        insist_no_overlap(granted)
        tidied(desk)
        assert writes_at_rest(operator) == 0
        assert operator.writes(ALLOCATIONS) == MANY, "one commit each, and not one more"
        assert operator.writes() <= 1.1 * MANY, operator.requests
        desk.counted("pool", allocatedIPs=2 * MANY, allocationCount=MANY, intents=None)


def test_requests_that_come_in_a_burst_share_their_reserves(control_plane: ControlPlane, desk: Desk) -> None:
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.pool("pool", "10.1.0.0/16")
        desk.ready("pool")
        ask_for_many(desk)
        insist_no_overlap(all_granted(desk, MANY))
        tidied(desk)
        assert operator.writes(ALLOCATIONS) == MANY
        assert operator.writes(POOLS) < MANY / 2, f"reserves are shared: {operator.requests}"


def test_a_restart_writes_nothing(control_plane: ControlPlane, desk: Desk) -> None:
    def versions() -> list[str]:
        found = [*allocations(desk), *desk.send("GET", desk.path(POOLS))[1]["items"]]
        return [item["metadata"]["resourceVersion"] for item in found]

    desk.pool("pool", "10.1.0.0/16")
    ask_for_many(desk, number=20)
    desk.ask("refused", 65536)
    desk.ask("lost", 1, of="no-such-pool")
    with RunningOperator(control_plane, desk.namespace):
        all_granted(desk, 20)
        desk.failed("refused", "PoolExhausted")
        desk.failed("lost", "PoolNotFound")
        tidied(desk)
    before = versions()
    with RunningOperator(control_plane, desk.namespace) as second:
        desk.until(lambda: second.series("pool"), "it has looked at the pool")
        assert writes_at_rest(second) == 0
    assert versions() == before


def test_releases_cost_two_writes_each_and_few_of_the_pool(control_plane: ControlPlane, desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/16")
    ask_for_many(desk, number=50)
    with RunningOperator(control_plane, desk.namespace) as operator:
        all_granted(desk, 50)
        tidied(desk)
        before, reserves = operator.writes(ALLOCATIONS), operator.writes(POOLS)
        assert desk.send("DELETE", desk.path(ALLOCATIONS))[0] == 200
        desk.until(lambda: not allocations(desk), "all are gone")
        assert operator.writes(ALLOCATIONS) - before <= 2 * 50 * 1.1, "Released, then the finalizer"
        assert operator.writes(POOLS) - reserves < 50
        desk.counted("pool", allocatedIPs=0, allocationCount=0, fragmentationPercent=0)


def test_a_refusal_is_not_rewritten_with_every_change_of_its_figures(control_plane: ControlPlane, desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.99")
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.ask("wide", 90)
        desk.granted("wide")
        desk.ask("refused", 50)
        desk.failed("refused", "PoolExhausted")
        for index in range(10):
            desk.ask(f"small-{index}", 1)
            desk.granted(f"small-{index}")
        tidied(desk)
        assert operator.writes(ALLOCATIONS) == 1 + 1 + 10, "wide, refused (once), and each of the small ones"
        assert desk.failed("refused", "PoolExhausted").startswith("needs 50 contiguous addresses; pool has 10 of 100")


# Metrics.


def test_the_series_of_a_pool_appear_with_it_and_vanish_with_it(control_plane: ControlPlane, desk: Desk) -> None:
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.31")
        desk.ask("a", 8)
        desk.granted("a")
        desk.ask("wide", 32)
        desk.failed("wide", "PoolExhausted")
        waiting = "butler_ip_allocations_waiting"

        def shows(**wanted: float) -> Any:
            series = operator.series("pool")
            return all(series.get(name.replace("__", " ")) == value for name, value in wanted.items())

        desk.until(
            lambda: shows(
                butler_network_pool_total_ips=32,
                butler_network_pool_allocated_ips=8,
                butler_network_pool_available_ips=24,
                butler_network_pool_allocation_count=1,
                butler_network_pool_largest_free_block=24,
                butler_network_pool_fragmentation_percent=0,
                butler_network_pool_utilization_ratio=0.25,
                butler_network_pool_ready__Ready=1,
                butler_ip_allocation_processed_total__success=1,
                butler_ip_allocation_processed_total__failed=1,
                butler_ip_allocation_seconds_count__direct=1,
                butler_ip_allocation_batch_size_sum=8 / 8,
                butler_ip_allocations_waiting__Failed__PoolExhausted=1,
            ),
            "the pool's series",
        )
        desk.delete(ALLOCATIONS, "a")
        desk.granted("wide")
        desk.until(
            lambda: (
                shows(
                    butler_network_pool_allocated_ips=32,
                    butler_ip_allocation_reclaimed_ips_total__deleted=8,
                    butler_ip_allocation_seconds_count__retried=1,
                )
                and f"{waiting} Failed PoolExhausted" not in operator.series("pool")
            ),
            "the series follow",
        )
        desk.delete(POOLS, "pool")
        desk.delete(ALLOCATIONS, "wide")
        desk.gone(POOLS, "pool")
        desk.until(lambda: not operator.series("pool"), f"nothing is left: {operator.series('pool')}")


def test_the_first_grants_of_a_pool_that_was_missing_are_counted(control_plane: ControlPlane, desk: Desk) -> None:
    """A request, or a ProviderConfig of any namespace, may name a pool before it is there."""
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.ask("early", 8)
        desk.failed("early", "PoolNotFound")
        desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.31")
        desk.granted("early")
        desk.until(lambda: operator.series("pool").get("butler_network_pool_allocated_ips") == 8, "the pool is shown")
        series = operator.series("pool")
        assert series["butler_ip_allocation_processed_total success"] == 1
        assert series["butler_ip_allocation_seconds_count retried"] == 1
        assert series["butler_ip_allocation_batch_size_sum"] == 1


def test_requests_for_a_missing_pool_are_seen(control_plane: ControlPlane, desk: Desk) -> None:
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.ask("lost", 1, of="nowhere")
        desk.failed("lost", "PoolNotFound")
        desk.until(
            lambda: operator.series("nowhere") == {"butler_ip_allocations_waiting Failed PoolNotFound": 1.0},
            "it shows in the metrics",
        )
        desk.delete(ALLOCATIONS, "lost")
        desk.gone(ALLOCATIONS, "lost")
        desk.until(lambda: not operator.series("nowhere"), "and no longer")


def test_a_status_that_makes_no_sense_is_counted(control_plane: ControlPlane, desk: Desk) -> None:
    with RunningOperator(control_plane, desk.namespace) as operator:
        desk.pool("pool", "10.1.0.0/24")
        desk.ask("a", 4)
        desk.granted("a")
        with older_definition(desk):
            write(desk, "a", {"startAddress": "nowhere"})
        unreadable = "butler_ipam_inconsistencies_total unreadable"
        desk.until(lambda: operator.series("pool").get(unreadable), "it is counted")
