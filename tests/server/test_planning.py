"""What-if through the API."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from server.eventually import eventually
from server.objects import allocation, create, pool
from server.rights import reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def ready(api: Api, name: str, allocated: int = 0) -> None:
    async def check() -> None:
        status, shown, _ = await api.call("GET", f"/pools/butler-system/{name}")
        assert status == 200
        assert shown["pool"]["ready"]
        assert shown["pool"]["allocated"] == allocated
        assert shown["pool"]["waiting"] == 0, "promised addresses count, too, before they are granted"

    await eventually(check)


async def planned(api: Api, body: Any, **options: Any) -> Any:
    status, shown, _ = await api.call("POST", "/plan", body, **options)
    assert status == 200, shown
    return shown


async def test_tenants_come_until_the_pool_is_full(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("rack", f"{network}.0.0/26"))
    create(plane, allocation("rack-nodes", "rack", 6))
    await ready(api, "rack", 6)
    body = {"tenants": {"count": 6, "nodes": 5, "loadBalancers": 8, "pools": ["rack"]}}
    shown = await planned(api, body)
    assert (shown["fits"], shown["tenantsThatFit"], shown["firstFailure"]["tenant"]) == (False, 4, 5)
    assert shown["tenants"][0]["blocks"][0]["range"]["start"] == f"{network}.0.7"
    assert [item["name"] for item in shown["pools"]] == ["rack"]
    assert shown["edited"] is None
    grown = await planned(api, body | {"edit": {"pool": "rack", "cidr": f"{network}.0.0/25"}})
    assert (grown["fits"], grown["edit"]["refused"], grown["edit"]["after"]["cidr"]) == (True, [], f"{network}.0.0/25")
    held = [kind == grown["edited"]["kinds"].index("allocated") for kind in grown["edited"]["columns"]["kind"]]
    sizes = zip(grown["edited"]["columns"]["size"], held, strict=True)
    assert (grown["edited"]["count"], sum(size for size, is_held in sizes if is_held)) == (128, 6)
    assert (await api.get("/pools/butler-system/rack"))["pool"]["allocated"] == 6, "nothing was written"


async def test_an_edit_that_strands_tenants_says_whom(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("cut", f"{network}.0.0/26"))
    create(plane, allocation("cut-nodes", "cut", 6))
    await ready(api, "cut", 6)
    shown = await planned(api, {"edit": {"pool": "cut", "windows": [[f"{network}.0.32", f"{network}.0.62"]]}})
    assert shown["fits"] is False
    assert [item["name"] for item in shown["edit"]["stranded"]] == ["cut-nodes"]
    assert shown["edit"]["refused"]
    assert shown["edited"] is None


async def test_single_requests_get_what_they_would_get(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("single", f"{network}.0.0/28"))
    await ready(api, "single")
    shown = await planned(
        api, {"requests": [{"pool": "single", "count": 10}, {"pool": "single", "count": 10, "type": "nodes"}]}
    )
    assert [request["range"] and request["range"]["count"] for request in shown["requests"]] == [10, None]
    assert shown["requests"][1]["message"]


async def test_a_question_has_bounds(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("bound", f"{network}.0.0/28"))
    await ready(api, "bound")
    tenants = {"count": 1, "pools": ["bound"]}
    cases: list[tuple[Any, str]] = [
        ({}, ""),
        ({"tenants": tenants | {"count": 0}}, "tenants.count"),
        ({"tenants": tenants | {"count": 2001}}, "tenants.count"),
        ({"tenants": tenants | {"nodes": 5001}}, "tenants.nodes"),
        ({"tenants": tenants | {"loadBalancers": 0}}, "tenants.loadBalancers"),
        ({"tenants": tenants | {"pools": ["bound"] * 65}}, "tenants.pools"),
        ({"requests": [{"pool": "bound", "count": 1}] * 201}, "requests"),
        ({"requests": [{"pool": "bound", "count": 1 << 20}]}, "requests[0].count"),
        ({"edit": {"pool": "bound", "reserve": ["10.0.0.0/30"] * 257}}, "edit.reserve"),
        ({"edit": {"pool": "bound", "windows": [["a", "b"]] * 17}}, "edit.windows"),
    ]
    for body, field in cases:
        status, problem, _ = await api.call("POST", "/plan", body)
        assert status == 422, (body, problem)
        assert (problem["errors"] or [{"field": ""}])[0]["field"] == field
    for body in (
        {"tenants": tenants | {"pools": ["nowhere"]}},
        {"tenants": {"count": 1, "provider": "unknown"}},
        {"requests": [{"pool": "nowhere"}]},
    ):
        status, problem, _ = await api.call("POST", "/plan", body)
        assert (status, "--" in problem["detail"]) == (422, False), problem


async def test_others_are_served_while_a_plan_is_made(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("large", f"{network}.0.0/16"))
    await ready(api, "large")
    body = {"tenants": {"count": 2000, "nodes": 5, "loadBalancers": 8, "pools": ["large"]}}
    began = time.monotonic()
    task = asyncio.ensure_future(planned(api, body))
    slowest = 0.0
    while not task.done():
        asked = time.monotonic()
        await api.get("/pools?limit=1")
        slowest = max(slowest, time.monotonic() - asked)
        await asyncio.sleep(0.02)
    shown = await task
    took = time.monotonic() - began
    assert shown["tenantsThatFit"] == 2000
    assert slowest < max(2.0, took / 2), (slowest, took)


async def test_who_may_not_read_pools_cannot_plan_with_them(api: Api, plane: ControlPlane) -> None:
    status, _, _ = await api.call("POST", "/plan", {"requests": [{"pool": "rack", "count": 1}]}, user="mallory")
    assert status == 403
    ruth = reader(plane, "ruth")
    shown = await planned(api, {"requests": [{"pool": "rack", "count": 1}]}, user=ruth)
    assert shown["fits"], "who may read may ask what if"
