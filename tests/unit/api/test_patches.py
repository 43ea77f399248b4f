"""Merge patches and conditions: say what changed, and nothing when nothing did."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from butler.api.codec import merge_patch, status_patch, to_json
from butler.api.conditions import condition_holds, find_condition, with_condition
from butler.api.ipallocation import IPAllocationPhase, IPAllocationStatus
from butler.api.labels import AllocationReason, ConditionType
from butler.api.meta import Condition, ConditionStatus, ObjectMeta
from butler.api.networkpool import NetworkPoolStatus
from butler.api.providerconfig import ProviderCapacity, ProviderConfigStatus

NOON = datetime(2026, 2, 15, 12, 0, tzinfo=UTC)
PENDING = IPAllocationStatus()
ALLOCATED = IPAllocationStatus(
    phase=IPAllocationPhase.ALLOCATED, start_address="10.0.0.1", end_address="10.0.0.1", addresses=("10.0.0.1",)
)


def test_a_patch_says_what_changed_and_nothing_else() -> None:
    assert merge_patch(
        NetworkPoolStatus(total_ips=8, allocated_ips=1), NetworkPoolStatus(total_ips=8, allocated_ips=0)
    ) == {"allocatedIPs": 0}


def test_a_patch_between_equals_is_empty() -> None:
    assert merge_patch(ALLOCATED, ALLOCATED) == {}
    assert status_patch(ObjectMeta(uid="u", resource_version="1"), ALLOCATED, ALLOCATED) is None


def test_a_field_that_went_away_becomes_null() -> None:
    assert merge_patch(ALLOCATED, PENDING) == {
        "phase": None,
        "startAddress": None,
        "endAddress": None,
        "addresses": None,
    }


def test_a_change_within_a_part_keeps_its_neighbours() -> None:
    before = ProviderConfigStatus(capacity=ProviderCapacity(available_ips=4, estimated_tenants=1))
    after = ProviderConfigStatus(capacity=ProviderCapacity(available_ips=3, estimated_tenants=1))
    assert merge_patch(before, after) == {"capacity": {"availableIPs": 3}}


def test_a_status_patch_holds_for_one_version_of_one_object() -> None:
    patch = status_patch(ObjectMeta(name="a", uid="u-1", resource_version="42"), PENDING, ALLOCATED)
    assert patch == {
        "metadata": {"uid": "u-1", "resourceVersion": "42"},
        "status": {
            "phase": "Allocated",
            "startAddress": "10.0.0.1",
            "endAddress": "10.0.0.1",
            "addresses": ["10.0.0.1"],
        },
    }


counts = st.none() | st.integers(0, 2)
statuses = st.builds(
    ProviderConfigStatus,
    ready=st.none() | st.booleans(),
    provider_version=st.none() | st.sampled_from(["1", "2"]),
    capacity=st.none() | st.builds(ProviderCapacity, available_ips=counts, estimated_tenants=counts),
)


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7386, written down independently."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result[key] if isinstance(result.get(key), dict) else {}, value)
        else:
            result[key] = value
    return result


@given(statuses, statuses)
def test_a_patch_leads_from_one_to_the_other(before: ProviderConfigStatus, after: ProviderConfigStatus) -> None:
    assert merged(to_json(before), merge_patch(before, after)) == to_json(after)


def ready(
    conditions: tuple[Condition, ...], status: ConditionStatus | bool, reason: str, now: datetime = NOON
) -> tuple[Condition, ...]:
    return with_condition(conditions, type=ConditionType.READY, status=status, reason=reason, message="m", now=now)


def test_setting_a_condition_again_gives_the_same_tuple() -> None:
    once = ready((), True, AllocationReason.ALLOCATED)
    assert ready(once, True, AllocationReason.ALLOCATED, NOON + timedelta(hours=1)) is once


def test_the_transition_time_moves_with_the_status_only() -> None:
    failed = ready((), False, AllocationReason.POOL_EXHAUSTED)
    still = ready(failed, False, AllocationReason.POOL_FRAGMENTED, NOON + timedelta(minutes=1))
    granted = ready(still, True, AllocationReason.ALLOCATED, NOON + timedelta(minutes=2))

    assert still[0].reason == "PoolFragmented"
    assert still[0].last_transition_time == NOON
    assert granted[0].last_transition_time == NOON + timedelta(minutes=2)


def test_setting_one_condition_leaves_the_others_in_place() -> None:
    first = with_condition((), type="A", status=True, reason="R", message="", now=NOON)
    both = ready(first, False, AllocationReason.POOL_EXHAUSTED)
    changed = with_condition(both, type="A", status=False, reason="R", message="", now=NOON)

    assert [condition.type for condition in changed] == ["A", "Ready"]
    assert changed[1] is both[1]


def test_only_true_holds() -> None:
    unknown = ready((), ConditionStatus.UNKNOWN, "Waiting")
    assert not condition_holds(unknown, ConditionType.READY)
    assert not condition_holds((), ConditionType.READY)
    assert condition_holds(ready(unknown, True, "Ready"), ConditionType.READY)
    assert find_condition(unknown, "CapacityWarning") is None
