"""Pools as the API shows them."""

from __future__ import annotations

import asyncio
import csv
import io
from typing import TYPE_CHECKING

import pytest

from butler.server.cache import background_work
from server.contract import read, refused
from server.eventually import eventually
from server.objects import allocation, create, pool

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS = "/pools/butler-system/rows/segments/rows"


async def test_a_pool_is_shown_with_its_counters_and_every_address_in_its_place(
    api: Api, plane: ControlPlane, network: str
) -> None:
    reserved = [{"cidr": f"{network}.0.0/28", "description": "switches"}]
    create(plane, pool("lab", f"{network}.0.0/24", reserved=reserved))
    create(plane, allocation("shop-nodes", "lab", 5))

    async def granted() -> None:
        found = await read(api, "/pools/butler-system/lab")
        assert found["pool"]["allocated"] == 5
        assert found["pool"]["total"] == 239
        assert found["reserved"][0]["description"] == "switches"

    await eventually(granted)

    async def in_place() -> None:
        shown = await read(api, "/pools/butler-system/lab/segments")
        columns = shown["columns"]
        assert sum(columns["size"]) == shown["count"] == 256
        kinds = [shown["kinds"][item] for item in columns["kind"]]
        assert kinds == ["reserved", "allocated", "free", "outside"]
        assert shown["holders"][columns["holder"][1]]["tenant"] == "team-web/shop"

    await eventually(in_place)  # "granting" for a moment


async def test_a_list_is_paged_and_nothing_is_sent_twice(api: Api, plane: ControlPlane, network: str) -> None:
    for number in range(5):
        create(plane, pool(f"page-{number}", f"{network}.{number}.0/24"))

    async def five() -> None:
        assert (await read(api, "/pools?q=page-"))["total"] == 5

    await eventually(five)
    names, cursor = [], ""
    while True:
        found = await read(api, f"/pools?q=page-&limit=2&sort=-name{cursor}")
        names += [item["name"] for item in found["items"]]
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


async def test_a_user_without_rights_sees_nothing(api: Api) -> None:
    status, problem, _ = await api.call("GET", "/pools", user="")
    assert (status, problem["type"]) == (401, "urn:butler:problem:unauthenticated")


async def test_segments_come_in_rows_and_as_a_file(api: Api, plane: ControlPlane, network: str) -> None:
    reserved = [{"cidr": f"{network}.0.0/28", "description": "=switches"}]
    create(plane, pool("rows", f"{network}.0.0/24", reserved=reserved))
    create(plane, allocation("rows-nodes", "rows", 5))

    async def granted() -> None:
        assert (await read(api, f"{ROWS}?kind=allocated"))["total"] == 1

    await eventually(granted)
    first = await read(api, f"{ROWS}?limit=2")
    assert [item["kind"] for item in first["items"]] == ["reserved", "allocated"]
    rest = await read(api, f"{ROWS}?limit=2&cursor={first['next']}")
    assert [item["kind"] for item in rest["items"]] == ["free", "outside"]
    assert rest["next"] is None
    part = await read(api, f"{ROWS}?start={network}.0.15&end={network}.0.16")
    assert [(item["kind"], item["count"]) for item in part["items"]] == [("reserved", 1), ("allocated", 1)]
    for asked, headers in ((f"{ROWS}?format=csv", {}), (ROWS, {"Accept": "text/csv"})):
        status, text, sent = await api.call("GET", asked, headers=headers)
        assert status == 200
        assert sent["Content-Type"].startswith("text/csv")
        assert 'filename="rows-segments.csv"' in sent["Content-Disposition"]
        lines = list(csv.DictReader(io.StringIO(text)))
        assert [line["kind"] for line in lines] == ["reserved", "allocated", "free", "outside"]
        assert lines[0]["description"] == "'=switches"
    for wrong in ("start=nowhere", "end=10.0.0.256", "kind=lost", "limit=0", "cursor=x", "start=::1", "format=pdf"):
        status, problem = await refused(api, f"{ROWS}?{wrong}")
        assert (wrong, status) == (wrong, 422)
        assert problem["detail"].startswith(wrong.partition("=")[0]), problem


async def test_free_blocks_are_told_with_the_one_that_would_be_taken(
    api: Api, plane: ControlPlane, network: str
) -> None:
    windows = {"start": f"{network}.0.1", "end": f"{network}.0.63"}
    create(plane, pool("holes", f"{network}.0.0/24", tenantAllocation=windows))

    async def there() -> None:
        found = await read(api, "/pools/butler-system/holes/free?size=16&align=true")
        assert (found["free"], found["holes"], found["largest"]) == (63, 1, 63)
        assert found["bestFit"] == {"start": f"{network}.0.1", "end": f"{network}.0.16", "count": 16}
        assert found["blocks"][0]["fitStart"] == f"{network}.0.16"
        assert found["blocks"][0]["bestFit"] is True

    await eventually(there)
    assert (await read(api, "/pools/butler-system/holes/free?size=64"))["blocks"] == []
    assert (await read(api, "/pools/butler-system/holes/free"))["blocks"][0]["count"] == 63
    for wrong in ("size=0", "size=few", "align=perhaps"):
        status, problem = await refused(api, f"/pools/butler-system/holes/free?{wrong}")
        assert status == 422
        assert problem["detail"].startswith(wrong.partition("=")[0])


async def test_history_advice_and_forecast_say_what_the_record_tells(
    api: Api, plane: ControlPlane, network: str
) -> None:
    create(plane, pool("story", f"{network}.0.0/24"))
    create(plane, allocation("story-one", "story", 5))
    create(plane, allocation("story-two", "story", 3))

    async def grown() -> None:
        found = await read(api, "/pools/butler-system/story/history")
        assert found["points"][-1]["allocated"] == 8
        assert {change["allocation"] for change in found["changes"]} == {"story-one", "story-two"}
        assert found["total"] == 254
        assert "no longer on record" in found["note"]

    await eventually(grown)
    advice = await read(api, "/pools/butler-system/story/advice")
    assert advice["says"][0].startswith("246 of 254 addresses are free")
    forecast = await read(api, "/pools/butler-system/story/forecast")
    assert "not enough is on record" in forecast["problem"]
    plane.kubectl("delete", "ipallocation", "story-two", "-n", "butler-system")

    async def shrunk() -> None:
        assert (await read(api, "/pools/butler-system/story/history"))["points"][-1]["allocated"] == 5

    await eventually(shrunk)


async def test_every_page_of_a_pool_is_for_those_who_may_see_it(api: Api) -> None:
    for part in ("", "/segments", "/segments/rows", "/free", "/advice", "/forecast", "/history"):
        status, _ = await refused(api, f"/pools/butler-system/nowhere{part}", user="mallory")
        assert (part, status) == (part, 403)
        status, _ = await refused(api, f"/pools/butler-system/nowhere{part}")
        assert (part, status) == (part, 404)


async def test_a_large_pool_that_changes_while_it_is_looked_at_is_shown_as_it_is_in_the_end(
    api: Api, plane: ControlPlane, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_work, "FEW", 0)  # every pool is a large one
    create(plane, pool("moving", f"{network}.0.0/24"))
    over = asyncio.Event()
    seen = 0

    async def look() -> None:
        nonlocal seen
        while not over.is_set():
            for part in ("", "/segments", "/history", "/free", "/advice"):
                status, _, _ = await api.call("GET", f"/pools/butler-system/moving{part}")
                assert status in (200, 404)
                seen += status == 200

    looking = [asyncio.create_task(look()) for _ in range(4)]
    for number in range(20):
        await asyncio.to_thread(create, plane, allocation(f"moving-{number}", "moving", 1))

    async def all_agree() -> None:
        detail = await read(api, "/pools/butler-system/moving")
        assert (detail["pool"]["allocated"], detail["pool"]["allocationCount"]) == (20, 20)
        assert sum(share["addresses"] for share in detail["shares"]) == 20
        shown = await read(api, "/pools/butler-system/moving/segments")
        assert len(shown["holders"]) == 20
        assert (await read(api, "/pools/butler-system/moving/free"))["free"] == 234
        assert (await read(api, "/pools/butler-system/moving/history"))["points"][-1]["allocated"] == 20
        assert (await read(api, "/pools?q=moving"))["items"][0]["available"] == 234

    await eventually(all_agree)
    over.set()
    await asyncio.gather(*looking)
    assert seen > 20
