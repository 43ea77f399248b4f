"""Requests that come, go and wait: what an allocator must get right before any fault is injected."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fault_proxy import Fault
from ipam.estate import scales

if TYPE_CHECKING:
    from ipam.estate import Estate


@scales()
async def test_what_does_not_fit_waits_and_is_served_when_space_is_freed(estate: Estate) -> None:
    """Exhausted, then freed: the oldest that fits comes first, and no request is left waiting."""
    await estate.butler("one")
    await estate.pool(cidr="10.40.0.0/24", tenantAllocation={"start": "10.40.0.16", "end": "10.40.0.31"})
    waiting = estate.scale.of(3, 12)
    for number in range(4):
        await estate.request(f"early-{number}", 4)
    await estate.until(lambda: list(estate.phases().values()) == ["Allocated"] * 4, estate.why_unsettled)
    for number in range(waiting):
        await estate.request(f"late-{number}", 4)
    await estate.until(lambda: list(estate.phases().values()).count("Failed") == waiting, lambda: str(estate.phases()))
    assert {estate.reason(f"late-{number}") for number in range(waiting)} == {"PoolExhausted"}
    served = [f"early-{number}" for number in range(4)]
    for _ in range(waiting):
        victim = served.pop(estate.rng.randrange(len(served)))
        await estate.api.delete("ipallocations", victim)
        await estate.until(lambda: "Failed" not in estate.phases().values() or len(_granted(estate)) == 4, "the next")
        served = _granted(estate)
    await estate.settle()
    assert len(_granted(estate)) == 4
    await estate.verdict()


def _granted(estate: Estate) -> list[str]:
    return sorted(name for name, phase in estate.phases().items() if phase == "Allocated")


@scales()
async def test_at_rest_nothing_is_written(estate: Estate) -> None:
    """With requests granted, refused and released, two controllers that look on in silence."""
    for name in ("one", "two"):
        await estate.butler(name)
    await estate.pool(tenantAllocation={"start": "10.40.0.8", "end": "10.40.0.23"})
    await estate.until(lambda: bool(estate.pool_status().get("claimedCIDR")), "the network is claimed")
    await estate.pool("overlapping", "10.40.0.128/25")
    await asyncio.gather(*(estate.request(f"r-{number}", 3) for number in range(8)))
    await estate.request("astray", pool="overlapping")
    await estate.request("lost", pool="no-such-pool")
    await estate.until(lambda: len(_granted(estate)) == 5, lambda: str(estate.phases()))
    await estate.api.delete("ipallocations", _granted(estate)[0])
    # Refusals whose figures alone have changed are written again after a minute, once.
    await estate.settle(tidy=True, quiet=estate.scale.of(3, 100))
    await estate.verdict()


@scales()
async def test_requests_deleted_within_moments_of_their_creation_leave_nothing_behind(estate: Estate) -> None:
    await estate.butler("one")
    await estate.pool(tenantAllocation={"start": "10.40.0.8", "end": "10.40.0.39"})

    async def come_and_go(number: int) -> None:
        await asyncio.sleep(estate.rng.uniform(0, 0.5))
        await estate.request(f"brief-{number}", estate.rng.randrange(1, 6))
        await asyncio.sleep(estate.rng.uniform(0, 0.01))
        await estate.api.delete("ipallocations", f"brief-{number}")

    await asyncio.gather(*(come_and_go(number) for number in range(estate.scale.of(20, 200))))
    await estate.until(lambda: not estate.allocations, lambda: f"left: {estate.phases()}")
    await estate.settle()
    assert estate.pool_status()["allocatedIPs"] == 0
    await estate.verdict()


@scales()
async def test_a_name_that_comes_back_is_another_request(estate: Estate) -> None:
    """Same name, new UID: what the old one held is given back, and never taken for the new one's."""
    await estate.butler("one")
    # Wide enough for the last three in whatever order they come: in a narrower one the holes could be too short.
    await estate.pool(tenantAllocation={"start": "10.40.0.8", "end": "10.40.0.39"})
    names = ["a", "b", "c"]

    async def again_and_again(name: str) -> None:
        for _ in range(estate.scale.of(4, 15)):
            made = await estate.request(name, estate.rng.choice([3, 5]), born_with_finalizer=estate.rng.random() < 0.7)
            await asyncio.sleep(estate.rng.choice([0, 0.02, 0.1, 0.4]))
            await estate.api.delete("ipallocations", name)
            while (found := await estate.api.get("ipallocations", name)) is not None:
                assert found["metadata"]["uid"] == made["metadata"]["uid"]
                await asyncio.sleep(0.01)
        await estate.request(name, 4)

    await asyncio.gather(*(again_and_again(name) for name in names))
    await estate.settle()
    assert set(estate.phases().values()) == {"Allocated"}
    await estate.verdict()


@scales()
async def test_one_poisoned_request_holds_up_no_other(estate: Estate) -> None:
    """Requests that can never be met, and one whose every write fails, stand among many good ones."""
    await estate.butler("one")
    line = estate.lines["one"]
    cursed = "ipallocations/cursed"
    line.aim = lambda asked: Fault("refuse", 500) if asked.path.endswith(f"{cursed}/status") else None
    await estate.pool(
        cidr="10.40.0.0/24",
        reserved=[{"cidr": "10.40.0.64/30"}],
        tenantAllocation={"start": "10.40.0.32", "end": "10.40.0.127"},
    )
    await estate.request("cursed", 2, born_with_finalizer=True)
    await estate.request("too-large", 97)
    await estate.request("outside", pinned=("10.40.0.8", "10.40.0.9"))
    await estate.request("reserved", pinned=("10.40.0.63", "10.40.0.64"))
    await estate.request("astray", 2, pool="no-such-pool")
    many = estate.scale.of(10, 30)
    await asyncio.gather(*(estate.request(f"good-{number}", 2) for number in range(many)))
    good = [f"good-{number}" for number in range(many)]
    await estate.until(
        lambda: all(estate.phases().get(name) == "Allocated" for name in good), lambda: str(estate.phases())
    )
    assert estate.phases()["cursed"] == "Pending"
    line.aim = None
    await estate.settle()
    reasons = {name: estate.reason(name) for name in ("too-large", "outside", "reserved", "astray", "cursed")}
    assert reasons == {
        "too-large": "PoolExhausted",
        "outside": "PinnedRangeOutOfPool",
        "reserved": "PinnedRangeConflict",
        "astray": "PoolNotFound",
        "cursed": "Allocated",
    }
    await estate.verdict()
