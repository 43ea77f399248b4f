"""Allocations that come back from a backup, without status: they get what they had, and no other allocation does."""

from __future__ import annotations

import pytest

from butler.ipam.granted import is_from_another_life
from butler.rules.allocation.owner import recorded_owner
from unit.controllers.networkpool.values import allocation, grants, planned, pool, reasons

WINDOW = "10.0.0.0-10.0.0.15"
HAD = "10.0.0.4-10.0.0.7"


@pytest.mark.parametrize("uid", ["uid-back", "another"])
def test_it_gets_exactly_what_it_had_whatever_others_ask(uid: str) -> None:
    made = planned(
        pool(WINDOW),
        allocation("pinned", pinned="10.0.0.6-10.0.0.9", count=None, age=99),
        allocation("large", 8, age=90),
        allocation("small", 1, age=90),
        allocation("back", 4, had=f"{HAD} {uid}"),
    )
    assert grants(made) == {"back": HAD, "large": "10.0.0.8-10.0.0.15", "small": "10.0.0.0-10.0.0.0"}
    assert reasons(made) == {"pinned": "PinnedRangeConflict"}


def test_what_it_had_is_kept_from_others_before_it_may_be_granted_anything() -> None:
    """A backup brings no finalizers; until ours is there, nothing is granted."""
    made = planned(pool(WINDOW), allocation("new", 12, age=9), allocation("back", 4, had=f"{HAD} x", finalizer=False))
    assert grants(made) == {}
    assert reasons(made) == {"new": "PoolFragmented"}


def test_it_waits_and_says_who_holds_what_it_had() -> None:
    made = planned(
        pool(WINDOW),
        allocation("holder", holds="10.0.0.5-10.0.0.5"),
        allocation("back", 4, had=f"{HAD} another"),
        allocation("new", 2),
    )
    assert grants(made) == {"new": "10.0.0.0-10.0.0.1"}, "what it had and is free is kept for it"
    (refusal,) = made.refusals
    assert (refusal.name, refusal.reason) == ("back", "PinnedRangeConflict")
    assert "holder" in refusal.message


@pytest.mark.parametrize(
    "had",
    ["nonsense", "10.0.0.4 another", "10.0.0.7-10.0.0.4 another", "10.0.0.0-10.0.0.15 another", "10.0.0.4-10.0.0.7x a"],
)
def test_a_record_that_does_not_fit_its_request_takes_nothing_from_anyone(had: str) -> None:
    made = planned(pool(WINDOW), allocation("odd", 4, had=had), allocation("new", 16))
    assert grants(made) == {"new": "10.0.0.0-10.0.0.15"}
    assert reasons(made) == {"odd": "InvalidRequest"}


def test_a_record_has_nothing_to_say_while_there_is_a_status() -> None:
    live = allocation("live", holds="10.0.0.0-10.0.0.3", had="10.0.0.8-10.0.0.15 uid-live")
    assert grants(planned(pool(WINDOW), live, allocation("new", 8))) == {"new": "10.0.0.4-10.0.0.11"}


def test_two_that_claim_to_have_had_the_same_get_it_once() -> None:
    made = planned(pool(WINDOW), allocation("one", 4, had=f"{HAD} a", age=5), allocation("two", 4, had=f"{HAD} b"))
    assert grants(made) == {"one": HAD}
    assert reasons(made) == {"two": "PinnedRangeConflict"}


def test_one_from_another_life_is_no_orphan() -> None:
    back = allocation("back", 4, had=f"{HAD} another")
    back.metadata.labels["butler.butlerlabs.dev/tenant-uid"] = "of-that-life"
    assert is_from_another_life(back)
    assert recorded_owner(back) is None
    own = allocation("back", 4, holds=HAD, had=f"{HAD} uid-back")
    own.metadata.labels["butler.butlerlabs.dev/tenant-uid"] = "t1"
    assert recorded_owner(own) == "t1"
