"""Advice: what stands between holes, what it would cost to take it away, and exactly what would be there then."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import msgspec
import pytest

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import Intent, NetworkPool
from butler.ipam.addresses import range_text
from butler.ipam.free_space import FreeSpace
from butler.ipam.layout import read_layout
from butler.reports.estate import Estate
from butler.reports.pool.advice import ObstacleUse, PoolAdvice, advise
from butler.rules.allocation.held import readable_range
from unit.reports.random_estates import HOME, NOW, make

GROWTH = {"butler.butlerlabs.dev/allocation-role": "growth"}


def pool(*windows: str, reserved: tuple[str, ...] = (), cidr: str = "10.40.0.0/26") -> NetworkPool:
    spec: dict[str, Any] = {"cidr": cidr, "reserved": [{"cidr": text, "description": "switches"} for text in reserved]}
    if windows:
        ends = [window.split("-") for window in windows]
        spec["tenantAllocation"] = {"ranges": [{"start": start, "end": end} for start, end in ends]}
    return from_json(NetworkPool, {"metadata": {"name": "vlan40", "namespace": HOME}, "spec": spec})


def block(name: str, holds: str = "", *, count: int = 1, pinned: bool = False, **more: Any) -> IPAllocation:
    start, _, end = holds.partition("-")
    status: dict[str, Any] = {"phase": "Failed"}
    if holds:
        status = {"phase": "Allocated", "startAddress": start, "endAddress": end or start}
    found = more.pop("found", True)
    condition = {
        "type": "TenantFound", "status": "True" if found else "False", "reason": "Found", "message": "",
        "lastTransitionTime": NOW.isoformat(),
    }  # fmt: skip
    labels = more.pop("labels", {})
    spec: dict[str, Any] = {"count": count}
    if pinned:
        spec = {"pinnedRange": {"startAddress": start, "endAddress": end or start}}
    return from_json(
        IPAllocation,
        {
            "metadata": {"name": name, "namespace": HOME, "uid": f"uid-{name}", "labels": labels},
            "spec": {
                "poolRef": {"name": "vlan40"},
                "tenantClusterRef": {"name": name, "namespace": "team"},
                "type": "loadbalancer",
                **spec,
            },
            "status": {**status, "conditions": [condition], **more},
        },
    )


def about(of: NetworkPool, *blocks: IPAllocation) -> PoolAdvice:
    return advise(of, Estate(HOME, (of,), blocks))


def told(advice: PoolAdvice) -> list[tuple[list[str], int, str]]:
    return [
        ([block.name for block in opening.blocks], opening.live, range_text(opening.hole, advice.family))
        for opening in advice.openings
    ]


IDLE: dict[str, Any] = {"labels": GROWTH, "idleSince": (NOW - timedelta(hours=2)).isoformat()}


def test_an_idle_block_comes_before_one_in_use_and_both_are_told_for_what_they_are() -> None:
    advice = about(
        pool(),
        block("in-use", "10.40.0.10-10.40.0.19"),
        block("idle", "10.40.0.30-10.40.0.33", **IDLE),
        block("far", "10.40.0.50-10.40.0.62"),
    )
    assert told(advice) == [
        (["idle"], 0, "10.40.0.20-10.40.0.49"),
        (["in-use", "idle"], 10, "10.40.0.1-10.40.0.49"),
        (["in-use", "idle", "far"], 23, "10.40.0.1-10.40.0.62"),
    ]
    assert [obstacle.use for obstacle in advice.openings[0].blocks] == [ObstacleUse.IDLE]
    assert all(opening.live for opening in advice.openings[1:]), "what is in use is never free"
    assert [obstacle.name for obstacle in advice.unused] == ["idle"]


def test_unused_blocks_that_follow_each_other_go_together() -> None:
    advice = about(
        pool(),
        block("a", "10.40.0.10-10.40.0.19", **IDLE),
        block("b", "10.40.0.20-10.40.0.29", drainingSince=NOW.isoformat()),
        block("c", "10.40.0.40-10.40.0.44", found=False, tenantClusterUID="u"),
    )
    assert told(advice)[0] == (["a", "b", "c"], 0, "10.40.0.1-10.40.0.62")
    assert [obstacle.use for obstacle in advice.openings[0].blocks] == [
        ObstacleUse.IDLE,
        ObstacleUse.DRAINING,
        ObstacleUse.OWNERLESS,
    ]


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ({}, ObstacleUse.IN_USE),
        ({"idleSince": NOW.isoformat()}, ObstacleUse.IN_USE),  # not growth: Butler never takes it back
        ({"labels": GROWTH, "idleSince": NOW.isoformat()}, ObstacleUse.IDLE),
        ({"drainingSince": NOW.isoformat()}, ObstacleUse.DRAINING),
        ({"found": False}, ObstacleUse.IN_USE),  # never seen: what runs there is not for Butler to see
        ({"found": False, "tenantClusterUID": "u"}, ObstacleUse.OWNERLESS),
        ({"found": False, "pinned": True}, ObstacleUse.IN_USE),
    ],
)
def test_a_block_is_free_to_go_only_where_it_cannot_be_in_use(options: dict[str, Any], use: ObstacleUse) -> None:
    advice = about(pool(), block("x", "10.40.0.30-10.40.0.33", **options))
    assert [obstacle.use for opening in advice.openings for obstacle in opening.blocks] == [use]
    assert advice.openings[0].live == (4 if use is ObstacleUse.IN_USE else 0)


def test_what_is_reserved_is_thought_of_last() -> None:
    advice = about(pool(reserved=("10.40.0.32/29",)), block("x", "10.40.0.16-10.40.0.17"))
    assert told(advice) == [(["x"], 2, "10.40.0.1-10.40.0.31"), (["10.40.0.32/29"], 0, "10.40.0.18-10.40.0.62")]
    assert advice.openings[1].asks_for_reserved
    assert not advice.openings[1].is_free


def test_no_hole_reaches_over_the_end_of_a_window() -> None:
    advice = about(
        pool("10.40.0.0-10.40.0.15", "10.40.0.16-10.40.0.31"), block("x", "10.40.0.12-10.40.0.13", found=False)
    )
    assert advice.capacity is not None
    assert (advice.capacity.largest_free_block, advice.openings) == (16, ())


def test_requests_that_wait_are_named_and_so_is_what_would_let_them_in() -> None:
    advice = about(
        pool(), block("idle", "10.40.0.30-10.40.0.33", **IDLE), block("big", count=60), block("small", count=3)
    )
    assert advice.waiting == (("big", 60),)
    assert advice.openings[0].meets == ("big",)


def test_a_full_pool_an_empty_one_and_one_that_makes_no_sense() -> None:
    assert about(pool(), block("all", "10.40.0.1-10.40.0.62")).holes == ()
    assert about(pool()).openings == ()
    assert "hands out nothing" in about(pool("10.41.0.1-10.41.0.2")).problem


def test_a_grant_counts_until_its_allocation_says_what_it_holds_or_is_gone() -> None:
    promise = Intent(uid="uid-late", name="late", start_address="10.40.0.10", end_address="10.40.0.13")
    granting = msgspec.structs.replace(pool(), status=msgspec.structs.replace(pool().status, intents=(promise,)))

    def allocated(*blocks: IPAllocation) -> int:
        capacity = about(granting, *blocks).capacity
        assert capacity is not None
        return capacity.allocated

    assert allocated(block("late")) == 4
    assert allocated(block("late", "10.40.0.20-10.40.0.21")) == 2
    assert allocated() == 0, "the request it was promised to is gone"


def test_the_hole_is_exactly_the_one_that_the_allocator_would_have() -> None:
    """In random estates: take the blocks away, and the hole is there, and it is longer than the longest now."""
    seen = 0
    for seed in range(150):
        made = make(Random(seed), 40)
        estate = made.estate()
        for item in estate.pools:
            advice = advise(item, estate)
            for opening in advice.openings:
                seen += 1
                gone = {block.name for block in opening.blocks}
                kept = tuple(block for block in item.spec.reserved if block.cidr not in gone)
                layout = read_layout(msgspec.structs.replace(item.spec, reserved=kept))
                held = [found[1] for one in estate.allocations if one.metadata.name not in gone
                        if (found := readable_range(one))]  # fmt: skip
                free = FreeSpace.without(layout.usable, held)
                assert opening.hole in set(free.extents()), f"seed {seed}: {opening}"
                assert advice.capacity is not None
                assert opening.hole.size == advice.capacity.largest_free_block + opening.gain
    assert seen > 200
