"""kill -9 at every single write of allocate, release and sweep: before the server hears of it, and after it answered.

The play is always the same: a pool, requests of people and of Butler, one deleted by its owner, one whose tenant goes,
one that has to wait for another, and the pool's end. Two ways to go through it:

  lives of one write   the controller is killed after each write it makes and started again, until all is done. Every
                       state that a crash can leave behind is passed through once, in one play.
  one crash            the play is run undisturbed first and its writes are counted; then once for each write and each
                       side of it, with a single crash there (a sample of them in the everyday suite).

Writes of events do not count: nothing depends on them.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from ipam.estate import Estate, Scale, scales

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from control_planes import ControlPlane
    from fault_proxy import Asked, Moment
    from ipam.processes import ButlerProcess, Nursery

OPTIONS = ("--retention", "0.5", "--sighting-gap", "0.3", "--sweep-every", "0.1")


def counts(asked: Asked) -> bool:
    return asked.plural in ("networkpools", "ipallocations", "configmaps")


class Killer:
    """Kills a process at its n-th write, before or after, and starts it again; then lets it live, or not."""

    def __init__(self, process: ButlerProcess, at: int, side: Moment, *, again: bool) -> None:
        self._process = process
        self._at = at
        self._side = side
        self._again = again
        self._seen = 0
        self._turn = asyncio.Lock()
        self._revived: set[asyncio.Task[None]] = set()
        self.struck: list[str] = []
        self.writes: list[str] = []

    async def __call__(self, asked: Asked, moment: Moment) -> None:
        if not counts(asked):
            return
        # One write at a time, so that exactly those happen which are said to happen.
        if moment == "before":
            await self._turn.acquire()
            if not self._process.pid:
                raise ConnectionResetError  # a parallel write of the dead, which had not left yet
            self.writes.append(str(asked))
        elif self._turn.locked():
            self._turn.release()
        if moment != self._side or not self._process.pid or (self.struck and not self._again):
            return
        self._seen += 1
        if self._seen != self._at:
            return
        self.struck.append(f"{self._side} {asked}")
        self._process.kill()
        revive = asyncio.create_task(self._revive())
        self._revived.add(revive)
        raise ConnectionResetError

    async def _revive(self) -> None:
        # Connections of the dead have to be gone before those of the living come.
        await asyncio.sleep(0.01)
        self._seen, self._turn = 0, asyncio.Lock()
        self._process.start()

    async def finish(self) -> None:
        await asyncio.gather(*self._revived)


async def play(estate: Estate) -> list[str]:
    """Allocate, release, sweep, retain, and end; the UIDs of the orphans."""
    await estate.tenant("short-lived")
    await estate.pool(cidr="10.40.0.0/28", tenantAllocation={"start": "10.40.0.1", "end": "10.40.0.8"})
    await estate.request("butlers", 3, born_with_finalizer=True)
    await estate.request("persons", 2, born_with_finalizer=False)
    orphan = await estate.request("orphan", 2, tenant="short-lived", born_with_finalizer=True)
    await estate.until(
        lambda: (
            sorted(estate.phases().values()) == ["Allocated"] * 3
            and bool(estate.allocations["orphan"]["status"].get("tenantClusterUID"))
        ),
        lambda: f"all granted: {estate.phases()}",
    )
    await estate.request("waits", 3, born_with_finalizer=True)
    await estate.until(lambda: estate.phases().get("waits") == "Failed", "no room")
    await estate.api.delete("ipallocations", "butlers")
    await estate.api.delete("tenantclusters", "short-lived")
    await estate.until(
        lambda: estate.phases() == {"persons": "Allocated", "waits": "Allocated"}, lambda: str(estate.phases())
    )
    await estate.api.delete("networkpools", "pool")
    for name in ("persons", "waits"):
        await estate.api.delete("ipallocations", name)
    await estate.until(
        lambda: not estate.allocations and not estate.pool_exists("pool"), lambda: f"all gone: {estate.phases()}"
    )
    return [str(orphan["metadata"]["uid"])]


@pytest.mark.parametrize("writes", [1, *(pytest.param(few, marks=pytest.mark.slow) for few in (2, 3, 5))])
@scales(long=1)
async def test_lives_of_few_writes_each_get_everything_done(estate: Estate, writes: int) -> None:
    process = await estate.butler("one", *OPTIONS, start=False)
    killer = Killer(process, writes, "after", again=True)
    estate.lines["one"].on_write = killer
    process.start()
    orphans = await play(estate)
    estate.lines["one"].on_write = None
    await killer.finish()
    await estate.settle()
    await estate.verdict(orphans)
    assert len(killer.struck) > 18 // writes, f"too calm to prove anything: {killer.struck}"


@pytest.fixture
def fresh_estate(
    ready_plane: ControlPlane, nursery: Nursery, tmp_path: Path, scale: Scale
) -> Callable[[str], Awaitable[Estate]]:
    async def build(name: str) -> Estate:
        folder = tmp_path / name
        folder.mkdir()
        return Estate(ready_plane, nursery, folder, scale)

    return build


async def _run(estate: Estate, at: int, side: Moment) -> Killer:
    async with estate:
        process = await estate.butler("one", *OPTIONS, start=False)
        killer = Killer(process, at, side, again=False)
        estate.lines["one"].on_write = killer
        process.start()
        orphans = await play(estate)
        estate.lines["one"].on_write = None
        await killer.finish()
        try:
            await estate.verdict(orphans)
        except AssertionError as broken:
            raise AssertionError(f"killed {killer.struck}: {broken}") from None
        return killer


@pytest.mark.timeout(1800)
@scales(long=1)
async def test_one_crash_at_any_write_changes_nothing_in_the_end(
    fresh_estate: Callable[[str], Awaitable[Estate]], scale: Scale
) -> None:
    clean = await _run(await fresh_estate("clean"), 0, "before")
    print(f"a clean run makes {len(clean.writes)} writes: {clean.writes}")
    assert len(clean.writes) > 15
    points: list[tuple[int, Moment]] = [
        (at, side) for at in range(1, len(clean.writes) + 1) for side in ("before", "after")
    ]
    # Writes that meet may be merged, so another run can be a little shorter than the clean one.
    chosen = points if scale.big else random.Random(scale.seed).sample(points[:-6], 2)
    struck = []
    for at, side in chosen:
        killer = await _run(await fresh_estate(f"{at}-{side}"), at, side)
        struck += killer.struck
    print(f"killed {len(struck)} times: {struck}")
    assert len(struck) >= len(chosen) * 0.9
