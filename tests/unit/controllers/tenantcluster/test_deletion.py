"""How long each stage of a deletion is waited for, and what it says meanwhile."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from butler.api.conditions import find_condition
from butler.api.labels import Annotation, ConditionType
from butler.api.tenantcluster import DeletionProgress, DeletionStage, TenantClusterPhase, TenantClusterStatus
from butler.rules.tenant.deletion import (
    COURTESY,
    FORCEABLE,
    DeletionVerdict,
    began,
    deleting_status,
    is_forced,
    judge,
    left_over,
    paused_status,
    seconds_to_next_look,
    starting_stage,
)
from butler.rules.tenant.settings import TenantSettings
from unit.controllers.tenantcluster.values import NOW, cluster, with_status

if TYPE_CHECKING:
    from butler.api.meta import Condition

SETTINGS = TenantSettings()
MINUTE = timedelta(minutes=1)
WAITS = "2 machines (a, b)"


def judged(stage: DeletionStage, took: timedelta, *, forced: bool = False) -> DeletionVerdict:
    return judge(stage, NOW - took, WAITS, forced=forced, settings=SETTINGS, now=NOW)


def test_addresses_come_last() -> None:
    assert [stage.value for stage in DeletionStage] == [
        "LoadBalancers",
        "Addons",
        "ClusterAPI",
        "Machines",
        "Namespace",
        "Addresses",
    ]


@pytest.mark.parametrize("stage", DeletionStage)
def test_every_stage_waits_at_first_and_says_for_what(stage: DeletionStage) -> None:
    assert judged(stage, MINUTE) == DeletionVerdict(False, "Waiting", f"waits for {WAITS}")


@pytest.mark.parametrize("stage", DeletionStage)
def test_only_what_is_done_out_of_courtesy_has_an_end(stage: DeletionStage) -> None:
    assert judged(stage, 5 * MINUTE).go_on is (stage in COURTESY)
    assert judged(stage, timedelta(days=30)).go_on is (stage in COURTESY)


def test_what_was_left_behind_is_told() -> None:
    found = judged(DeletionStage.ADDONS, 6 * MINUTE)
    assert found.reason == "Stalled"
    assert found.message == f"waited 6 minutes for {WAITS}; going on without"


@pytest.mark.parametrize("stage", [stage for stage in DeletionStage if stage not in COURTESY])
def test_the_others_get_louder_and_say_what_a_person_can_do(stage: DeletionStage) -> None:
    found = judged(stage, 15 * MINUTE)
    assert not found.go_on
    assert found.reason == "Stalled"
    assert "since 2027-01-15 07:45 UTC" in found.message
    assert (Annotation.FORCE_DELETE in found.message) is (stage in FORCEABLE)


def test_a_stalled_stage_says_the_same_every_time() -> None:
    """A message that counts minutes would be written every minute, for days."""
    early = judge(DeletionStage.MACHINES, NOW, WAITS, forced=False, settings=SETTINGS, now=NOW + 20 * MINUTE)
    late = judge(DeletionStage.MACHINES, NOW, WAITS, forced=False, settings=SETTINGS, now=NOW + 99 * MINUTE)
    assert early == late


@pytest.mark.parametrize("stage", DeletionStage)
def test_force_ends_the_waiting_for_machines_at_once_and_nothing_else(stage: DeletionStage) -> None:
    found = judged(stage, MINUTE, forced=True)
    assert found.go_on is (stage in FORCEABLE)
    if found.go_on:
        assert found.reason == "Forced"
        assert WAITS in found.message
        assert Annotation.FORCE_DELETE in found.message


def test_addresses_are_not_given_up_even_by_force() -> None:
    assert not judged(DeletionStage.ADDRESSES, timedelta(days=9), forced=True).go_on


@pytest.mark.parametrize(("value", "expected"), [("web", True), ("true", False), ("", False), ("Web", False)])
def test_force_takes_the_clusters_own_name(value: str, expected: bool) -> None:
    assert is_forced(cluster(annotations={Annotation.FORCE_DELETE.value: value})) is expected
    assert not is_forced(cluster())


def test_the_next_look_comes_soon_and_no_later_than_the_limit() -> None:
    def seconds(stage: DeletionStage, took: timedelta) -> float:
        return seconds_to_next_look(stage, NOW - took, SETTINGS, NOW, 5.0)

    assert seconds(DeletionStage.ADDONS, MINUTE) == 5.0
    assert seconds(DeletionStage.ADDONS, 5 * MINUTE - timedelta(seconds=2)) == 2.0
    assert seconds(DeletionStage.MACHINES, 15 * MINUTE - timedelta(seconds=2)) == 2.0
    assert seconds(DeletionStage.MACHINES, timedelta(days=1)) == 5.0, "never is not an answer"


# The status.


def condition(status: TenantClusterStatus, kind: ConditionType) -> Condition:
    found = find_condition(status.conditions, kind)
    assert found is not None
    return found


def test_the_status_says_the_stage_and_what_it_waits_for() -> None:
    found = deleting_status(cluster(), DeletionStage.MACHINES, NOW, judged(DeletionStage.MACHINES, MINUTE), NOW)
    assert found.phase is TenantClusterPhase.DELETING
    assert found.deletion == DeletionProgress(stage=DeletionStage.MACHINES, since=NOW)
    assert condition(found, ConditionType.DELETING).message == f"Machines: waits for {WAITS}"
    assert condition(found, ConditionType.READY).reason == "Deleting"


def test_the_status_computed_twice_is_the_same() -> None:
    verdict = judged(DeletionStage.MACHINES, MINUTE)
    once = deleting_status(cluster(), DeletionStage.MACHINES, NOW, verdict, NOW)
    again = with_status(cluster(), once)
    assert deleting_status(again, DeletionStage.MACHINES, NOW, verdict, NOW + 9 * MINUTE) == once


def test_a_stage_goes_on_where_it_was_and_its_time_runs_through_restarts() -> None:
    assert starting_stage(cluster()) is DeletionStage.LOAD_BALANCERS
    on_its_way = cluster(
        status=TenantClusterStatus(deletion=DeletionProgress(stage=DeletionStage.MACHINES, since=NOW - MINUTE))
    )
    assert starting_stage(on_its_way) is DeletionStage.MACHINES
    assert began(on_its_way, DeletionStage.MACHINES, NOW) == NOW - MINUTE
    assert began(on_its_way, DeletionStage.NAMESPACE, NOW) == NOW
    assert began(cluster(), DeletionStage.LOAD_BALANCERS, NOW) == NOW


def test_a_paused_cluster_says_why_it_does_not_go_and_its_time_does_not_begin() -> None:
    found = paused_status(cluster(paused=True), NOW)
    assert found.phase is TenantClusterPhase.DELETING
    assert found.deletion is None
    assert condition(found, ConditionType.DELETING).reason == "Paused"
    assert "spec.paused" in condition(found, ConditionType.DELETING).message
    assert paused_status(with_status(cluster(paused=True), found), NOW + MINUTE) == found


def test_what_is_left_over_is_counted_and_named() -> None:
    assert left_over("machine", ["b", "a"]) == "2 machines (a, b)"
    assert left_over("machine", ["a"]) == "1 machine (a)"
    assert left_over("machine", list("edcba")) == "5 machines (a, b, c and 2 more)"
