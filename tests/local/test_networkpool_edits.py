"""Pools that are edited, broken, overlapping, deleted and made again without admission: no address is lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ipam_operator import ALLOCATIONS, POOLS, Desk, RunningOperator, condition, fresh_desk, tenant_allocation
from local.older_definition import older_definition, write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture
def desk(control_plane: ControlPlane, definitions: None) -> Iterator[Desk]:
    with fresh_desk(control_plane) as found, RunningOperator(control_plane, found.namespace):
        yield found


def register(desk: Desk) -> dict[str, str]:
    """The claims, by pool."""
    code, found = desk.send("GET", f"/api/v1/namespaces/{desk.namespace}/configmaps/butler-network-claims")
    assert code in (200, 404)
    return {name.split(".", 1)[1]: text.split()[0] for name, text in found.get("data", {}).items()}


# Edits.


def test_a_pool_that_grows_hands_out_its_new_space(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/28")
    desk.ask("a", 14)
    assert desk.granted("a") == "10.1.0.1-10.1.0.14"
    desk.ask("b", 16)
    desk.failed("b", "PoolExhausted")
    desk.edit(POOLS, "pool", {"spec": {"cidr": "10.1.0.0/24"}})
    assert desk.granted("b") == "10.1.0.15-10.1.0.30"
    assert desk.granted("a") == "10.1.0.1-10.1.0.14"
    desk.counted("pool", totalIPs=254, allocatedIPs=30, claimedCIDR="10.1.0.0/24")
    assert register(desk) == {"pool": "10.1.0.0/24"}


def test_a_pool_that_shrinks_keeps_the_claim_to_what_is_held_until_it_is_released(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24")
    desk.ask("low", 4)
    desk.granted("low")
    desk.ask("high", pinned="10.1.0.200-10.1.0.203")
    desk.granted("high")
    desk.edit(POOLS, "pool", {"spec": {"cidr": "10.1.0.0/25"}})
    status = desk.counted("pool", totalIPs=126, allocatedIPs=4, availableIPs=122, allocationCount=2)
    assert status["claimedCIDR"] == "10.1.0.0/24", "no other pool may have what is still held"
    assert "outside what the pool hands out now, but still held: high" in desk.ready("pool")
    desk.pool("neighbour", "10.1.0.128/25")
    desk.ready("neighbour", "Overlap")
    desk.ask("more", 100)
    desk.granted("more")
    assert desk.granted("high") == "10.1.0.200-10.1.0.203"

    desk.delete(ALLOCATIONS, "high")
    desk.gone(ALLOCATIONS, "high")
    desk.ready("neighbour")
    assert register(desk) == {"pool": "10.1.0.0/25", "neighbour": "10.1.0.128/25"}


def test_a_pool_moves_only_when_no_allocation_is_left_behind(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24")
    desk.ask("a", 4)
    desk.granted("a")
    desk.edit(POOLS, "pool", {"spec": {"cidr": "10.2.0.0/24"}})
    assert desk.ready("pool", "ValidationFailed") == (
        "it cannot move from 10.1.0.0/24 to 10.2.0.0/24 while a holds addresses there:"
        " change the cidr back, or release them"
    )
    desk.ask("b", 4)
    assert "it cannot move" in desk.failed("b", "PoolNotReady")
    assert desk.granted("a") == "10.1.0.1-10.1.0.4"
    desk.delete(ALLOCATIONS, "a")
    assert desk.granted("b") == "10.2.0.1-10.2.0.4"
    assert register(desk) == {"pool": "10.2.0.0/24"}


def test_a_reserved_block_over_live_allocations_takes_nothing_from_them(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.31")
    desk.ask("a", 8)
    desk.ask("b", 8)
    held = {desk.granted("a"), desk.granted("b")}
    desk.edit(POOLS, "pool", {"spec": {"reserved": [{"cidr": "10.1.0.4/30"}, {"cidr": "10.1.0.16/29"}]}})
    status = desk.counted("pool", totalIPs=20, allocatedIPs=12, availableIPs=8, allocationCount=2)
    assert (status["largestFreeBlock"], status["fragmentationPercent"]) == (8, 0)
    assert {desk.granted("a"), desk.granted("b")} == held
    desk.ask("c", 8)
    assert desk.granted("c") == "10.1.0.24-10.1.0.31"
    desk.ask("pinned", pinned="10.1.0.16-10.1.0.17")
    desk.failed("pinned", "PinnedRangeConflict")
    for name in ("a", "b"):
        desk.delete(ALLOCATIONS, name)
        desk.gone(ALLOCATIONS, name)
    desk.counted("pool", allocatedIPs=8, availableIPs=12, allocationCount=1, largestFreeBlock=8)


def test_a_window_that_moves_away_from_live_allocations_leaves_them_alone(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ask("a", 16)
    desk.granted("a")
    desk.edit(POOLS, "pool", {"spec": {"tenantAllocation": tenant_allocation("10.1.0.12-10.1.0.19")}})
    desk.counted("pool", totalIPs=8, allocatedIPs=4, availableIPs=4, allocationCount=1)
    desk.ask("b", 4)
    assert desk.granted("b") == "10.1.0.16-10.1.0.19"
    desk.ask("c", 1)
    desk.failed("c", "PoolExhausted")
    desk.delete(ALLOCATIONS, "a")
    assert desk.granted("c") == "10.1.0.12-10.1.0.12"


def test_an_invalid_pool_hands_out_nothing_and_still_takes_back(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.31")
    desk.ask("a", 8)
    held = desk.granted("a")
    desk.edit(POOLS, "pool", {"spec": {"reserved": [{"cidr": "10.1.0.16/29"}, {"cidr": "10.1.0.16/30"}]}})
    assert desk.ready("pool", "ValidationFailed") == (
        "spec.reserved[1].cidr: 10.1.0.16/30 overlaps 10.1.0.16/29 of spec.reserved[0].cidr: keep one of the two"
    )
    desk.ask("b", 8)
    assert "spec.reserved[1].cidr" in desk.failed("b", "PoolNotReady")
    assert desk.granted("a") == held
    desk.delete(ALLOCATIONS, "a")
    desk.gone(ALLOCATIONS, "a")
    assert condition(desk.status(POOLS, "pool"), "CapacityWarning")["status"] == "False"
    desk.edit(POOLS, "pool", {"spec": {"reserved": [{"cidr": "10.1.0.16/29"}]}})
    assert desk.granted("b") == "10.1.0.24-10.1.0.31"


def test_a_status_of_a_pool_that_was_edited_into_nonsense_does_not_stop_it(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ask("a", 4)
    desk.ask("b", 4)
    desk.granted("a")
    desk.granted("b")
    desk.counted("pool", allocatedIPs=8)
    nonsense = {"uid": "unknown", "name": "unknown", "startAddress": "first", "endAddress": "last"}
    desk.edit(POOLS, "pool", {"status": {"claimedCIDR": "all", "intents": [nonsense], "totalIPs": 7}}, "status")
    with older_definition(desk):
        write(desk, "b", {"startAddress": "10.1.0.2", "endAddress": "10.1.0.9"})
    desk.ask("c", 4)
    assert desk.granted("c") in ("10.1.0.10-10.1.0.13", "10.1.0.12-10.1.0.15")
    desk.counted("pool", totalIPs=16, claimedCIDR="10.1.0.0/24", allocationCount=3)
    for name in "abc":
        desk.delete(ALLOCATIONS, name)
        desk.gone(ALLOCATIONS, name)
    desk.counted("pool", allocatedIPs=0, availableIPs=16, allocationCount=0)


# Overlap.


def test_of_two_overlapping_pools_the_older_hands_out_and_the_other_takes_over(desk: Desk) -> None:
    desk.pool("old", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ready("old")
    time.sleep(1.05)  # creation times know whole seconds
    desk.pool("young", "10.1.0.0/16", "10.1.0.8-10.1.0.23")
    assert desk.ready("young", "Overlap") == (
        f"10.1.0.0/16 overlaps NetworkPool {desk.namespace}/old (10.1.0.0/24):"
        " change or delete one of them, nothing is granted from this one until then"
    )
    desk.ask("a", 12, of="old")
    desk.ask("b", 12, of="young")
    assert desk.granted("a") == "10.1.0.0-10.1.0.11"
    assert f"overlaps NetworkPool {desk.namespace}/old" in desk.failed("b", "PoolNotReady")

    desk.delete(POOLS, "old")
    assert desk.ready("old", "Deleting") == "it is being deleted, and goes once all its addresses are released by a"
    assert desk.status(ALLOCATIONS, "b")["phase"] == "Failed"
    assert desk.status(ALLOCATIONS, "a")["phase"] == "Allocated"
    desk.delete(ALLOCATIONS, "a")
    assert desk.granted("b") == "10.1.0.8-10.1.0.19"
    desk.gone(POOLS, "old")
    assert register(desk) == {"young": "10.1.0.0/16"}


def test_pools_created_at_once_agree_on_one(control_plane: ControlPlane, definitions: None) -> None:
    with fresh_desk(control_plane) as desk:
        for name in ("a", "b", "c"):
            desk.pool(name, "10.1.0.0/24")
            desk.ask(f"of-{name}", 4, of=name)
        with RunningOperator(control_plane, desk.namespace):
            names = ("of-a", "of-b", "of-c")
            desk.until(lambda: all(_phase(desk, text) != "Pending" for text in names), "all were answered")
            granted = [text for text in names if _phase(desk, text) == "Allocated"]
            assert len(granted) == 1
            assert list(register(desk)) == [granted[0].removeprefix("of-")]


def test_a_pool_that_grows_into_another_waits_and_keeps_what_it_has(desk: Desk) -> None:
    desk.pool("left", "10.1.0.0/25")
    desk.pool("right", "10.1.0.128/25")
    desk.ask("a", 4, of="left")
    desk.ask("b", 4, of="right")
    desk.granted("a")
    desk.granted("b")
    desk.edit(POOLS, "left", {"spec": {"cidr": "10.1.0.0/24"}})
    assert "overlaps" in desk.ready("left", "Overlap")
    desk.ask("c", 4, of="left")
    desk.failed("c", "PoolNotReady")
    assert desk.granted("a") == "10.1.0.1-10.1.0.4"
    desk.edit(POOLS, "left", {"spec": {"cidr": "10.1.0.0/25"}})
    assert desk.granted("c") == "10.1.0.5-10.1.0.8"
    assert register(desk) == {"left": "10.1.0.0/25", "right": "10.1.0.128/25"}


# The end of a pool.


def test_a_pool_in_use_goes_when_its_last_address_is_released(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24")
    for name in ("a", "b", "c", "d", "e"):
        desk.ask(name, 2)
        desk.granted(name)
    made = desk.get(POOLS, "pool")
    assert made is not None
    assert made["metadata"]["finalizers"] == ["butler.butlerlabs.dev/networkpool"]
    desk.delete(POOLS, "pool")
    assert desk.ready("pool", "Deleting").endswith("released by a, b, c and 2 more")
    desk.ask("late", 1)
    desk.failed("late", "PoolNotReady")
    desk.delete(ALLOCATIONS, "late")
    desk.gone(ALLOCATIONS, "late")
    for name in ("a", "b", "c", "d"):
        desk.delete(ALLOCATIONS, name)
        desk.gone(ALLOCATIONS, name)
    assert desk.ready("pool", "Deleting").endswith("released by e")
    desk.delete(ALLOCATIONS, "e")
    desk.gone(POOLS, "pool")
    desk.until(lambda: register(desk) == {}, "the claim goes with it")


def test_an_unused_pool_goes_at_once_and_its_requests_are_told(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.3")
    desk.ask("wide", 5)
    desk.failed("wide", "PoolExhausted")
    desk.delete(POOLS, "pool")
    desk.gone(POOLS, "pool")
    desk.failed("wide", "PoolNotFound")


def test_a_pool_that_others_keep_from_going_still_lets_allocations_go(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.3", finalizers=["example.com/theirs"])
    desk.ask("a", 4)
    desk.granted("a")
    desk.ask("b", 4)
    desk.failed("b", "PoolExhausted")
    desk.delete(POOLS, "pool")
    desk.ready("pool", "Deleting")
    desk.delete(ALLOCATIONS, "a")
    desk.gone(ALLOCATIONS, "a")
    assert "hands out nothing: it is being deleted" in desk.failed("b", "PoolNotReady")
    desk.until(lambda: _finalizers(desk, "pool") == ["example.com/theirs"], "ours is gone")
    assert desk.ready("pool", "Deleting") == "it is being deleted"
    desk.delete(ALLOCATIONS, "b")
    desk.gone(ALLOCATIONS, "b")
    desk.edit(POOLS, "pool", {"metadata": {"finalizers": None}})
    desk.gone(POOLS, "pool")


def test_a_pool_made_again_under_its_name_starts_anew(desk: Desk) -> None:
    desk.pool("pool", "10.1.0.0/24")
    desk.ask("a", 4)
    desk.granted("a")
    desk.delete(POOLS, "pool")
    desk.delete(ALLOCATIONS, "a")
    desk.gone(POOLS, "pool")
    desk.gone(ALLOCATIONS, "a")
    desk.pool("pool", "10.2.0.0/24")
    desk.ask("a", 4)
    assert desk.granted("a") == "10.2.0.1-10.2.0.4"
    desk.counted("pool", allocatedIPs=4, allocationCount=1)
    assert register(desk) == {"pool": "10.2.0.0/24"}


def test_what_a_pool_that_was_torn_out_left_behind_is_kept_clear_of(desk: Desk) -> None:
    """A user removed the finalizer by hand and created the pool again: what is allocated stays allocated."""
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ask("a", 8)
    assert desk.granted("a") == "10.1.0.0-10.1.0.7"
    desk.delete(POOLS, "pool")
    desk.edit(POOLS, "pool", {"metadata": {"finalizers": None}})
    desk.gone(POOLS, "pool")
    assert register(desk) == {"pool": "10.1.0.0/24"}
    desk.pool("rival", "10.1.0.0/16")
    assert f"overlaps NetworkPool {desk.namespace}/pool (10.1.0.0/24)" in desk.ready("rival", "Overlap")
    desk.pool("pool", "10.1.0.0/24", "10.1.0.0-10.1.0.15")
    desk.ask("b", 8)
    assert desk.granted("b") == "10.1.0.8-10.1.0.15"
    desk.counted("pool", allocatedIPs=16, allocationCount=2)
    assert desk.granted("a") == "10.1.0.0-10.1.0.7"


def _phase(desk: Desk, name: str) -> str:
    return str(desk.status(ALLOCATIONS, name).get("phase", "Pending"))


def _finalizers(desk: Desk, name: str) -> list[str]:
    found = desk.get(POOLS, name)
    return list(found["metadata"].get("finalizers", [])) if found else []
