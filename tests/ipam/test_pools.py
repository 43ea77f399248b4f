"""Pools that change under the allocator's hands, or get in each other's way. Admission is off throughout."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from ipam.estate import scales
from ipam.workload import CROWDED, busy_day

if TYPE_CHECKING:
    from ipam.estate import Estate

WINDOWS: tuple[dict[str, Any], ...] = (
    {"reserved": [{"cidr": "10.40.0.32/30"}], "tenantAllocation": {"start": "10.40.0.8", "end": "10.40.0.71"}},
    {"reserved": [{"cidr": "10.40.0.40/29"}, {"cidr": "10.40.0.12/30"}]},
    {"reserved": None, "tenantAllocation": {"start": "10.40.0.20", "end": "10.40.0.50"}},
    {"tenantAllocation": {"start": "10.40.0.60", "end": "10.40.0.99"}},
    {"cidr": "10.40.0.0/23", "tenantAllocation": {"start": "10.40.0.200", "end": "10.40.1.20"}},
    {"cidr": "10.40.0.0/24", "tenantAllocation": {"start": "10.40.0.8", "end": "10.40.0.71"}},
)


@scales()
async def test_a_pool_edited_between_admission_and_allocation_grants_by_its_newest_spec(estate: Estate) -> None:
    """Windows and reserved blocks move while requests come and go; each promise obeys the spec beside it."""
    for name in ("one", "two"):
        await estate.butler(name)
    await estate.pool(**CROWDED)

    async def edit() -> None:
        for _ in range(estate.scale.of(20, 120)):
            await asyncio.sleep(estate.rng.uniform(0, 0.12))
            await estate.api.patch("networkpools", "pool", {"spec": estate.rng.choice(WINDOWS)})
        await estate.api.patch("networkpools", "pool", {"spec": {**WINDOWS[-1], "reserved": None}})

    await asyncio.gather(edit(), busy_day(estate, estate.scale.of(60, 400)))
    await estate.settle()
    await estate.verdict()


@scales()
async def test_of_two_pools_that_overlap_only_one_ever_hands_out(estate: Estate) -> None:
    """Both are created at the same moment, and two controllers look after them."""
    for name in ("one", "two"):
        await estate.butler(name)
    await asyncio.gather(
        estate.pool("wide", "10.50.0.0/24"),
        estate.pool("narrow", "10.50.0.128/25"),
        *(estate.request(f"w-{number}", 4, pool="wide") for number in range(4)),
        *(estate.request(f"n-{number}", 4, pool="narrow") for number in range(4)),
    )
    await estate.until(
        lambda: sorted(estate.phases().values()) == ["Allocated"] * 4 + ["Failed"] * 4, lambda: str(estate.phases())
    )
    served = {name[0] for name, phase in estate.phases().items() if phase == "Allocated"}
    assert len(served) == 1, f"one pool has the network: {estate.phases()}"
    winner, prefix = ("wide", "w") if served == {"w"} else ("narrow", "n")
    # When the first goes, the other one takes over, and not a moment earlier.
    await estate.api.delete("networkpools", winner)
    await asyncio.gather(*(estate.api.delete("ipallocations", f"{prefix}-{number}") for number in range(4)))
    await estate.until(lambda: list(estate.phases().values()) == ["Allocated"] * 4, lambda: str(estate.phases()))
    await estate.settle()
    await estate.verdict()


@pytest.mark.parametrize("network", ["10.40.0.0/24", "10.44.0.0/24"], ids=["shrinks", "moves"])
@scales(long=1)
async def test_a_pool_gives_up_no_network_in_which_a_tenant_lives(estate: Estate, network: str) -> None:
    """It was cut down by an edit; another pool waits for what it gives up, and gets it when the last holder is gone."""
    await estate.butler("one")
    await estate.pool("old", "10.40.0.0/23")
    await estate.request("holder", pool="old", pinned=("10.40.1.10", "10.40.1.12"))
    await estate.until(lambda: estate.phases() == {"holder": "Allocated"}, "a holder")
    await estate.api.patch("networkpools", "old", {"spec": {"cidr": network}})
    await estate.pool("new", "10.40.1.0/24")
    await estate.request("waits", pool="new", pinned=("10.40.1.11", "10.40.1.11"))
    await estate.until(lambda: estate.phases().get("waits") == "Failed", "no room as long as it is held")
    await estate.settle()
    assert estate.phases() == {"holder": "Allocated", "waits": "Failed"}
    await estate.api.delete("ipallocations", "holder")
    await estate.until(lambda: estate.phases() == {"waits": "Allocated"}, lambda: str(estate.phases()))
    await estate.settle()
    await estate.verdict()


@scales()
async def test_many_pools_fighting_for_one_network_never_share_it(estate: Estate) -> None:
    """Pools come, go, grow and move over each other while requests name any of them."""
    for name in ("one", "two"):
        await estate.butler(name)
    networks = ("10.60.0.0/24", "10.60.0.0/25", "10.60.0.128/25", "10.60.0.64/26", "10.60.1.0/24", "10.60.0.0/23")
    names = ("p", "q", "r")

    async def fight(pool: str) -> None:
        await estate.pool(pool, estate.rng.choice(networks))
        for _ in range(estate.scale.of(4, 25)):
            await asyncio.sleep(estate.rng.uniform(0, 0.4))
            if estate.rng.random() < 0.3:
                await estate.api.delete("networkpools", pool)
                for allocation in await estate.api.items("ipallocations"):
                    if allocation["spec"]["poolRef"]["name"] == pool:
                        await estate.api.delete("ipallocations", allocation["metadata"]["name"])
                await estate.until(lambda: not estate.pool_exists(pool), f"{pool} goes", 60)
                await estate.pool(pool, estate.rng.choice(networks))
            else:
                await estate.api.patch("networkpools", pool, {"spec": {"cidr": estate.rng.choice(networks)}})

    async def ask(pool: str) -> None:
        for number in range(estate.scale.of(8, 60)):
            await estate.request(f"{pool}-{number}", estate.rng.choice([1, 4, 8]), pool=pool)
            await asyncio.sleep(estate.rng.uniform(0, 0.2))
            if estate.rng.random() < 0.4:
                await estate.api.delete("ipallocations", f"{pool}-{estate.rng.randrange(number + 1)}")

    await asyncio.gather(*(fight(name) for name in names), *(ask(name) for name in names))
    await estate.settle()
    await estate.verdict()
    assert estate.granted() > 0, "too calm to prove anything"
