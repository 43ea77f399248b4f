"""What the other blocks of an unbuilt tenant mean for a request: those still to come, and those at other pools."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.labels import Annotation, ConditionType, Label
from butler.rules.pool.next_status import uncommitted
from unit.controllers.networkpool.values import NOW, allocation, grants, intent, planned, pool, reasons

if TYPE_CHECKING:
    from butler.api.ipallocation import IPAllocation

SMALL = pool("10.0.0.1-10.0.0.16")


def block(
    tenant: str, kind: str, count: int = 5, *, blocks: str = "nodes,loadbalancer", reason: str = "", **more: Any
) -> IPAllocation:
    """A block that an unbuilt tenant asks for together with another; `reason`: it was refused for this."""
    refused: dict[str, Any] = {"phase": "Failed"} if reason else {}
    made = allocation(f"{tenant}-{kind}", count, type=kind, **refused, **more)
    meta = msgspec.structs.replace(
        made.metadata,
        labels={Label.TENANT_UID.value: f"uid-of-{tenant}"},
        annotations={
            Annotation.GRANTED_TOGETHER.value: blocks,
            Annotation.TENANT_CREATED.value: (NOW - timedelta(minutes=5)).isoformat(),
        },
    )
    status = made.status
    if reason:
        conditions = with_condition(
            (), type=ConditionType.READY, status=False, reason=reason, message="as it is", now=NOW
        )
        status = msgspec.structs.replace(status, conditions=conditions)
    return msgspec.structs.replace(made, metadata=meta, status=status)


def test_both_blocks_come_at_once() -> None:
    made = planned(SMALL, block("a", "nodes"), block("a", "loadbalancer", 8))
    assert grants(made) == {"a-nodes": "10.0.0.1-10.0.0.5", "a-loadbalancer": "10.0.0.6-10.0.0.13"}


def test_one_block_waits_for_the_other_to_be_asked_for_and_says_nothing_at_first() -> None:
    made = planned(SMALL, block("a", "nodes"))
    assert (grants(made), reasons(made)) == ({}, {})
    assert made.next_refusal == 3.0


def test_after_a_moment_it_says_what_it_waits_for() -> None:
    made = planned(SMALL, block("a", "nodes", age=3))
    assert reasons(made) == {"a-nodes": "OtherBlockNotRequested"}
    assert made.next_refusal is None


def test_what_was_refused_keeps_its_words_while_the_other_block_is_asked_for_anew() -> None:
    made = planned(SMALL, block("a", "nodes", age=60, reason="PoolExhausted"))
    assert (grants(made), reasons(made), made.next_refusal) == ({}, {}, None)


@pytest.mark.parametrize("gone", [{"deleting": True}, {"phase": "Released"}, {"finalizer": False}])
def test_a_block_that_goes_or_is_not_ready_to_be_granted_is_still_to_come(gone: dict[str, Any]) -> None:
    assert grants(planned(SMALL, block("a", "nodes"), block("a", "loadbalancer", **gone))) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"holds": "10.9.0.1-10.9.0.5"},
        {"phase": "Pending"},
        {"reason": "OtherBlockUnavailable"},
        {"reason": "OtherBlockNotRequested"},
    ],
)
def test_a_block_that_another_pool_grants_or_would_grant_keeps_nothing_back(other: dict[str, Any]) -> None:
    assert set(grants(planned(SMALL, block("a", "nodes"), block("a", "loadbalancer", of="other", **other)))) == {
        "a-nodes"
    }


@pytest.mark.parametrize("reason", ["PoolExhausted", "PoolFragmented", "PoolNotFound", "PoolNotReady", "QuotaExceeded"])
def test_a_block_that_another_pool_refuses_leaves_the_room_to_others(reason: str) -> None:
    other = block("a", "loadbalancer", of="other", reason=reason)
    made = planned(SMALL, block("a", "nodes", 16, age=9), other, allocation("b", 16))
    assert set(grants(made)) == {"b"}
    assert reasons(made) == {"a-nodes": "OtherBlockUnavailable"}
    assert f"a-loadbalancer waits for pool other ({reason})" in made.refusals[0].message


def test_what_does_not_fit_here_says_so_whatever_the_other_pool_says() -> None:
    other = block("a", "loadbalancer", of="other", reason="PoolExhausted")
    assert reasons(planned(SMALL, block("a", "nodes", 17), other)) == {"a-nodes": "PoolExhausted"}


def test_a_block_that_this_pool_can_never_grant_keeps_the_other_back() -> None:
    pinned = block("a", "loadbalancer", count=None, pinned="10.0.7.1-10.0.7.4")  # type: ignore[arg-type]
    made = planned(SMALL, block("a", "nodes"), pinned)
    assert reasons(made) == {"a-loadbalancer": "PinnedRangeOutOfPool", "a-nodes": "OtherBlockUnavailable"}


def test_a_grant_under_way_counts_as_granted() -> None:
    subject = pool("10.0.0.1-10.0.0.16", intents=(intent("a-loadbalancer", "10.0.0.1-10.0.0.8"),))
    assert set(grants(planned(subject, block("a", "nodes"), block("a", "loadbalancer", 8)))) == {"a-nodes"}


@pytest.mark.parametrize(
    "annotations",
    [
        {},
        {Annotation.GRANTED_TOGETHER.value: "nodes,loadbalancer"},
        {Annotation.GRANTED_TOGETHER.value: "nodes,loadbalancer", Annotation.TENANT_CREATED.value: "yesterday"},
        {Annotation.GRANTED_TOGETHER.value: "nodes,cats", Annotation.TENANT_CREATED.value: NOW.isoformat()},
        {Annotation.GRANTED_TOGETHER.value: "loadbalancer", Annotation.TENANT_CREATED.value: NOW.isoformat()},
        {
            Annotation.GRANTED_TOGETHER.value: "nodes,loadbalancer",
            Annotation.TENANT_CREATED.value: "2027-01-15T08:00:00",
        },
    ],
)
def test_requests_that_say_nothing_of_others_are_granted_by_themselves(annotations: dict[str, str]) -> None:
    """Those of older versions, those made by hand, and those that a user edited into nonsense."""
    made = block("a", "nodes")
    made = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, annotations=annotations))
    assert set(grants(planned(SMALL, made))) == {"a-nodes"}


def test_a_request_that_lost_its_finalizer_after_the_decision_is_not_granted_without_it() -> None:
    """It would go without giving its addresses back. The range stays promised until the finalizer is there again."""
    subject = pool("10.0.0.1-10.0.0.16", intents=(intent("a", "10.0.0.1-10.0.0.8"),))
    bare, again = allocation("a", 8, finalizer=False), allocation("a", 8)
    assert uncommitted(subject, {"uid-a": bare}.get) == []
    assert [found.metadata.name for found, _ in uncommitted(subject, {"uid-a": again}.get)] == ["a"]
    made = planned(subject, bare, allocation("b", 16))
    assert made.status.intents == subject.status.intents
    assert set(reasons(made)) == {"b"}
