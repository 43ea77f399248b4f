"""The first page."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from ipam_operator import Desk
from local.older_definition import older_definition, write
from server.contract import read, refused
from server.eventually import eventually
from server.objects import HOME, allocation, create, pool
from server.rights import reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_full_pool_and_a_refused_request_need_attention(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("brim", f"{network}.0.0/28"))
    create(plane, allocation("brim-most", "brim", 14))

    async def full() -> None:
        found = await read(api, "/overview")
        assert found["totals"]["allocated"] == found["totals"]["addresses"] == 14
        titles = [(item["severity"], item["title"]) for item in found["attention"]]
        assert ("critical", "Pool brim is all but full") in titles

    await eventually(full)
    create(plane, allocation("brim-one-more", "brim", 1))

    async def refused_one() -> None:
        found = await read(api, "/overview")
        assert found["totals"]["waiting"] == 1
        told = {item["title"]: item for item in found["attention"]}
        assert "brim-one-more was refused in pool brim" in told
        one = told["brim-one-more was refused in pool brim"]
        assert one["link"] == {"kind": "allocation", "namespace": HOME, "name": "brim-one-more"}
        assert one["detail"]

    await eventually(refused_one)
    found = await read(api, "/overview")
    order = [item["severity"] for item in found["attention"]]
    assert order == sorted(order, key=["critical", "warning", "info"].index)
    assert found["hidden"]["kinds"] == []


async def test_addresses_that_are_held_twice_come_first(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("once", f"{network}.0.0/24"))
    create(plane, allocation("once-one", "once", 2))
    create(plane, allocation("once-two", "once", 2))

    async def granted() -> None:
        assert (await read(api, "/allocations?pool=once&phase=Allocated"))["total"] == 2

    await eventually(granted)
    assert (await read(api, "/overlaps"))["items"] == []
    one = await read(api, f"/allocations/{HOME}/once-one")
    with closing(Desk(plane, HOME)) as desk, older_definition(desk):
        write(desk, "once-two", {"startAddress": one["start"], "endAddress": one["end"]})

    async def told() -> None:
        found = await read(api, "/overlaps")
        assert [item["trouble"] for item in found["items"]] == ["HeldTwice"]
        first = (await read(api, "/overview"))["attention"][0]
        assert first["title"].startswith("Addresses are held twice")

    await eventually(told)


async def test_who_may_see_nothing_is_told_what_is_hidden(api: Api, plane: ControlPlane) -> None:
    found = await read(api, "/overview", user="mallory")
    assert found["hidden"]["kinds"] == ["NetworkPool", "IPAllocation", "TenantCluster", "ProviderConfig"]
    assert found["attention"] == []
    assert set(found["totals"].values()) == {0}
    seen = await read(api, "/overview", user=reader(plane, "ruth"))
    assert seen["hidden"]["kinds"] == ["TenantCluster"]
    assert seen["totals"]["pools"] > 0
    status, _ = await refused(api, "/overlaps", user="mallory")
    assert status == 403
