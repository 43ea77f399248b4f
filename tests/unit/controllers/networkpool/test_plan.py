"""What the allocator decides for one pool: who gets what, what it promises, and what it takes note of."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from butler.api.labels import PoolReason
from butler.api.networkpool import MOST_INTENTS, NetworkPool
from butler.rules.pool.conditions import NotHandingOut
from butler.rules.pool.next_status import is_leaving, only_forgets_intents, open_intents
from butler.rules.pool.tenant_blocks import is_waiting
from unit.controllers.networkpool.values import (
    allocation,
    grants,
    holdings_of,
    intent,
    planned,
    pool,
    reasons,
    view_of,
)

WINDOW = "10.0.0.0-10.0.0.31"
NOT_NOW = NotHandingOut(PoolReason.OVERLAP, "it overlaps another one")


def after(before: NetworkPool, *world: Any, **options: Any) -> NetworkPool:
    """The pool as it is once the plan is written."""
    return msgspec.structs.replace(before, status=planned(before, *world, **options).status)


# Who gets what.


def test_pinned_requests_come_first_then_the_oldest_and_the_uid_settles_ties() -> None:
    made = planned(
        pool(WINDOW),
        allocation("young", 4, age=1),
        allocation("twin-b", 4, age=60, uid="b"),
        allocation("twin-a", 4, age=60, uid="a"),
        allocation("old", 4, age=90),
        allocation("pinned", pinned="10.0.0.0-10.0.0.3", age=0),
    )
    assert list(grants(made).items()) == [
        ("pinned", "10.0.0.0-10.0.0.3"),
        ("old", "10.0.0.4-10.0.0.7"),
        ("twin-a", "10.0.0.8-10.0.0.11"),
        ("twin-b", "10.0.0.12-10.0.0.15"),
        ("young", "10.0.0.16-10.0.0.19"),
    ]


def test_a_request_that_cannot_be_met_holds_up_no_other() -> None:
    made = planned(
        pool(WINDOW),
        allocation("huge", 33, age=90),
        allocation("astray", pinned="10.0.9.1-10.0.9.2", age=80),
        allocation("absurd", pinned="10.0.0.9-10.0.0.2", age=70),
        allocation("modest", 32),
    )
    assert grants(made) == {"modest": "10.0.0.0-10.0.0.31"}
    assert reasons(made) == {
        "huge": "PoolExhausted",
        "astray": "PinnedRangeOutOfPool",
        "absurd": "InvalidRequest",
    }


def test_a_request_without_a_count_gets_the_default_of_its_type() -> None:
    made = planned(pool(WINDOW), allocation("n", None), allocation("lb", None, type="loadbalancer"))
    assert grants(made) == {"lb": "10.0.0.0-10.0.0.7", "n": "10.0.0.8-10.0.0.12"}


@pytest.mark.parametrize(
    ("story", "asker", "waits"),
    [
        ("is new", {}, True),
        ("was refused before", {"phase": "Failed"}, True),
        ("has no finalizer yet", {"finalizer": False}, False),
        ("is being deleted", {"deleting": True}, False),
        ("holds addresses", {"holds": "10.0.0.1-10.0.0.1"}, False),
        ("was released", {"phase": "Released"}, False),
    ],
)
def test_only_those_wait_whose_addresses_will_surely_come_back(story: str, asker: dict[str, Any], waits: bool) -> None:
    asking = allocation("a", **asker)
    assert is_waiting(asking) is waits, f"one that {story}"
    assert bool(planned(pool(WINDOW), asking).granted) is waits


# Promises.


@pytest.mark.parametrize(
    ("story", "state", "kept"),
    [
        ("waits to be written", {}, True),
        ("was refused long ago", {"phase": "Failed"}, True),
        ("is being deleted, and may have been written", {"deleting": True}, True),
        ("lost its finalizer", {"finalizer": False}, True),
        ("has its addresses", {"holds": "10.0.0.0-10.0.0.3"}, False),
        ("was released", {"phase": "Released"}, False),
        ("was released and leaves", {"phase": "Released", "deleting": True}, False),
        ("is gone", None, False),
        ("is gone, and another has its name", {"uid": "another"}, False),
    ],
)
def test_a_promise_is_kept_until_its_allocation_tells_the_end_of_it(
    story: str, state: dict[str, Any] | None, kept: bool
) -> None:
    promise = intent("a", "10.0.0.0-10.0.0.3")
    world = [] if state is None else [allocation("a", 4, **state)]
    made = planned(pool(WINDOW, intents=(promise,)), *world, allocation("b", 4))
    assert (promise in made.status.intents) is kept, f"one that {story}"
    if kept:
        assert grants(made) == {"b": "10.0.0.4-10.0.0.7"}, "what was promised went to another request"
        assert made.status.allocated_ips == 8


def test_a_promise_survives_any_edit_of_its_pool_with_its_very_range() -> None:
    promise = intent("a", "10.0.0.0-10.0.0.3")
    edited = pool("10.0.0.2-10.0.0.9", "10.0.0.32-10.0.0.63", intents=(promise,))
    made = planned(edited, allocation("a", 4), allocation("b", 7))
    assert made.status.intents[0] == promise
    assert grants(made) == {"b": "10.0.0.32-10.0.0.38"}, "only 10.0.0.4-9 of the first window are free"
    assert (made.status.total_ips, made.status.allocated_ips) == (40, 2 + 7), "only what is left inside counts"


def test_a_promise_outside_every_window_is_kept_and_counts_for_nothing() -> None:
    promise = intent("a", "10.0.0.200-10.0.0.210")
    made = planned(pool(WINDOW, intents=(promise,)), allocation("a", 11))
    assert made.status.intents == (promise,)
    assert (made.status.allocated_ips, made.status.allocation_count) == (0, 1)


@pytest.mark.parametrize("nonsense", ["10.0.0.9-10.0.0.2", "none-10.0.0.2", "10.0.0.1-fd00::1", "-"])
def test_a_promise_that_promises_nothing_readable_is_dropped_and_its_allocation_served(nonsense: str) -> None:
    edited = pool(WINDOW, intents=(intent("a", nonsense), intent("b", "10.0.0.0-10.0.0.3")))
    made = planned(edited, allocation("a", 4), allocation("b", 4))
    assert grants(made) == {"a": "10.0.0.4-10.0.0.7"}
    assert {item.uid: item.start_address for item in made.status.intents} == {
        "uid-a": "10.0.0.4",
        "uid-b": "10.0.0.0",
    }


# What it takes note of.


@pytest.mark.parametrize(
    ("story", "before", "world", "seen"),
    [
        ("nothing happened", None, [], None),
        ("nothing happened", "70", [], "70"),
        ("a grant", "70", [allocation("a", version=80)], "80"),
        ("the newest of several grants", None, [allocation("a", version=9), allocation("b", version=11)], "11"),
        ("no step back", "90", [allocation("a", version=80)], "90"),
        ("a refusal is no promise", "70", [allocation("a", 99, version=80)], "70"),
        ("a holding of long ago", "70", [allocation("a", holds="10.0.0.1-10.0.0.1", version=80)], "70"),
        ("one that leaves", "70", [allocation("a", phase="Released", deleting=True, version=80)], "80"),
        ("one kept for audit", "70", [allocation("a", phase="Released", version=80)], "70"),
        ("one that others keep", "70", [allocation("a", phase="Released", deleting=True, finalizer=False)], "70"),
        ("versions are numbers", "9", [allocation("a", version=10)], "10"),
    ],
)  # fmt: skip
def test_the_pool_notes_the_newest_allocation_that_it_speaks_of(
    story: str, before: str | None, world: list[Any], seen: str | None
) -> None:
    assert planned(pool(WINDOW, allocations_seen=before), *world).status.allocations_seen == seen, story


@pytest.mark.parametrize("state", [{"holds": "10.0.0.0-10.0.0.0"}, {"phase": "Released"}, {}])
def test_the_pool_notes_the_allocations_of_promises_dropped_and_kept(state: dict[str, Any]) -> None:
    promised = pool(WINDOW, intents=(intent("a", "10.0.0.0-10.0.0.0"),), allocations_seen="70")
    assert planned(promised, allocation("a", version=80, **state)).status.allocations_seen == "80"


def test_one_that_leaves_is_released_and_being_deleted_and_ours() -> None:
    assert is_leaving(allocation("a", phase="Released", deleting=True))
    assert not is_leaving(allocation("a", phase="Released"))
    assert not is_leaving(allocation("a", phase="Released", deleting=True, finalizer=False))
    assert not is_leaving(allocation("a", holds="10.0.0.1-10.0.0.1", deleting=True))


# When nothing may be handed out.


def test_a_pool_with_an_obstacle_grants_nothing_keeps_its_promises_and_says_why() -> None:
    promise = intent("a", "10.0.0.0-10.0.0.3")
    made = planned(
        pool(WINDOW, intents=(promise,)),
        allocation("a", 4),
        allocation("b", 4),
        allocation("c", phase="Released", deleting=True, version=300),
        obstacle=NOT_NOW,
    )
    assert not made.granted
    assert reasons(made) == {"b": "PoolNotReady"}
    assert made.refusals[0].message == "NetworkPool vlan40 hands out nothing: it overlaps another one"
    assert made.status.intents == (promise,)
    assert made.status.allocations_seen == "300", "releases go on"
    assert (made.status.total_ips, made.status.allocated_ips) == (32, 4)
    assert [(condition.type, str(condition.status), condition.reason) for condition in made.status.conditions] == [
        ("Ready", "False", "Overlap"),
        ("CapacityWarning", "False", "UtilizationBelowThreshold"),
        ("CapacityCritical", "False", "UtilizationBelowThreshold"),
        ("CapacityExhausted", "False", "UtilizationBelowThreshold"),
    ]


def test_a_pool_that_cannot_be_read_still_acknowledges_releases_and_shows_every_condition() -> None:
    broken = pool("10.0.0.0-10.0.0.31", reserved=("10.0.0.0/28", "10.0.0.0/29"), total_ips=32, allocated_ips=5)
    why = NotHandingOut(PoolReason.VALIDATION_FAILED, "spec.reserved[1].cidr: overlaps")
    made = planned(
        broken,
        allocation("held", holds="10.0.0.1-10.0.0.5"),
        allocation("asks"),
        allocation("leaves", phase="Released", deleting=True, version=300),
        obstacle=why,
    )
    assert made.status.allocations_seen == "300"
    assert reasons(made) == {"asks": "PoolNotReady"}
    assert "spec.reserved[1].cidr" in made.refusals[0].message
    assert (made.status.total_ips, made.status.allocated_ips, made.status.allocation_count) == (32, 5, 1)
    assert [condition.type for condition in made.status.conditions] == [
        "Ready",
        "CapacityWarning",
        "CapacityCritical",
        "CapacityExhausted",
    ]
    assert not made.notices


# Batches.


def many(number: int) -> list[Any]:
    return [allocation(f"a{index:04}", age=number - index) for index in range(number)]


def test_a_batch_carries_so_many_grants_and_the_oldest_first() -> None:
    made = planned(pool(cidr="10.0.0.0/16"), *many(MOST_INTENTS + 88))
    assert [item.name for item in made.granted] == [f"a{index:04}" for index in range(MOST_INTENTS)]
    assert made.left_over
    assert not made.refusals, "those who were not looked at are not refused"
    assert made.status.allocated_ips == MOST_INTENTS


def test_promises_that_are_open_take_room_in_the_batch() -> None:
    waiting = many(600)
    promises = tuple(
        intent(request.metadata.name, f"10.1.0.{i % 250}-10.1.0.{i % 250}") for i, request in enumerate(waiting)
    )
    half_full = planned(pool(cidr="10.0.0.0/16", intents=promises[:500]), *waiting)
    assert len(half_full.granted) == MOST_INTENTS - 500
    assert half_full.left_over
    full = planned(pool(cidr="10.0.0.0/16", intents=promises[:MOST_INTENTS]), *waiting)
    assert not full.granted
    assert not full.refusals
    assert full.left_over


def test_exactly_a_batch_leaves_nothing_over() -> None:
    made = planned(pool(cidr="10.0.0.0/16"), *many(MOST_INTENTS))
    assert (len(made.granted), made.left_over) == (MOST_INTENTS, False)


# Counters and rest.


def test_the_counters_are_those_of_the_moment_after_the_grants() -> None:
    made = planned(
        pool(WINDOW),
        allocation("held", holds="10.0.0.8-10.0.0.15"),
        allocation("asks", 4),
        allocation("elsewhere", holds="10.0.0.20-10.0.0.21", of="another"),
    )
    status = made.status
    assert grants(made) == {"asks": "10.0.0.16-10.0.0.19"}, "the hole of 4 beside what the other pool's tenant holds"
    assert (status.total_ips, status.allocated_ips, status.available_ips) == (32, 14, 18)
    assert status.allocation_count == 2, "the other one does not name this pool"
    assert (status.largest_free_block, status.fragmentation_percent) == (10, 45)
    assert status.conditions[0].message == "18 of 32 addresses available, 2 allocations"
    assert status.observed_generation == 1


def test_deciding_again_about_the_same_changes_nothing() -> None:
    world = [allocation("a", 4), allocation("b", 30), allocation("c", holds="10.0.0.0-10.0.0.1")]
    once = after(pool(WINDOW), *world)
    assert after(once, *world).status == once.status


def test_when_all_is_carried_out_the_only_thing_left_is_to_forget_the_promises() -> None:
    reserved = after(pool(WINDOW), allocation("a", 4), allocation("b", 4))
    done = [allocation("a", holds="10.0.0.0-10.0.0.3", version=110), allocation("b", 4)]
    half = planned(reserved, *done)
    assert only_forgets_intents(reserved.status, half)
    assert [item.name for item in half.status.intents] == ["b"]
    assert half.status.allocations_seen == "110"


@pytest.mark.parametrize(
    ("story", "more"),
    [
        ("there is a grant to make", [allocation("c", 4)]),
        ("addresses came back", []),
    ],
)
def test_whatever_else_is_to_be_written_does_not_wait(story: str, more: list[Any]) -> None:
    reserved = after(pool(WINDOW), allocation("a", 4), allocation("b", 4))
    world = [allocation("a", holds="10.0.0.0-10.0.0.3", version=110), *more]
    if more:
        world.append(allocation("b", 4))
    made = planned(reserved, *world)
    assert not only_forgets_intents(reserved.status, made), story


def test_an_acknowledgement_that_a_request_waits_for_is_not_put_off() -> None:
    reserved = after(pool(WINDOW), allocation("a", 4))
    made = planned(
        reserved,
        allocation("a", holds="10.0.0.0-10.0.0.3", version=110),
        allocation("refused-and-deleted", 99, phase="Released", deleting=True, version=120),
    )
    assert made.status.allocations_seen == "120"
    assert not only_forgets_intents(reserved.status, made), "kubectl delete would hang meanwhile"


def test_nothing_to_write_is_nothing_to_forget() -> None:
    reserved = after(pool(WINDOW), allocation("a", 4))
    assert not only_forgets_intents(reserved.status, planned(reserved, allocation("a", 4)))


def test_a_put_off_promise_that_cannot_be_read_is_no_open_one() -> None:
    world = [allocation("a", 4), allocation("b", 4)]
    subject = pool(WINDOW, intents=(intent("a", "x-y"), intent("b", "10.0.0.0-10.0.0.3")))
    assert [open_intent.name for open_intent in open_intents(subject, view_of(world, holdings_of(*world)))] == ["b"]
