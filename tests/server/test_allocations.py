"""Allocations as the API lists them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.contract import read, refused
from server.eventually import eventually
from server.objects import HOME, allocation, create, pool
from server.rights import grant

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def _granted(api: Api, of: str, count: int) -> None:
    async def check() -> None:
        assert (await read(api, f"/allocations?pool={of}&phase=Allocated"))["total"] == count

    await eventually(check)


async def _names(api: Api, query: str) -> list[str]:
    names: list[str] = []
    cursor = ""
    while True:
        found = await read(api, f"/allocations?{query}{cursor}")
        names += [item["name"] for item in found["items"]]
        if found["next"] is None:
            assert len(names) == found["total"]
            return names
        cursor = f"&cursor={found['next']}"


async def test_allocations_come_in_pages_in_every_order(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("orders", f"{network}.0.0/24"))
    for number, count in enumerate((3, 1, 4, 1, 5)):
        create(plane, allocation(f"order-{number}", "orders", count, tenant=f"shop-{number % 2}"))
    await _granted(api, "orders", 5)
    every = [f"order-{number}" for number in range(5)]
    assert await _names(api, "pool=orders&limit=2") == every
    assert await _names(api, "pool=orders&limit=2&sort=-name") == every[::-1]
    assert await _names(api, "pool=orders&limit=1&sort=count") == [every[item] for item in (1, 3, 0, 2, 4)]
    by_address = await _names(api, "pool=orders&limit=2&sort=start")
    assert sorted(by_address) == every
    assert await _names(api, "pool=orders&limit=3&sort=-start") == by_address[::-1]
    assert await _names(api, "tenant=team-web/shop-1&pool=orders&limit=1") == ["order-1", "order-3"]
    assert await _names(api, "pool=orders&state=held&type=nodes&limit=2") == every
    assert await _names(api, "pool=orders&type=loadbalancer") == []


async def test_a_page_goes_on_where_the_last_one_ended_whatever_has_gone(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("leaving", f"{network}.0.0/24"))
    for number in range(6):
        create(plane, allocation(f"leaving-{number}", "leaving", 1))
    await _granted(api, "leaving", 6)
    first = await read(api, "/allocations?pool=leaving&limit=3")
    plane.kubectl("delete", "ipallocation", "leaving-2", "-n", HOME)
    create(plane, allocation("leaving-22", "leaving", 1))

    async def replaced() -> None:
        found = await read(api, "/allocations?pool=leaving&phase=Allocated&limit=10")
        assert [item["name"] for item in found["items"]][2] == "leaving-22"

    await eventually(replaced)
    rest = await read(api, f"/allocations?pool=leaving&limit=10&cursor={first['next']}")
    assert [item["name"] for item in rest["items"]] == ["leaving-22", "leaving-3", "leaving-4", "leaving-5"]


async def test_an_allocation_is_found_by_an_address_in_the_midst_of_it(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("midst", f"{network}.0.0/24"))
    create(plane, allocation("midst-nodes", "midst", 9))
    await _granted(api, "midst", 1)
    found = await read(api, f"/allocations/{HOME}/midst-nodes")
    middle = found["start"].rpartition(".")[0] + "." + str(int(found["start"].rpartition(".")[2]) + 4)
    assert await _names(api, f"q={middle}") == ["midst-nodes"]
    assert await _names(api, "q=MIDST-n") == ["midst-nodes"]


async def test_what_was_refused_says_why(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("tiny", f"{network}.0.0/29"))
    create(plane, allocation("too-much", "tiny", 60))

    async def failed() -> None:
        found = await read(api, "/allocations?pool=tiny&state=refused")
        assert found["total"] == 1
        assert found["items"][0]["message"]
        assert (found["items"][0]["count"], found["items"][0]["requested"]) == (0, 60)

    await eventually(failed)
    impact = await read(api, f"/allocations/{HOME}/too-much/impact")
    assert impact["range"] is None
    assert impact["follows"] == ["it holds nothing: the request is taken back"]


async def test_parameters_that_mean_nothing_are_refused_by_name(api: Api) -> None:
    for wrong in (
        "limit=0",
        "limit=1001",
        "limit=many",
        "phase=Gone",
        "state=lost",
        "type=printers",
        "sort=colour",
        "cursor=!!!",
        "cursor=e30",
        "tenant=shop",
    ):
        status, problem = await refused(api, f"/allocations?{wrong}")
        assert (wrong, status) == (wrong, 422)
        assert problem["detail"].startswith(wrong.partition("=")[0]), problem
    assert (await read(api, "/allocations?limit=1&colour=blue"))["total"] >= 0


async def test_a_cursor_of_another_order_is_refused(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("mixed", f"{network}.0.0/24"))
    for number in range(3):
        create(plane, allocation(f"mixed-{number}", "mixed", 1))
    await _granted(api, "mixed", 3)
    page = await read(api, "/allocations?pool=mixed&limit=1")
    status, problem = await refused(api, f"/allocations?pool=mixed&limit=1&sort=count&cursor={page['next']}")
    assert status == 422
    assert "another order" in problem["detail"]


async def test_only_who_may_list_allocations_sees_them(api: Api, plane: ControlPlane) -> None:
    for path in ("/allocations", f"/allocations/{HOME}/unknown", f"/allocations/{HOME}/unknown/impact"):
        status, problem = await refused(api, path, user="mallory")
        assert status == 403
        assert "you may not read IPAllocations" in problem["detail"]
    grant(plane, "alma", ["get", "list"], ["ipallocations"])
    assert (await read(api, "/allocations", user="alma"))["total"] >= 0
    status, _ = await refused(api, f"/allocations/{HOME}/unknown", user="alma")
    assert status == 404
    status, _ = await refused(api, "/pools", user="alma")
    assert status == 403
