"""Pools as the API shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.eventually import eventually
from server.objects import allocation, create, pool

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_a_pool_is_shown_with_its_counters_and_every_address_in_its_place(
    api: Api, plane: ControlPlane, network: str
) -> None:
    reserved = [{"cidr": f"{network}.0.0/28", "description": "switches"}]
    create(plane, pool("lab", f"{network}.0.0/24", reserved=reserved))
    create(plane, allocation("shop-nodes", "lab", 5))

    async def granted() -> None:
        found = await api.get("/pools/butler-system/lab")
        assert found["pool"]["allocated"] == 5
        assert found["pool"]["total"] == 239
        assert found["reserved"][0]["description"] == "switches"

    await eventually(granted)
    shown = await api.get("/pools/butler-system/lab/segments")
    columns = shown["columns"]
    assert sum(columns["size"]) == shown["count"] == 256
    kinds = [shown["kinds"][each] for each in columns["kind"]]
    assert kinds == ["reserved", "allocated", "free", "outside"]
    assert shown["holders"][columns["holder"][1]]["tenant"] == "team-web/shop"


async def test_a_list_is_paged_and_nothing_is_sent_twice(api: Api, plane: ControlPlane, network: str) -> None:
    for number in range(5):
        create(plane, pool(f"page-{number}", f"{network}.{number}.0/24"))

    async def five() -> None:
        assert (await api.get("/pools?q=page-"))["total"] == 5

    await eventually(five)
    names, cursor = [], ""
    while True:
        found = await api.get(f"/pools?q=page-&limit=2&sort=-name{cursor}")
        names += [each["name"] for each in found["items"]]
        if found["next"] is None:
            break
        cursor = f"&cursor={found['next']}"
    assert names == [f"page-{number}" for number in (4, 3, 2, 1, 0)]
    status, _, headers = await api.call("GET", "/pools?q=page-")
    assert status == 200
    again, body, _ = await api.call("GET", "/pools?q=page-", headers={"If-None-Match": headers["ETag"]})
    assert (again, body) == (304, "")


async def test_who_may_not_read_pools_is_told_so(api: Api) -> None:
    status, problem, headers = await api.call("GET", "/pools", user="mallory")
    assert status == 403
    assert headers["Content-Type"].startswith("application/problem+json")
    assert "you may not read NetworkPools" in problem["detail"]


async def test_nobody_sees_nothing(api: Api) -> None:
    status, problem, _ = await api.call("GET", "/pools", user="")
    assert (status, problem["type"]) == (401, "urn:butler:problem:unauthenticated")
