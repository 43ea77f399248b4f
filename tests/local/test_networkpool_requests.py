"""Requests that are met, and requests that are not: each reason with its message, and none delays another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from ipam_operator import ALLOCATIONS, POOLS, Desk, RunningOperator, allocation, condition, fresh_desk, pool

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture
def desk(control_plane: ControlPlane, definitions: None) -> Iterator[Desk]:
    with fresh_desk(control_plane) as found, RunningOperator(control_plane, found.namespace):
        yield found


def test_a_missing_pool_is_said_to_be_missing_and_helps_as_soon_as_it_appears(desk: Desk) -> None:
    desk.ask("early", 4, of="later")
    assert desk.failed("early", "PoolNotFound") == (
        f"there is no NetworkPool later in namespace {desk.namespace}:"
        " create it, or delete this request and name another pool"
    )
    desk.until(lambda: desk.events("IPAllocation", "early"), "an event tells it")
    assert desk.events("IPAllocation", "early")[0][:2] == ("Warning", "AllocationFailed")
    desk.pool("later", "10.1.0.0/24", "10.1.0.8-10.1.0.15")
    assert desk.granted("early") == "10.1.0.8-10.1.0.11"
    desk.delete(POOLS, "later")
    desk.ask("late", 1, of="later")
    assert "being deleted" in desk.failed("late", "PoolNotReady")


def test_a_request_for_a_missing_pool_can_be_deleted(desk: Desk) -> None:
    desk.ask("a", of="nowhere")
    desk.failed("a", "PoolNotFound")
    desk.delete(ALLOCATIONS, "a")
    desk.gone(ALLOCATIONS, "a")


def test_who_cannot_be_met_is_told_what_was_free_and_gets_it_when_it_is_freed(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    for name, count in (("a", 4), ("b", 4), ("c", 6)):
        desk.ask(name, count)
        desk.granted(name)
    desk.ask("more", 3)
    assert desk.failed("more", "PoolExhausted") == (
        "needs 3 contiguous addresses; pool has 2 of 16 free (10.1.0.14-10.1.0.15):"
        " release an allocation, ask for 2 or fewer, or add a window"
    )
    asked = (desk.get(ALLOCATIONS, "more") or {})["metadata"]["creationTimestamp"]
    waits = condition(desk.status(ALLOCATIONS, "more"), "Waiting")
    assert (waits["status"], waits["message"]) == (
        "True",
        f"waits for room since {asked}; no younger request has been met before it",
    )
    desk.ask("fits", 2)
    assert desk.granted("fits") == "10.1.0.14-10.1.0.15", "one that waits holds up no other"
    desk.ask("any", 1)
    assert desk.failed("any", "PoolExhausted") == (
        "needs 1 address; all 16 of pool are taken: release an allocation or add a window"
    )

    desk.delete(ALLOCATIONS, "b")
    # Asked for within the same second, so either may come first.
    freed = (desk.granted("more"), desk.granted("any"))
    assert freed in (("10.1.0.4-10.1.0.6", "10.1.0.7-10.1.0.7"), ("10.1.0.5-10.1.0.7", "10.1.0.4-10.1.0.4"))
    assert all(said["type"] != "Waiting" for said in desk.status(ALLOCATIONS, "more")["conditions"])
    desk.counted("pool", allocatedIPs=16, availableIPs=0, allocationCount=5, largestFreeBlock=0)


def test_enough_addresses_in_pieces_are_told_from_too_few(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ask("left", pinned="10.1.0.3-10.1.0.4")
    desk.ask("right", pinned="10.1.0.10-10.1.0.10")
    desk.granted("left")
    desk.granted("right")
    desk.ask("wide", 6)
    assert desk.failed("wide", "PoolFragmented") == (
        "needs 6 contiguous addresses; pool has 13 free, but the longest run is 5 (10.1.0.5-10.1.0.9),"
        " then 5 (10.1.0.11-10.1.0.15), then 3 (10.1.0.0-10.1.0.2):"
        " release a neighbour, ask for 5 or fewer, or add a window"
    )
    desk.counted("pool", largestFreeBlock=5, fragmentationPercent=62)
    desk.delete(ALLOCATIONS, "right")
    assert desk.granted("wide") == "10.1.0.5-10.1.0.10"


def test_a_pinned_range_that_is_held_names_its_holder_and_is_granted_when_it_lets_go(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", reserved=("10.1.0.64/28",))
    desk.ask("holder", pinned="10.1.0.8-10.1.0.11")
    desk.granted("holder")
    desk.ask("heir", pinned="10.1.0.10-10.1.0.19")
    assert desk.failed("heir", "PinnedRangeConflict") == (
        "10.1.0.10-10.1.0.19 is pinned, but 10.1.0.10 is held by holder: pin a free range or release that allocation"
    )
    desk.ask("beside", pinned="10.1.0.12-10.1.0.12")
    assert desk.granted("beside") == "10.1.0.12-10.1.0.12"
    desk.ask("reserved", pinned="10.1.0.60-10.1.0.70")
    assert "10.1.0.64 is reserved by 10.1.0.64/28" in desk.failed("reserved", "PinnedRangeConflict")
    desk.delete(ALLOCATIONS, "holder")
    desk.delete(ALLOCATIONS, "beside")
    assert desk.granted("heir") == "10.1.0.10-10.1.0.19"


def test_a_pinned_range_outside_the_pool_is_told_what_the_pool_has(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.8-10.1.0.15", "10.1.0.32-10.1.0.63")
    desk.ask("outside", pinned="10.1.0.100-10.1.0.101")
    desk.ask("astride", pinned="10.1.0.14-10.1.0.33")
    desk.ask("elsewhere", pinned="192.168.0.1-192.168.0.1")
    assert "outside what pool hands out" in desk.failed("outside", "PinnedRangeOutOfPool")
    assert "make one allocation for each window" in desk.failed("astride", "PinnedRangeOutOfPool")
    assert "outside what pool hands out" in desk.failed("elsewhere", "PinnedRangeOutOfPool")
    desk.edit(POOLS, "pool", {"spec": {"tenantAllocation": None}})
    assert desk.granted("outside") == "10.1.0.100-10.1.0.101", "an edited pool gives it another chance"


def test_pinned_requests_of_a_batch_come_before_older_ones(control_plane: ControlPlane, definitions: None) -> None:
    with fresh_desk(control_plane) as desk:
        desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.7")
        desk.ask("first", 4)
        desk.ask("second", 4)
        desk.ask("pinned", pinned="10.1.0.0-10.1.0.3")
        with RunningOperator(control_plane, desk.namespace):
            assert desk.granted("pinned") == "10.1.0.0-10.1.0.3"
            desk.counted("pool", allocatedIPs=8, availableIPs=0)

            def phases() -> set[str]:
                return {desk.status(ALLOCATIONS, name)["phase"] for name in ("first", "second")}

            desk.until(lambda: phases() == {"Allocated", "Failed"}, "what is left goes to one of the others")


def test_a_request_without_a_count_gets_the_pools_default(desk: Desk) -> None:
    wanted = pool("pool", "10.1.0.0/24")
    wanted["spec"]["tenantAllocation"] = {"defaults": {"nodesPerTenant": 3, "lbPoolPerTenant": 16}}
    desk.create(POOLS, wanted)
    desk.ask("n")
    assert desk.granted("n") == "10.1.0.1-10.1.0.3", "the network's own address is not handed out"
    desk.ask("lb", kind="loadbalancer")
    assert desk.granted("lb") == "10.1.0.4-10.1.0.19"
    assert desk.status(ALLOCATIONS, "lb")["allocatedCount"] == 16


def test_the_network_is_shown_only_where_the_range_is_one(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.8-10.1.0.40")
    desk.ask("aligned", 8)
    assert desk.granted("aligned") == "10.1.0.8-10.1.0.15"
    desk.ask("odd", 5)
    desk.granted("odd")
    assert desk.status(ALLOCATIONS, "aligned")["cidr"] == "10.1.0.8/29"
    assert "cidr" not in desk.status(ALLOCATIONS, "odd")


def test_an_allocation_made_by_hand_gets_its_finalizer_before_its_addresses(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24")
    since = desk.version(ALLOCATIONS)
    desk.ask("by-hand", 2, finalizer=False)
    desk.granted("by-hand")
    desk.delete(ALLOCATIONS, "by-hand")
    states = [
        (bool(obj["object"]["metadata"].get("finalizers")), obj["object"]["status"]["phase"])
        for obj in desk.history(ALLOCATIONS, "by-hand", since)
    ]
    assert states[:3] == [(False, "Pending"), (True, "Pending"), (True, "Allocated")]
    assert states[-1][1] == "Released"


# Bad input.


NET = "10.1.0.0/24"


def windowed(**tenant_allocation: Any) -> dict[str, Any]:
    return {"cidr": NET, "tenantAllocation": tenant_allocation}


@pytest.mark.parametrize(
    ("story", "spec", "says"),
    [
        ("no network", {"cidr": "10.1.0.0"}, "spec.cidr"),
        ("words", {"cidr": "ten-dot-one"}, "spec.cidr"),
        ("999", {"cidr": "999.999.999.999/24"}, "spec.cidr"),
        ("prefix 99", {"cidr": "10.1.0.0/99"}, "spec.cidr"),
        ("host bits", {"cidr": "10.1.0.7/24"}, "10.1.0.7/24 has bits set after its prefix"),
        ("too large", {"cidr": "0.0.0.0/0"}, "the prefix must be /8 or longer"),
        ("IPv6", {"cidr": "fd00::/64"}, "spec.cidr"),
        ("backwards", windowed(start="10.1.0.9", end="10.1.0.2"), "end 10.1.0.2 comes before start 10.1.0.9"),
        ("a start alone", windowed(start="10.1.0.9"), "a window with a start needs an end"),
        ("outside", windowed(start="10.1.0.9", end="10.2.0.2"), "end 10.2.0.2 is outside the pool's cidr 10.1.0.0/24"),
        ("window 999", windowed(start="10.1.0.9", end="999.999.999.999"), "spec.tenantAllocation.end"),
        (
            "reserved outside",
            {"cidr": NET, "reserved": [{"cidr": "10.2.0.0/28"}]},
            "reserved block 10.2.0.0/28 is outside the pool's cidr 10.1.0.0/24",
        ),
        ("reserved host bits", {"cidr": NET, "reserved": [{"cidr": "10.1.0.1/28"}]}, "spec.reserved[0].cidr"),
        ("default 0", windowed(defaults={"nodesPerTenant": 0}), "nodesPerTenant"),
    ],
)
def test_a_bad_pool_is_refused_by_the_server(
    control_plane: ControlPlane, definitions: None, story: str, spec: dict[str, Any], says: str
) -> None:
    with closing(Desk(control_plane, "default")) as desk:
        said = desk.refused(POOLS, {**pool("bad", "10.1.0.0/24"), "spec": spec})
    assert says in said, story


def pinned(start: str, end: str | None = None) -> dict[str, Any]:
    return {"pinnedRange": {"startAddress": start} | ({"endAddress": end} if end else {})}


@pytest.mark.parametrize(
    ("story", "spec", "says"),
    [
        ("none", {"count": 0}, "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1"),
        ("less than none", {"count": -1}, "spec.count"),
        ("65,537", {"count": 65537}, "spec.count in body should be less than or equal to 65536"),
        ("pinned backwards", pinned("10.1.0.9", "10.1.0.2"), "spec.pinnedRange"),
        ("pinned 999", pinned("999.999.999.999", "999.999.999.999"), "spec.pinnedRange.startAddress"),
        ("pinned 65,537", pinned("10.1.0.0", "10.2.0.0"), "one allocation may hold at most 65536 addresses"),
        ("pinned halfway", pinned("10.1.0.0"), "spec.pinnedRange.endAddress: Required value"),
        ("no pool", {"poolRef": {"name": ""}}, "spec.poolRef.name"),
        ("no such type", {"type": "both"}, 'supported values: "nodes", "loadbalancer"'),
    ],
)
def test_a_bad_request_is_refused_by_the_server(
    control_plane: ControlPlane, definitions: None, story: str, spec: dict[str, Any], says: str
) -> None:
    asked = allocation("bad")
    with closing(Desk(control_plane, "default")) as desk:
        said = desk.refused(ALLOCATIONS, {**asked, "spec": {**asked["spec"], **spec}})
    assert says in said, story


def test_what_the_server_cannot_refuse_fails_with_advice_and_holds_up_no_other(desk: Desk) -> None:
    """Everything bad at once, all of it older than the one request that is good."""
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.31", reserved=("10.1.0.16/30",))
    desk.pool("edge", "10.2.0.0/24", "10.2.0.8-10.2.0.31", reserved=("10.2.0.0/28",))
    desk.pool("twice", "10.3.0.0/24", reserved=("10.3.0.0/28", "10.3.0.8/29"))
    desk.pool("nothing", "10.4.0.0/24", reserved=("10.4.0.0/24",))
    bad = {
        "beyond": allocation("beyond", 65536),
        "too-many": allocation("too-many", 33),
        "outside": allocation("outside", pinned="10.1.0.30-10.1.0.33"),
        "elsewhere": allocation("elsewhere", pinned="172.16.0.1-172.16.0.9"),
        "reserved": allocation("reserved", pinned="10.1.0.19-10.1.0.20"),
        "no-pool": allocation("no-pool", of="no-such-pool"),
        "of-edge": allocation("of-edge", of="edge"),
        "of-twice": allocation("of-twice", of="twice"),
        "of-nothing": allocation("of-nothing", of="nothing"),
    }
    with ThreadPoolExecutor(4) as hands:
        list(hands.map(lambda item: desk.create(ALLOCATIONS, item), bad.values()))
    desk.ask("good", 8)
    assert desk.granted("good")

    advice = {
        "beyond": ("PoolExhausted", "pool hands out 28 in all: ask for 16 or fewer, or add a window"),
        "too-many": ("PoolExhausted", "ask for 16 or fewer, or add a window"),
        "outside": ("PinnedRangeOutOfPool", "pin a range inside, or widen spec.tenantAllocation of the pool"),
        "elsewhere": ("PinnedRangeOutOfPool", "pin a range inside, or widen spec.tenantAllocation of the pool"),
        "reserved": ("PinnedRangeConflict", "pin a range outside that block, or take the block out of spec.reserved"),
        "no-pool": ("PoolNotFound", "create it, or delete this request and name another pool"),
        "of-edge": ("PoolNotReady", "spec.reserved[0].cidr: 10.2.0.0/28 crosses the edge of window"),
        "of-twice": (
            "PoolNotReady",
            "spec.reserved[1].cidr: 10.3.0.8/29 overlaps 10.3.0.0/28 of spec.reserved[0].cidr",
        ),
        "of-nothing": ("PoolNotReady", "reserve less of it"),
    }
    for name, (reason, says) in advice.items():
        assert says in desk.failed(name, reason), name
    assert "crosses the edge" in desk.ready("edge", "ValidationFailed")
    for name in ("edge", "twice", "nothing"):
        tiers = [
            condition(desk.status(POOLS, name), f"Capacity{text}") for text in ("Warning", "Critical", "Exhausted")
        ]
        assert [tier["status"] for tier in tiers] == ["False"] * 3, f"{name} shows all its conditions"
    for name in bad:
        desk.delete(ALLOCATIONS, name)
    for name in bad:
        desk.gone(ALLOCATIONS, name)
