"""Controllers that see late, wrongly or in pieces, and whose writes may or may not have happened."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fault_proxy import FAITHFUL, Fault
from ipam.estate import scales
from ipam.faults import Confused, Stale, Unreliable, on
from ipam.workload import CROWDED, busy_day

if TYPE_CHECKING:
    from fault_proxy import Asked
    from ipam.estate import Estate


@scales()
async def test_a_view_that_is_seconds_behind_grants_nothing_twice(estate: Estate) -> None:
    """Of two controllers at work one hears everything up to 5 seconds late."""
    late = await estate.line("late")
    late.plan = Stale(estate.scale.seed, seconds=5.0)
    await estate.butler("late")
    await estate.butler("prompt")
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(60, 400), hurry=0.04)
    late.plan = FAITHFUL
    late.cut_all()
    await estate.settle()
    await estate.verdict()
    assert estate.granted() > estate.scale.of(10, 60), "too calm to prove anything"


@scales()
async def test_one_controller_that_sees_late_still_serves_every_request(estate: Estate) -> None:
    """Alone and seconds behind all the time: slow, but neither wrong nor stuck nor writing in circles."""
    line = await estate.line("late")
    line.plan = Stale(estate.scale.seed, seconds=estate.scale.of(1, 5))
    await estate.butler("late")
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(30, 200))
    await estate.settle(quiet=estate.scale.of(2, 8))
    await estate.verdict()


@scales()
async def test_a_fifth_of_all_calls_failing_loses_and_doubles_nothing(estate: Estate) -> None:
    """409, 429, 500, and writes that were applied though the answer was an error or none at all; two at work."""
    for name, seed in (("one", estate.scale.seed), ("two", estate.scale.seed + 7000)):
        line = await estate.line(name)
        line.plan = Unreliable(seed, silent=0.005 if estate.scale.big else 0.0)
        await estate.butler(name)
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(50, 400))
    for line in estate.lines.values():
        line.plan = FAITHFUL
    await estate.settle()
    await estate.verdict()
    faults = sum(count for line in estate.lines.values() for (_, kind), count in line.counts.items() if kind != "none")
    assert faults > 20, "too calm to prove anything"


@scales()
async def test_every_request_is_served_while_a_fifth_of_all_calls_fails(estate: Estate) -> None:
    """Nothing heals here: what fails is repeated until it gets through."""
    line = await estate.line("one")
    line.plan = Unreliable(estate.scale.seed)
    await estate.butler("one")
    await estate.pool(**CROWDED)
    many = estate.scale.of(8, 16)
    await asyncio.gather(*(estate.request(f"r-{number}", 3) for number in range(many)))
    await estate.until(lambda: list(estate.phases().values()) == ["Allocated"] * many, lambda: str(estate.phases()))
    await asyncio.gather(*(estate.api.delete("ipallocations", f"r-{number}") for number in range(many)))
    await estate.until(lambda: not estate.allocations, lambda: str(estate.phases()))
    await estate.settle()
    await estate.verdict()


@scales()
async def test_watches_that_forget_repeat_and_disorder_mislead_no_controller(estate: Estate) -> None:
    """One controller whose watches are told 410, twice, again, out of order, or end in mid-line."""
    line = await estate.line("one")
    line.plan = Confused(estate.scale.seed)
    await estate.butler("one")
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(60, 400))
    await estate.settle()
    await estate.verdict(views_in_order=False)


@scales()
async def test_two_controllers_with_watches_that_forget_and_repeat(estate: Estate) -> None:
    """Lines of one watch stay in order, as every API server promises; kinds overtake each other as they please."""
    for name in ("one", "two"):
        line = await estate.line(name)
        line.plan = Confused(
            estate.scale.seed, ("outdate", "duplicate", "replay", "lag", "close", "cut_within", "refuse")
        )
        await estate.butler(name)
    await estate.pool(**CROWDED)
    await busy_day(estate, estate.scale.of(60, 400))
    await estate.settle()
    await estate.verdict()


@scales()
async def test_a_cold_start_takes_owners_in_before_it_serves_those_who_wait(estate: Estate) -> None:
    """All lists come in another order, and the requests that wait are named, and so listed, ahead of the owners."""
    first = await estate.butler("first")
    await estate.pool(**CROWDED)
    owners = estate.scale.of(8, 12)
    await asyncio.gather(*(estate.request(f"owner-{number}", 3) for number in range(owners)))
    await estate.until(lambda: list(estate.phases().values()) == ["Allocated"] * owners, lambda: str(estate.phases()))
    first.kill()
    await asyncio.gather(*(estate.request(f"a-waiting-{number}", 2) for number in range(owners)))
    await estate.api.delete("ipallocations", "owner-0")
    for name in ("second", "third"):
        line = await estate.line(name)
        kinds = ("ipallocations", "networkpools", "tenantclusters")
        line.aim = on(*kinds, traffic=("list",), fault=Fault("shuffle", seed=estate.scale.seed))
        await estate.butler(name)
    await estate.settle()
    assert set(estate.phases().values()) == {"Allocated"}
    await estate.verdict()


@pytest.mark.parametrize("refused", ["ipallocations/waits", "networkpools/pool"])
@scales()
async def test_a_request_whose_writes_are_refused_for_long_is_tried_every_second(estate: Estate, refused: str) -> None:
    """A back-off that doubles takes ten minutes for so many tries, and lasts a minute longer than the trouble."""
    tries, most = 0, 25

    def refuse(asked: Asked) -> Fault | None:
        nonlocal tries
        if f"{asked.method} {asked.plural}/{asked.name}/{asked.subresource}" != f"PATCH {refused}/status":
            return None
        tries += 1
        return Fault("refuse", code=500) if tries <= most else None

    await estate.butler("one")
    await estate.pool(**CROWDED)
    await estate.until(lambda: bool(estate.pool_status().get("totalIPs")), "the pool is counted")
    estate.lines["one"].aim = refuse
    await estate.request("waits", 3)
    await estate.until(
        lambda: estate.phases().get("waits") == "Allocated", lambda: f"it is granted; {tries} writes were tried"
    )
    assert tries > most
    await estate.settle()
    await estate.verdict()
