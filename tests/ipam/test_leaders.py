"""More than one controller at work: leases are for efficiency, safety is in the writes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ipam.estate import scales
from ipam.workload import CROWDED, busy_day

if TYPE_CHECKING:
    from fault_proxy import Asked, Moment
    from ipam.estate import Estate

LEASE = ("--lease-seconds", "1")


@scales()
async def test_two_at_work_without_any_lease_get_only_in_each_others_way(estate: Estate) -> None:
    for name in ("one", "two"):
        await estate.butler(name)
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(60, 500))
    await estate.settle()
    await estate.verdict()
    assert estate.granted() > estate.scale.of(10, 60), "too calm to prove anything"


@pytest.mark.parametrize("held", ["networkpools", "ipallocations"])
@scales()
async def test_a_leader_frozen_in_mid_write_wakes_up_to_a_world_that_went_on(estate: Estate, held: str) -> None:
    """SIGSTOP while a status write is on the line; the write arrives, and its writer wakes, long after the takeover.

    The first write of the kind that comes after the pool is in use is kept back: a reserve, or a commit.
    """
    old = await estate.butler("old", *LEASE, lease=True, exec_=True)
    await estate.pool(**CROWDED)
    await estate.request("before", 4, born_with_finalizer=True)
    await estate.until(lambda: estate.phases() == {"before": "Allocated"}, "a first grant")
    frozen, taken_over = asyncio.Event(), asyncio.Event()

    async def freeze(asked: Asked, moment: Moment) -> None:
        if moment == "before" and asked.plural == held and asked.subresource == "status" and not frozen.is_set():
            old.freeze()
            frozen.set()
            await taken_over.wait()

    estate.lines["old"].on_write = freeze
    new = await estate.butler("new", *LEASE, lease=True, exec_=True)
    for number in range(3):
        await estate.request(f"at-the-time-{number}", 5, born_with_finalizer=True)
    await asyncio.wait_for(frozen.wait(), 60)
    await estate.until(lambda: list(estate.phases().values()) == ["Allocated"] * 4, lambda: str(estate.phases()))
    # What was granted is given back and goes to others: an old promise that came true now would be a duplicate.
    for number in range(3):
        await estate.api.delete("ipallocations", f"at-the-time-{number}")
    await busy_day(estate, estate.scale.of(15, 150))
    taken_over.set()
    old.thaw()
    await busy_day(estate, estate.scale.of(15, 150), names=24)
    await estate.settle()
    old.insist_alive()
    new.insist_alive()
    await estate.verdict()


@scales()
async def test_a_release_that_arrives_long_after_its_time_releases_no_other(estate: Estate) -> None:
    """The old leader's release of a name is kept back until another allocation has that name, and that range."""
    old = await estate.butler("old", *LEASE, lease=True)
    await estate.pool(**CROWDED)
    await estate.request("again", 8, born_with_finalizer=True)
    await estate.until(lambda: estate.phases() == {"again": "Allocated"}, "a first grant")
    first = estate.allocations["again"]
    frozen, replaced, arrived = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def freeze(asked: Asked, moment: Moment) -> None:
        if asked.name != "again" or asked.subresource != "status":
            return
        if moment == "after":
            arrived.set()
        elif not frozen.is_set():
            old.freeze()
            frozen.set()
            await replaced.wait()

    estate.lines["old"].on_write = freeze
    await estate.butler("new", *LEASE, lease=True)
    await estate.api.delete("ipallocations", "again")
    await asyncio.wait_for(frozen.wait(), 60)
    await estate.until(lambda: not estate.allocations, "the new leader released it")
    await estate.request("again", 8, born_with_finalizer=True)
    await estate.until(lambda: estate.phases() == {"again": "Allocated"}, "granted anew")
    second = estate.allocations["again"]
    assert second["status"]["startAddress"] == first["status"]["startAddress"], "the same range, for the test's sake"
    replaced.set()
    await asyncio.wait_for(arrived.wait(), 60)
    old.thaw()
    await estate.settle()
    assert estate.allocations["again"]["metadata"]["uid"] == second["metadata"]["uid"]
    assert estate.phases() == {"again": "Allocated"}
    await estate.verdict()


@scales()
async def test_leaders_frozen_and_woken_at_any_moment(estate: Estate) -> None:
    """Three candidates; one after the other is stopped for longer than its lease, and continued."""
    trio = [await estate.butler(name, *LEASE, lease=True) for name in ("one", "two", "three")]
    await estate.pool(**CROWDED)

    async def freeze_in_turn() -> None:
        for turn in range(estate.scale.of(2, 10)):
            await asyncio.sleep(estate.rng.uniform(0.2, 1.0))
            victim = trio[turn % 3]
            victim.freeze()
            await asyncio.sleep(1.5)
            victim.thaw()

    freezing = asyncio.create_task(freeze_in_turn())
    try:
        while not freezing.done():
            await busy_day(estate, 10, hurry=0.05)
    finally:
        await freezing
    await estate.settle()
    await estate.verdict()
