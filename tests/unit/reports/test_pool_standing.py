"""How a pool stands, counted anew: the engine's numbers, and what should not be."""

from __future__ import annotations

import pytest

from butler.api.networkpool import CapacityTier, NetworkPool
from butler.ipam.capacity import tiers
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import InvalidPool, PoolLayout, pool_layout
from butler.reports.pool import segments
from butler.reports.pool.summary import Bucket, Share, buckets, standing_of, summary_of
from unit.ipam.pools import span
from unit.reports.pool_estates import allocation
from unit.webhooks.given import granted, pool, reserved, windows

BASE = 0x0A280000


def test_the_numbers_are_those_of_the_engine() -> None:
    held = [allocation("a", BASE + 16, 20, "team/a"), allocation("b", BASE + 40, 4, "team/b")]
    found = summary_of(pool(**windows(("10.40.0.16", "10.40.0.47"))), held)
    assert found.standing is not None
    counted = found.standing.capacity
    assert (counted.total, counted.allocated, counted.largest_free_block) == (32, 24, 4)
    assert counted.fragmentation_percent == 50
    assert found.standing.tier is CapacityTier.WARNING
    assert not found.wrong


def test_a_tier_begins_at_the_first_number_that_reaches_it() -> None:
    found = summary_of(pool(cidr="10.40.0.0/28"), [allocation("a", BASE + 1, 10)])
    assert [(mark.addresses, mark.reached) for mark in found.tiers] == [(10, True), (12, False), (14, False)]
    assert found.standing is not None
    assert tiers(found.standing.capacity)[CapacityTier.WARNING]


def test_free_blocks_are_counted_by_powers_of_two_with_the_empty_sizes_between() -> None:
    free = FreeSpace([span("10.0.0.1"), span("10.0.0.3"), span("10.0.1.0-10.0.1.4"), span("10.0.2.0-10.0.2.6")])
    assert buckets(free) == (Bucket(1, 1, 2, 2), Bucket(2, 3, 0, 0), Bucket(4, 7, 2, 12))
    assert buckets(FreeSpace([])) == ()


def test_who_holds_most_comes_first() -> None:
    held = [
        allocation("x-nodes", BASE + 16, 2, "team/x"),
        allocation("y-nodes", BASE + 20, 5, "team/y"),
        allocation("x-lb", BASE + 30, 8, "team/x"),
    ]
    assert summary_of(pool(), held).shares == (Share("team/x", 10, 2), Share("team/y", 5, 1))


def test_what_should_not_be_is_said_in_a_sentence_each() -> None:
    held = [
        granted("one", "10.40.0.40", "10.40.0.47"),
        granted("two", "10.40.0.44", "10.40.0.51"),
        granted("in-block", "10.40.0.4", "10.40.0.4"),
        granted("far", "10.99.0.1", "10.99.0.2"),
        granted("stranger", "10.40.0.60", "10.40.0.60", of="other"),
    ]
    assert list(summary_of(pool(**reserved("10.40.0.0/28")), held).wrong) == [
        "10.40.0.4 is not handed out, but held by in-block",
        "10.40.0.44-10.40.0.47 is held by one and two",
        "10.40.0.60 is held by stranger of pool other",
        "far of this pool holds 10.99.0.1-10.99.0.2, which does not lie in 10.40.0.0/24",
    ]


def test_a_pool_that_cannot_be_read_says_why_and_still_who_holds_what() -> None:
    found = summary_of(pool(**windows(("10.40.0.9", "10.40.0.1"))), [granted("web", "10.40.0.40", "10.40.0.47")])
    assert found.standing is None
    assert found.wrong == (
        "hands out nothing: spec.tenantAllocation.ranges[0].end: end 10.40.0.1 comes before start 10.40.0.9",
    )
    assert found.shares == (Share("t/t", 8, 1),)


def test_a_pool_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []

    def counted(subject: NetworkPool) -> PoolLayout:
        parsed.append(subject)
        return pool_layout(subject)

    monkeypatch.setattr(segments, "pool_layout", counted)
    assert summary_of(pool(), []).standing is not None
    assert standing_of(pool(), []).capacity.total == 254
    assert len(parsed) == 2


def test_the_standing_of_a_pool_that_cannot_be_read_is_an_error_with_its_problems() -> None:
    with pytest.raises(InvalidPool, match=r"ranges\[0\]\.end: end 10\.40\.0\.1 comes before start"):
        standing_of(pool(**windows(("10.40.0.9", "10.40.0.1"))), [])


def test_a_status_that_does_not_add_up_is_doubtful() -> None:
    status = {"totalIPs": 254, "allocatedIPs": 99, "availableIPs": 250, "largestFreeBlock": 250}
    found = summary_of(pool(status=status), [granted("web", "10.40.0.1", "10.40.0.4")])
    assert found.doubts == ("status.allocatedIPs is 99, a recount gives 4",)
