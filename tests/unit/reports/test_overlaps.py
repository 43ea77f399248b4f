"""What two share and must not: every kind of finding, and none where there is none."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from butler.ipam.addresses import Family, address_text
from butler.reports.pool.overlaps import OverlapTrouble, overlaps
from unit.webhooks.given import granted, intents, pool, reserved


def test_nothing_is_found_where_all_is_well() -> None:
    pools = [pool("one", "10.40.0.0/24"), pool("two", "10.40.1.0/24"), pool("bad", "banana")]
    held = [granted("a", "10.40.0.1", "10.40.0.4", of="one"), granted("b", "10.40.0.5", "10.40.0.9", of="one")]
    assert overlaps(pools, held) == []


def test_pools_that_overlap_by_what_they_want_or_by_what_they_still_hand_out() -> None:
    pools = [
        pool("one", "10.40.0.0/24"),
        pool("lab/two", "10.40.0.128/25"),
        pool("moved", "10.50.0.0/24", status={"claimedCIDR": "10.60.0.0/24"}),
        pool("new", "10.60.0.0/25"),
    ]
    first, second = overlaps(pools, [])
    assert (first.trouble, first.start, first.end, first.count) == (
        OverlapTrouble.POOLS,
        "10.40.0.128",
        "10.40.0.255",
        128,
    )
    assert first.subjects == ("NetworkPool home/one", "NetworkPool lab/two")
    assert "10.60.0.0/24, which it still hands out from" in second.message


def test_an_address_that_two_hold_or_one_holds_and_one_is_promised() -> None:
    rack = pool(status=intents(("coming", "10.40.0.30", "10.40.0.33")))
    held = [
        granted("one", "10.40.0.8", "10.40.0.15"),
        granted("two", "10.40.0.12", "10.40.0.19"),
        granted("three", "10.40.0.32", "10.40.0.39"),
        granted("coming", "10.40.0.30", "10.40.0.33", phase="Pending"),
    ]
    first, second = overlaps([rack], held)
    assert (first.trouble, first.start, first.end) == (OverlapTrouble.TWICE, "10.40.0.12", "10.40.0.15")
    assert second.message.startswith("IPAllocation home/coming is being granted 10.40.0.32-10.40.0.33, and")


def test_allocations_outside_their_pool_without_one_or_without_sense() -> None:
    held = [
        granted("in-block", "10.40.0.4", "10.40.0.4"),
        granted("far", "10.99.0.1", "10.99.0.2"),
        granted("orphan", "10.98.0.1", "10.98.0.2", of="gone"),
        granted("absurd", "banana", "10.40.0.9"),
        granted("released", "10.97.0.1", "10.97.0.2", phase="Released"),
    ]
    found = {
        overlap.subjects[0].rpartition("/")[2]: overlap
        for overlap in overlaps([pool(**reserved("10.40.0.0/28"))], held)
    }
    assert {name: overlap.trouble for name, overlap in found.items()} == {
        "in-block": OverlapTrouble.OUTSIDE,
        "far": OverlapTrouble.OUTSIDE,
        "orphan": OverlapTrouble.NO_POOL,
        "absurd": OverlapTrouble.UNREADABLE,
    }
    assert found["far"].count == 2
    assert all(": " in text.message for text in found.values()), "each says what to do"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 200), st.integers(0, 12)), max_size=10))
def test_two_holders_are_found_just_where_there_are_two(spans: list[tuple[int, int]]) -> None:
    base = 0x0A280000
    held = [
        granted(f"a{index}", address_text(base + at, Family.V4), address_text(base + at + more, Family.V4))
        for index, (at, more) in enumerate(spans)
    ]
    sharing = {
        f"IPAllocation home/a{one}"
        for one, (at, more) in enumerate(spans)
        for other, (at_2, more_2) in enumerate(spans)
        if one != other and at <= at_2 + more_2 and at_2 <= at + more
    }
    found = [overlap for overlap in overlaps([pool()], held) if overlap.trouble is OverlapTrouble.TWICE]
    assert {name for finding in found for name in finding.subjects} == sharing
