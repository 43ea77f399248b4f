"""What MetalLB shows of itself: stories that the stand-in and the real one both tell.

The controller that withdraws addresses from a running cluster relies on these facts, and reads them as is done here
(`butler.tenant.metallb_health`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from butler.kube.resource import CUSTOM_RESOURCE_DEFINITIONS
from butler.local.world.metallb import HOME, IP_ADDRESS_POOLS
from butler.local.world.metallb_allocator import Counts
from butler.local.world.metallb_signs import CONFIGURATION_STATES
from butler.tenant.metallb_health import Sign, read_sign, size_seen
from local.world_metallb.estate import until

if TYPE_CHECKING:
    from local.world_metallb.estate import Estate, Tenant
    from local.world_metallb.served import Served

Json = dict[str, Any]
TOGETHER = {"metallb.io/allow-shared-ip": "k"}


async def test_a_pool_counts_the_addresses_that_were_taken_over_and_those_in_use(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await counted(tenant, Counts(0, 10))
    await tenant.add_service("a")
    await counted(tenant, Counts(1, 9))
    assert size_seen(await pool(tenant)) == 10
    await tenant.add_service("b", annotations=TOGETHER)
    await counted(tenant, Counts(2, 8))
    await tenant.add_service("c", annotations=TOGETHER, ports=(81,))  # on the address of b
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11", c="10.0.0.11")
    await tenant.set_pool("10.0.0.10-10.0.0.15", autoAssign=False)
    await counted(tenant, Counts(2, 4))
    await tenant.delete_service("b")
    await tenant.set_pool("10.0.0.10-10.0.0.15", "10.0.1.0/24", avoidBuggyIPs=True)
    await counted(tenant, Counts(2, 4 + 254))
    await tenant.delete_service("c")
    await counted(tenant, Counts(1, 5 + 254))
    await tenant.set_pool("10.0.0.10/32", "fc00::/120")
    await counted(tenant, Counts(1, 0, 0, 256))


async def test_a_count_that_a_user_spoils_is_put_right(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await counted(tenant, Counts(0, 10))
    spoiled = {"status": {"assignedIPv4": 7}}
    written = await tenant.client.patch(IP_ADDRESS_POOLS, "default-pool", spoiled, HOME, subresource="status")
    assert size_seen(written) == 17
    await counted(tenant, Counts(0, 10))


async def test_every_reading_of_the_pools_shows_by_its_time_and_nothing_else_does(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.19")
    await counted(tenant, Counts(0, 10))
    first = await told_after(tenant, None)
    await a_second_later()
    await tenant.set_pool("10.0.0.10-10.0.0.19", autoAssign=False)  # no count tells of that
    second = await told_after(tenant, first)
    await a_second_later()
    before, state = await pool(tenant), await configuration_state(tenant)
    await tenant.set_pool("10.0.0.10-10.0.0.19", autoAssign=False)
    await tenant.client.patch(IP_ADDRESS_POOLS, "default-pool", {"metadata": {"labels": {"a": "b"}}}, HOME)
    await asyncio.sleep(0.5)
    if served.kind != "real":  # the real one reads its pools for every namespace that comes or goes, too
        assert (await read_sign(tenant.client)) == second
        assert await configuration_state(tenant) == state  # nor is anything written
    assert (await pool(tenant))["status"] == before["status"]
    assert state["metadata"]["labels"] == {"metallb.io/component-type": "controller"}


async def test_a_refused_configuration_shows_and_freezes_what_is_handed_out(served: Served) -> None:
    tenant = served.tenant
    await tenant.set_pool("10.0.0.10-10.0.0.11")
    await counted(tenant, Counts(0, 2))
    await until(lambda: summary(tenant, "Valid"))
    await tenant.set_pool("10.0.0.11-10.0.0.14", name="other")
    overlap = 'CIDR "10.0.0.11/32" in pool "other" overlaps with already defined CIDR "10.0.0.10/31"'
    await until(lambda: summary(tenant, "Invalid", f"configuration error: {overlap}"))
    assert (await read_sign(tenant.client)).refused == f"configuration error: {overlap}"
    await tenant.set_pool("10.0.0.10-10.0.0.11", "10.0.0.20/31")
    await tenant.add_service("a")
    await tenant.until_addresses(a="10.0.0.10")
    await counted(tenant, Counts(1, 1), other=Counts())  # of what it goes on with
    # After a restart there is nothing to go on with: it has no addresses, and leaves all Services alone.
    await served.restart()
    await tenant.add_service("b")
    await counted(tenant, Counts(), other=Counts())
    await tenant.until_addresses(a="10.0.0.10", b=None)
    await tenant.delete_pool("other")
    await tenant.until_addresses(a="10.0.0.10", b="10.0.0.11")
    await counted(tenant, Counts(2, 2))
    await until(lambda: summary(tenant, "Valid"))
    assert (await read_sign(tenant.client)).refused == ""


async def test_metallb_that_was_installed_without_the_kind_serves_without_it(estate: Estate) -> None:
    """An estate of an earlier version: its definitions are renewed only with the addon."""
    async with estate.world():
        tenant = await estate.with_metallb()
        await tenant.set_pool("10.0.0.10-10.0.0.11")
        await counted(tenant, Counts(0, 2))
        await tenant.client.delete(CUSTOM_RESOURCE_DEFINITIONS, "configurationstates.metallb.io")
        await tenant.set_pool("10.0.0.10-10.0.0.12")
        await counted(tenant, Counts(0, 3))
        assert await read_sign(tenant.client) == Sign()
        await tenant.add_service("a")
        await tenant.until_addresses(a="10.0.0.10")


async def pool(tenant: Tenant) -> Json:
    return await tenant.client.get(IP_ADDRESS_POOLS, "default-pool", HOME)


async def configuration_state(tenant: Tenant) -> Json:
    return await tenant.client.get(CONFIGURATION_STATES, "controller", HOME)


async def summary(tenant: Tenant, result: str, error: str | None = None) -> bool:
    if await tenant.refusal() == "it has not told yet":
        return False
    status = (await configuration_state(tenant)).get("status", {})
    return (status.get("result"), status.get("errorSummary")) == (result, error)


async def counted(tenant: Tenant, wanted: Counts, **others: Counts) -> None:
    """Wait until the default pool, and others by their names, show these counts."""
    expected = {"default-pool": wanted, **others}

    async def match() -> bool:
        seen.update(now=await tenant.counts())
        return seen["now"] == expected

    seen: Json = {}
    try:
        await until(match)
    except AssertionError:
        raise AssertionError(f"wanted {expected}, there is {seen['now']}") from None


async def told_after(tenant: Tenant, earlier: Sign | None) -> Sign:
    """The sign of a reading that is not the one before."""

    async def another() -> Sign | None:
        sign = await read_sign(tenant.client)
        return sign if sign.read_at is not None and sign != earlier else None

    found: Sign = await until(another)
    return found


async def a_second_later() -> None:
    """Times are told to the second."""
    await asyncio.sleep(1.1)
