"""What becomes of an allocation, step by step: the decisions, in plain values."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from butler.api.codec import status_patch
from butler.api.conditions import condition_holds, find_condition
from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import ConditionType
from butler.controllers.ipallocation.controller import (
    AddFinalizer,
    AwaitPool,
    Delete,
    Keep,
    Note,
    NoteLater,
    Record,
    Release,
    RemoveFinalizer,
    Step,
    decide,
    is_settled,
)
from butler.ipam.granted import GrantRecord
from butler.rules.allocation.owner import owner_of
from butler.rules.allocation.release import DELETED_BY_REQUEST, owner_gone, released, what_it_held
from unit.controllers.lives import DAY, NOW, OURS, allocation, pool, tenant

FOREIGN = "example.com/theirs"
HOUR = timedelta(hours=1)
HELD = GrantRecord("10.40.1.10-10.40.1.11", "a1")


def step_for(subject: IPAllocation, **world: Any) -> Step | None:
    return decide(subject, world.get("tenant"), world.get("pool"), retention=DAY, now=NOW)


@pytest.mark.parametrize(
    ("story", "subject", "world", "expected"),
    [
        ("a new request gets the finalizer", allocation(finalizers=()), {}, AddFinalizer([OURS])),
        (
            "and keeps what others put there",
            allocation(finalizers=(FOREIGN,)),
            {"tenant": tenant()},
            AddFinalizer([FOREIGN, OURS]),
        ),
        (
            "an allocation that lost its finalizer gets it back",
            allocation("Allocated", finalizers=(), found=True),
            {},
            AddFinalizer([OURS]),
        ),
        ("a waiting request is not written to", allocation(), {"tenant": tenant(), "pool": pool()}, None),
        (
            "a refused request whose label tells its owner is not written to",
            allocation("Failed", labelled="t1"),
            {"tenant": tenant()},
            None,
        ),
        ("a granted one whose tenant is not there is left alone", allocation("Allocated", found=False), {}, None),
        (
            "a granted one whose owner is known is left alone",
            allocation("Allocated", owner="t1", found=True),
            {"tenant": tenant()},
            None,
        ),
        (
            "a granted one whose owner was replaced is left to the sweep",
            allocation("Allocated", owner="t0", found=False),
            {"tenant": tenant("t1")},
            None,
        ),
        ("a grant is repeated in the metadata", allocation("Allocated", found=True, noted=""), {}, Note(HELD)),
        ("and put right there", allocation("Allocated", found=True, noted="10.40.1.1-10.40.1.9 a1"), {}, Note(HELD)),
        (
            "one that comes from a backup with its status is taken over by its tenant, not here",
            allocation("Allocated", found=True, noted="10.40.1.10-10.40.1.11 another"),
            {"tenant": tenant()},
            None,
        ),
        (
            "one that comes from a backup belongs to the tenant that has the name, whatever its label says",
            allocation("Allocated", labelled="t0", noted="10.40.1.10-10.40.1.11 another"),
            {"tenant": tenant("t1")},
            "found t1",
        ),
        (
            "that it was given back stands in the metadata: a backup must not bring it to life",
            allocation("Released", released_at=NOW - HOUR, noted="10.40.1.10-10.40.1.11 a1"),
            {},
            Note(GrantRecord("released", "a1")),
        ),
        ("nor does it", allocation(noted="released a0"), {}, Release()),
        (
            "an old record that was applied again is put right where the cluster never ceased to exist",
            allocation("Allocated", found=True, labelled="t1", noted="10.40.1.1-10.40.1.9 a0"),
            {"tenant": tenant()},
            Note(HELD),
        ),
        ("deleted while waiting", allocation(deleting=True), {"pool": pool("999")}, Release()),
        ("deleted after a refusal", allocation("Failed", deleting=True), {}, Release()),
        ("deleted while granted", allocation("Allocated", deleting=True), {"pool": pool("999")}, Release()),
        (
            "deleted before the finalizer was there, and held by another's finalizer",
            allocation(finalizers=(FOREIGN,), deleting=True),
            {},
            Release(),
        ),
        (
            "released, but the pool has not seen it",
            allocation("Released", deleting=True, version="100", released_at=NOW),
            {"pool": pool("99")},
            AwaitPool(),
        ),
        (
            "released, but the pool has seen nothing yet",
            allocation("Released", deleting=True, version="100", released_at=NOW),
            {"pool": pool()},
            AwaitPool(),
        ),
        (
            "versions are numbers, not text",
            allocation("Released", deleting=True, version="100", released_at=NOW),
            {"pool": pool("99999")},
            RemoveFinalizer([]),
        ),
        (
            "released, and the pool has seen this very version",
            allocation("Released", deleting=True, version="100", released_at=NOW, finalizers=(OURS, FOREIGN)),
            {"pool": pool("100")},
            RemoveFinalizer([FOREIGN]),
        ),
        (
            "released, and the pool is gone",
            allocation("Released", deleting=True, released_at=NOW),
            {},
            RemoveFinalizer([]),
        ),
        (
            "released and let go; others still hold it",
            allocation("Released", deleting=True, released_at=NOW, finalizers=(FOREIGN,)),
            {},
            None,
        ),
        (
            "released by Butler an hour ago",
            allocation("Released", released_at=NOW - HOUR),
            {"pool": pool("999")},
            Keep(23 * 3600.0),
        ),
        ("kept for long enough", allocation("Released", released_at=NOW - DAY), {}, Delete()),
        (
            "kept for long enough, without a finalizer",
            allocation("Released", released_at=NOW - DAY, finalizers=()),
            {},
            Delete(),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_next_step_in_a_life(
    story: str, subject: IPAllocation, world: dict[str, Any], expected: Step | str
) -> None:
    step = step_for(subject, **world)
    if isinstance(expected, str):
        assert isinstance(step, Record)
        assert f"found {step.status.tenant_cluster_uid}" == expected
    else:
        assert step == expected, story


@pytest.mark.parametrize(
    "subject", [allocation("Allocated"), allocation("Allocated", found=False), allocation("Failed", found=False)]
)
def test_the_owner_is_recorded_when_it_is_first_seen(subject: IPAllocation) -> None:
    step = step_for(subject, tenant=tenant("t1"))
    assert isinstance(step, Record)
    assert step.status.tenant_cluster_uid == "t1"
    assert condition_holds(step.status.conditions, ConditionType.TENANT_FOUND)
    assert step.status.phase is subject.status.phase


def test_a_release_by_hand_starts_its_time_for_audit_when_it_is_noticed() -> None:
    step = step_for(allocation("Released"))
    assert isinstance(step, Record)
    assert step.status.released_at == NOW


def test_what_was_granted_stays_readable_after_the_release() -> None:
    subject = allocation("Allocated", deleting=True)
    after = released(subject, DELETED_BY_REQUEST, NOW)
    assert (after.phase, after.released_at) == (IPAllocationPhase.RELEASED, NOW)
    assert (after.start_address, after.end_address, after.allocated_count) == ("10.40.1.10", "10.40.1.11", 2)
    ready = find_condition(after.conditions, ConditionType.READY)
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "Released")
    assert ready.message == "2 IPs (10.40.1.10-10.40.1.11) released to vlan40: deleted by request"


def test_a_release_before_the_grant_says_so() -> None:
    ready = find_condition(released(allocation(), DELETED_BY_REQUEST, NOW).conditions, ConditionType.READY)
    assert ready is not None
    assert ready.message == "released before anything was granted: deleted by request"


def test_the_release_of_an_orphan_names_the_owner_that_is_gone() -> None:
    subject = allocation("Allocated", owner="t1", found=True)
    after = released(subject, owner_gone(subject, "t1"), NOW)
    ready, found = (
        find_condition(after.conditions, kind) for kind in (ConditionType.READY, ConditionType.TENANT_FOUND)
    )
    assert ready is not None
    assert ready.message.endswith("to vlan40: TenantCluster team-a/web (uid t1) no longer exists")
    assert found is not None
    assert found.status == "False"


@pytest.mark.parametrize(
    ("first", "last", "count", "words"),
    [
        ("10.0.0.1", "10.0.0.5", 5, "5 IPs (10.0.0.1-10.0.0.5)"),
        ("10.0.0.1", "10.0.0.1", 1, "1 IP (10.0.0.1)"),
        ("10.0.0.1", "10.0.0.2", None, "IPs (10.0.0.1-10.0.0.2)"),
        (None, None, None, None),
    ],
)
def test_a_grant_in_words(first: str | None, last: str | None, count: int | None, words: str | None) -> None:
    status = type(allocation().status)(start_address=first, end_address=last, allocated_count=count)
    assert what_it_held(status) == words


def test_a_patch_from_a_trimmed_view_leaves_the_addresses_alone() -> None:
    """The cache may drop the long list of addresses; a write that sends it back empty would erase the record."""
    subject = allocation("Allocated", addresses=False)
    step = step_for(subject, tenant=tenant())
    assert isinstance(step, Record)
    for after in (step.status, released(subject, DELETED_BY_REQUEST, NOW)):
        patch = status_patch(subject.metadata, subject.status, after)
        assert patch is not None
        assert "addresses" not in patch["status"]
        assert patch["metadata"] == {"uid": "a1", "resourceVersion": "100"}


# Owners.


@pytest.mark.parametrize(
    ("story", "subject", "cluster", "uid", "found", "reason"),
    [
        ("never seen", allocation(), None, None, False, "NotFound"),
        ("first seen", allocation(), tenant("t1"), "t1", True, "Found"),
        ("seen again", allocation(owner="t1"), tenant("t1"), "t1", True, "Found"),
        ("gone", allocation(owner="t1"), None, "t1", False, "NotFound"),
        ("made anew", allocation(owner="t1"), tenant("t2"), "t1", False, "Replaced"),
        ("known by label", allocation(labelled="t1"), None, "t1", False, "NotFound"),
        ("found by label", allocation(labelled="t1"), tenant("t1"), "t1", True, "Found"),
        ("the label wins over the status", allocation(labelled="t1", owner="t0"), tenant("t1"), "t1", True, "Found"),
        ("the label wins over the name", allocation(labelled="t1"), tenant("t2"), "t1", False, "Replaced"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_whose_an_allocation_is(
    story: str, subject: IPAllocation, cluster: Any, uid: str | None, found: bool, reason: str
) -> None:
    owner = owner_of(subject, cluster, NOW)
    condition = find_condition(owner.conditions, ConditionType.TENANT_FOUND)
    assert condition is not None
    assert (owner.tenant_cluster_uid, owner.found, condition.status, condition.reason) == (
        uid,
        found,
        "True" if found else "False",
        reason,
    ), story


def test_setting_the_same_owner_again_changes_nothing() -> None:
    subject = allocation("Allocated", owner="t1")
    once = owner_of(subject, tenant(), NOW).conditions
    again = type(subject)(metadata=subject.metadata, spec=subject.spec, status=type(subject.status)(conditions=once))
    assert owner_of(again, tenant(), NOW + HOUR).conditions is again.status.conditions


# What the controller does not even look at.

lives = st.builds(
    allocation,
    st.sampled_from(["Pending", "Failed", "Allocated", "Released"]),
    finalizers=st.sampled_from([(), (OURS,), (FOREIGN,), (FOREIGN, OURS)]),
    deleting=st.booleans(),
    owner=st.sampled_from([None, "t1", "t2"]),
    labelled=st.sampled_from([None, "t1", "t2"]),
    found=st.sampled_from([None, True, False]),
    released_at=st.sampled_from([None, NOW - HOUR, NOW - DAY]),
)


@given(lives, st.sampled_from([None, tenant("t1"), tenant("t2")]), st.sampled_from([None, pool(), pool("99")]))
def test_what_is_settled_needs_no_step(subject: IPAllocation, cluster: Any, asked: Any) -> None:
    if is_settled(subject):
        assert step_for(subject, tenant=cluster, pool=asked) is None


@given(lives, st.sampled_from([None, tenant("t1"), tenant("t2")]))
def test_recording_an_owner_settles_it(subject: IPAllocation, cluster: Any) -> None:
    """Otherwise the controller would write for ever."""
    step = step_for(subject, tenant=cluster)
    if isinstance(step, Record):
        after = type(subject)(metadata=subject.metadata, spec=subject.spec, status=step.status)
        assert not isinstance(step_for(after, tenant=cluster), Record)


def test_a_grant_is_repeated_in_the_metadata_when_no_reader_waits_for_it() -> None:
    """The commit of a grant is what people wait for; this write comes after it, for the day of a restore."""
    subject = allocation("Allocated", found=True, noted="")
    just_now = msgspec.structs.replace(
        subject, status=msgspec.structs.replace(subject.status, allocated_at=NOW - timedelta(seconds=1))
    )
    assert step_for(just_now) == NoteLater(2.0)
    assert not is_settled(just_now)
