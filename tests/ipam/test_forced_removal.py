"""A pool whose finalizer is taken away by hand: what it promised must not come true beside what another grants."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ipam.estate import scales

if TYPE_CHECKING:
    from fault_proxy import Asked, Moment
    from ipam.estate import Estate
    from ipam.history import Json

NETWORK = "10.40.0.0/29"


async def remove_by_force(estate: Estate) -> None:
    await estate.api.delete("networkpools", "pool")
    await estate.api.patch("networkpools", "pool", {"metadata": {"finalizers": None}})
    await estate.until(lambda: not estate.pool_exists("pool"), "the pool is gone")


@pytest.mark.parametrize("successor", ["pool", "other"])
@pytest.mark.parametrize("late", ["the commit", "the answer to the reserve"])
@scales(long=1)
async def test_a_promise_of_a_pool_that_was_removed_by_force_is_not_kept(
    estate: Estate, successor: str, late: str
) -> None:
    """One controller is stopped between promise and grant; another grants the same addresses to another allocation.

    With its commit on the line the first one is frozen, and knows the request as it was. While the answer to its
    reserve is on the way it lives, and hears of all that happens to the request meanwhile.
    """
    old = await estate.butler("old")
    await estate.request("promised", 4, born_with_finalizer=True)
    await estate.until(lambda: estate.phases() == {"promised": "Failed"}, "no such pool")
    held, other_has_it, arrived = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def promises() -> list[Json]:
        pool = await estate.api.get("networkpools", "pool")
        return (pool or {}).get("status", {}).get("intents") or []

    async def hold(asked: Asked, moment: Moment) -> None:
        if asked.subresource != "status" or other_has_it.is_set():
            return
        if late == "the commit" and (asked.name, moment) == ("promised", "before"):
            old.freeze()
            held.set()
            await other_has_it.wait()
        elif late != "the commit" and (asked.plural, moment) == ("networkpools", "after") and await promises():
            held.set()
            await other_has_it.wait()

    async def tell(asked: Asked, moment: Moment) -> None:
        """The second controller has no time to tell the first one's request anything."""
        if asked.name == "promised" and asked.subresource == "status" and moment == "before":
            await arrived.wait()

    estate.lines["old"].on_write = hold
    await estate.pool(cidr=NETWORK)
    await asyncio.wait_for(held.wait(), 60)
    (promise,) = await promises()
    await remove_by_force(estate)
    await estate.pool(successor, cidr=NETWORK)
    pinned = (promise["startAddress"], promise["endAddress"])
    await estate.request("instead", pool=successor, pinned=pinned, born_with_finalizer=True)
    await estate.butler("new", start=False)
    estate.lines["new"].on_write = tell
    estate.processes[-1].start()
    await estate.until(lambda: estate.phases().get("instead") == "Allocated", lambda: str(estate.phases()))
    other_has_it.set()
    old.thaw()
    await asyncio.sleep(1)  # what is late arrives
    arrived.set()
    await estate.settle()
    await estate.verdict(broken_by_hand="pool deletion")
    assert estate.phases() == {"promised": "Failed", "instead": "Allocated"}
