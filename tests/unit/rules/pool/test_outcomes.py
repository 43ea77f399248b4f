"""What an allocation's status says after a grant and after a refusal."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from butler.api.codec import status_patch, to_json
from butler.api.labels import AllocationReason
from butler.ipam.decide import Refusal
from butler.rules.pool import outcomes
from unit.controllers.lives import tenant
from unit.controllers.networkpool.values import NOW, allocation, intent


def refusal(message: str, reason: AllocationReason = AllocationReason.POOL_EXHAUSTED) -> Refusal:
    return Refusal(uid="uid-a", name="a", reason=reason, message=message)


def test_a_grant_reads_as_the_reference_page_shows_it() -> None:
    asked = allocation("my-cluster-nodes", 5, of="vlan40-pool")
    status = outcomes.granted(asked, intent("my-cluster-nodes", "10.40.0.64-10.40.0.68"), None, NOW)
    shown = to_json(status)
    assert shown.pop("conditions")[0] == {
        "type": "Ready",
        "status": "True",
        "reason": "Allocated",
        "message": "5 IPs allocated from vlan40-pool",
        "lastTransitionTime": "2027-01-15T08:00:00Z",
    }
    assert shown == {
        "phase": "Allocated",
        "startAddress": "10.40.0.64",
        "endAddress": "10.40.0.68",
        "addresses": ["10.40.0.64", "10.40.0.65", "10.40.0.66", "10.40.0.67", "10.40.0.68"],
        "allocatedCount": 5,
        "observedGeneration": 1,
        "allocatedAt": "2027-01-15T08:00:00Z",
        "allocatedBy": "networkpool-controller",
    }


@pytest.mark.parametrize(
    ("granted", "cidr", "message"),
    [
        ("10.0.0.8-10.0.0.15", "10.0.0.8/29", "8 IPs"),
        ("10.0.0.7-10.0.0.7", "10.0.0.7/32", "1 IP"),
        ("10.0.0.4-10.0.0.11", None, "8 IPs"),
        ("10.0.0.8-10.0.0.14", None, "7 IPs"),
        ("10.0.0.255-10.0.1.0", None, "2 IPs"),
    ],
)
def test_the_network_is_shown_only_where_the_range_is_one(granted: str, cidr: str | None, message: str) -> None:
    status = outcomes.granted(allocation("a"), intent("a", granted), None, NOW)
    assert status.cidr == cidr
    assert status.conditions[0].message == f"{message} allocated from vlan40"


def test_a_grant_says_whose_it_is_in_the_same_write() -> None:
    asked = allocation("web")
    unknown = outcomes.granted(asked, intent("web", "10.0.0.1-10.0.0.1"), None, NOW)
    assert unknown.tenant_cluster_uid is None
    assert [(condition.type, str(condition.status)) for condition in unknown.conditions] == [
        ("Ready", "True"),
        ("TenantFound", "False"),
    ]
    known = outcomes.granted(asked, intent("web", "10.0.0.1-10.0.0.1"), tenant("t1"), NOW)
    assert known.tenant_cluster_uid == "t1"
    assert [(condition.type, str(condition.status)) for condition in known.conditions] == [
        ("Ready", "True"),
        ("TenantFound", "True"),
    ]


def test_a_refusal_says_why_and_grants_nothing() -> None:
    status = outcomes.refused(allocation("a"), refusal("needs 9"), None, NOW)
    assert status.phase == "Failed"
    assert (status.start_address, status.addresses, status.allocated_at) == (None, (), None)
    assert (status.conditions[0].reason, status.conditions[0].message) == ("PoolExhausted", "needs 9")


def test_the_same_refusal_again_is_nothing_to_write() -> None:
    asked = allocation("a")
    failed = msgspec.structs.replace(asked, status=outcomes.refused(asked, refusal("needs 9"), None, NOW))
    again = outcomes.refused(failed, refusal("needs 9"), None, NOW + timedelta(hours=1))
    assert status_patch(failed.metadata, failed.status, again) is None


@pytest.mark.parametrize(
    ("story", "before", "after", "new"),
    [
        ("the first refusal", None, refusal("needs 9"), True),
        ("other figures", refusal("needs 9; 3 free"), refusal("needs 9; 4 free"), False),
        ("another reason", refusal("x"), refusal("x", AllocationReason.POOL_FRAGMENTED), True),
    ],
)
def test_a_refusal_is_news_when_more_than_its_figures_changed(
    story: str, before: Refusal | None, after: Refusal, new: bool
) -> None:
    asked = allocation("a")
    then = asked.status if before is None else outcomes.refused(asked, before, None, NOW)
    now = outcomes.refused(msgspec.structs.replace(asked, status=then), after, None, NOW)
    assert outcomes.says_something_new(then, now) is new, story


def test_a_grant_after_a_refusal_leaves_nothing_of_it() -> None:
    asked = allocation("a")
    failed = msgspec.structs.replace(asked, status=outcomes.refused(asked, refusal("needs 9"), None, NOW))
    status = outcomes.granted(failed, intent("a", "10.0.0.1-10.0.0.1"), None, NOW + timedelta(hours=1))
    assert status.phase == "Allocated"
    assert [condition.reason for condition in status.conditions] == ["Allocated", "NotFound"]
    assert status.conditions[0].last_transition_time == NOW + timedelta(hours=1)
