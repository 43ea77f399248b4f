"""Tenants that go, come back under their name, or only seem to be gone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from fault_proxy import Asked, Fault
from ipam.estate import scales

if TYPE_CHECKING:
    from fault_proxy import Moment
    from ipam.estate import Estate

SWEEPS = 1.6
"""Seconds: several sweeps, and the gap between two sightings more than twice over."""
LISTS = {
    "every other missing": Fault("shorten"),
    "unreachable": Fault("cut_before"),
    "empty": Fault("empty"),
    "failing": Fault("refuse", 500),
    "cut short": Fault("truncate"),
}
IN_TURN = [*LISTS.values(), LISTS["empty"]]
"""Those that lie come again and again, with those that fail between them."""


async def _house_of(estate: Estate, tenants: int) -> None:
    """Tenants with two allocations each, all granted, their owners on record."""
    await estate.pool(cidr="10.40.0.0/24")
    for number in range(tenants):
        await estate.tenant(f"tenant-{number}")
        for part in ("nodes", "lb"):
            await estate.request(f"tenant-{number}-{part}", 2, tenant=f"tenant-{number}")
    await estate.until(
        lambda: (
            len(estate.allocations) == 2 * tenants
            and all((a.get("status") or {}).get("tenantClusterUID") for a in estate.allocations.values())
        ),
        lambda: f"owners on record: {estate.phases()}",
    )


def _uids(estate: Estate, *tenants: int) -> list[str]:
    wanted = {f"tenant-{number}" for number in tenants}
    return [
        str(a["metadata"]["uid"])
        for a in estate.allocations.values()
        if a["spec"]["tenantClusterRef"]["name"] in wanted
    ]


@pytest.mark.parametrize("which", ["in turn", *(pytest.param(name, marks=pytest.mark.slow) for name in LISTS)])
@scales(long=1)
async def test_a_list_that_is_not_whole_costs_no_tenant_its_addresses(estate: Estate, which: str) -> None:
    """The living keep theirs, whatever the list says; the gone are found all the same, once something is known."""
    await estate.butler("one")
    tenants = estate.scale.of(4, 12)
    await _house_of(estate, tenants)
    gone = _uids(estate, 0)

    def spoil(asked: Asked) -> Fault | None:
        if (asked.plural, asked.traffic) != ("tenantclusters", "list"):
            return None
        return LISTS[which] if which in LISTS else IN_TURN[asked.number % len(IN_TURN)]

    estate.lines["one"].aim = spoil
    await estate.api.delete("tenantclusters", "tenant-0")
    await asyncio.sleep(SWEEPS)
    living = [name for name in estate.allocations if not name.startswith("tenant-0")]
    assert {estate.phases()[name] for name in living} == {"Allocated"}
    estate.lines["one"].aim = None
    await estate.until(lambda: list(estate.phases().values()).count("Released") == 2, lambda: str(estate.phases()))
    await estate.settle()
    assert {estate.phases()[name] for name in living} == {"Allocated"}
    await estate.verdict(orphans=gone)


@scales(long=1)
async def test_a_server_that_disowns_all_tenants_is_not_believed(estate: Estate) -> None:
    """Lists are empty and every single tenant is answered with an error that names no object."""
    await estate.butler("one")
    await _house_of(estate, 3)

    def disown(asked: Asked) -> Fault | None:
        if asked.plural != "tenantclusters" or asked.traffic not in ("list", "read"):
            return None
        return Fault("refuse", (404, 500, 503)[asked.number % 3]) if asked.traffic == "read" else Fault("empty")

    estate.lines["one"].aim = disown
    gone = _uids(estate, 1)
    await estate.api.delete("tenantclusters", "tenant-1")
    await asyncio.sleep(SWEEPS)
    assert set(estate.phases().values()) == {"Allocated"}
    estate.lines["one"].aim = None
    await estate.until(lambda: list(estate.phases().values()).count("Released") == 2, lambda: str(estate.phases()))
    await estate.settle()
    await estate.verdict(orphans=gone)


@scales()
async def test_a_tenant_that_comes_back_under_its_name_inherits_nothing(estate: Estate) -> None:
    """Same name, new UID: the addresses of the old one are given back, the new one's are its own."""
    for name in ("one", "two"):
        await estate.butler(name)
    await _house_of(estate, 3)
    gone = _uids(estate, 0)
    await estate.api.delete("tenantclusters", "tenant-0")
    again = await estate.tenant("tenant-0")
    await estate.request("tenant-0-again", 2, tenant="tenant-0")
    await estate.until(lambda: list(estate.phases().values()).count("Released") == 2, lambda: str(estate.phases()))
    await estate.settle()
    new = estate.allocations["tenant-0-again"]
    assert new["status"]["phase"] == "Allocated"
    assert new["status"]["tenantClusterUID"] == again["metadata"]["uid"]
    await asyncio.sleep(SWEEPS)
    assert list(estate.phases().values()).count("Released") == 2
    await estate.verdict(orphans=gone)


@scales()
async def test_orphans_that_wait_or_failed_are_collected_and_the_unborn_are_left_alone(estate: Estate) -> None:
    await estate.butler("one")
    await _house_of(estate, 2)
    await estate.request("failed", 5000, tenant="tenant-0")
    await estate.request("ahead-of-its-tenant", 2, tenant="not-there-yet")
    await estate.until(
        lambda: (
            estate.phases().get("failed") == "Failed"
            and estate.phases().get("ahead-of-its-tenant") == "Allocated"
            and bool(estate.allocations["failed"]["status"].get("tenantClusterUID"))
        ),
        lambda: str(estate.phases()),
    )
    gone = _uids(estate, 0)
    assert len(gone) == 3
    await estate.api.delete("tenantclusters", "tenant-0")
    await estate.until(lambda: list(estate.phases().values()).count("Released") == 3, lambda: str(estate.phases()))
    await estate.settle()
    assert estate.phases()["ahead-of-its-tenant"] == "Allocated"
    await estate.verdict(orphans=gone)


@scales(long=1)
async def test_an_orphan_that_was_adopted_in_the_last_moment_keeps_its_addresses(estate: Estate) -> None:
    """While its release is on the line, an operator labels it as owned by another tenant: the release comes late."""
    await estate.butler("one")
    await _house_of(estate, 2)
    heir = await estate.api.get("tenantclusters", "tenant-1")
    assert heir is not None
    adopted: list[str] = []

    async def adopt(asked: Asked, moment: Moment) -> None:
        if asked.name == "tenant-0-lb" and moment == "before" and not adopted:
            adopted.append(str(asked))
            label = {"butler.butlerlabs.dev/tenant-uid": heir["metadata"]["uid"]}
            reference = {"metadata": {"labels": label}}
            await estate.api.patch("ipallocations", "tenant-0-lb", reference)

    estate.lines["one"].on_write = adopt
    await estate.api.delete("tenantclusters", "tenant-0")
    await estate.until(lambda: estate.phases()["tenant-0-nodes"] == "Released", lambda: str(estate.phases()))
    await estate.until(lambda: bool(adopted), "a release on the line")
    await asyncio.sleep(SWEEPS)
    await estate.settle()
    assert estate.phases()["tenant-0-lb"] == "Allocated"
    await estate.verdict()


@scales(long=1)
async def test_a_tenant_missing_for_less_than_the_gap_keeps_its_addresses(estate: Estate) -> None:
    """One look is not enough: a tenant that every read denies for a moment, and then knows again, loses nothing."""
    await estate.butler("one", "--sighting-gap", "3")
    await _house_of(estate, 2)
    denied: list[Asked] = []

    def deny(asked: Asked) -> Fault | None:
        if asked.plural != "tenantclusters" or asked.traffic not in ("list", "read"):
            return None
        if asked.traffic == "list":
            return Fault("empty")
        denied.append(asked)
        return Fault("deny")

    estate.lines["one"].aim = deny
    await estate.until(lambda: len(denied) >= 4, "several looks", 30)
    estate.lines["one"].aim = None
    await asyncio.sleep(3.5)
    assert set(estate.phases().values()) == {"Allocated"}
    await estate.settle()
    await estate.verdict()
