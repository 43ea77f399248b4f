"""Whose an address is, and what a text means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from server.contract import read, refused
from server.eventually import eventually
from server.objects import allocation, create, pool
from server.rights import reader

if TYPE_CHECKING:
    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_address_is_told_with_its_pool_its_holder_and_its_neighbours(
    api: Api, plane: ControlPlane, network: str
) -> None:
    reserved = [{"cidr": f"{network}.0.0/28", "description": "switches"}]
    create(plane, pool("whose", f"{network}.0.0/24", reserved=reserved))
    create(plane, allocation("whose-nodes", "whose", 4))

    async def held() -> None:
        found = await read(api, f"/addresses/{network}.0.17")
        assert found["known"] is True
        place = found["places"][0]
        assert (place["pool"], place["kind"], place["held"]) == ("whose", "allocated", True)
        assert place["owners"][0]["allocation"] == "whose-nodes"
        assert place["owners"][0]["tenantExists"] is False

    await eventually(held)
    kept = await read(api, f"/addresses/{network}.0.3")
    assert (kept["places"][0]["kind"], kept["places"][0]["description"]) == ("reserved", "switches")
    whole = await read(api, f"/addresses/{network}.0.0/24")
    assert whole["asked"]["count"] == 256
    assert [item["kind"] for item in whole["places"]] == ["reserved", "allocated", "free", "outside"]
    part = await read(api, f"/addresses/{network}.0.15-{network}.0.16")
    assert [item["count"] for item in part["places"]] == [1, 1]
    encoded = await read(api, f"/addresses/{network}.0.0%2F24")
    assert encoded == whole
    away = await read(api, "/addresses/192.0.2.1")
    assert away["known"] is False
    assert away["nearestPool"] is not None


async def test_nonsense_is_refused_with_a_sentence(api: Api) -> None:
    for nonsense in ("nonsense", "10.0.0", "10.0.0.300", "10.0.0.9-10.0.0.1", "10.0.0.1/24", "10.0.0.0/99"):
        status, problem = await refused(api, f"/addresses/{nonsense}")
        assert (nonsense, status) == (nonsense, 422)
        assert problem["errors"][0]["field"] == "address"
        assert len(problem["errors"][0]["message"]) > 20


async def test_a_search_finds_names_the_best_first_and_addresses(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("seek", f"{network}.0.0/24"))
    for name in ("seek", "seek-more", "hide-and-seek"):
        create(plane, allocation(name, "seek", 2))

    async def found() -> None:
        hits = (await read(api, "/search?q=SEEK"))["hits"]
        named = [(hit["link"]["kind"], hit["link"]["name"]) for hit in hits]
        assert named == [
            ("pool", "seek"),
            ("allocation", "seek"),
            ("allocation", "seek-more"),
            ("allocation", "hide-and-seek"),
        ]

    await eventually(found)
    address = await read(api, f"/search?q={network}.0.1")
    assert address["hits"] == []
    assert address["address"]["pools"][0]["name"] == "seek"
    assert (await read(api, "/search?q=no-such-thing"))["hits"] == []
    assert (await read(api, "/search?q="))["hits"] == []
    status, problem = await refused(api, "/search")
    assert status == 422
    assert "'q'" in problem["detail"]


async def test_a_search_shows_no_user_what_they_may_not_see(api: Api, plane: ControlPlane, network: str) -> None:
    create(plane, pool("veiled", f"{network}.0.0/24"))

    async def there() -> None:
        assert (await read(api, "/search?q=veiled"))["hits"]

    await eventually(there)
    assert (await read(api, "/search?q=veiled", user="mallory"))["hits"] == []
    assert (await read(api, f"/search?q={network}.0.1", user="mallory"))["address"] is None
    status, _ = await refused(api, f"/addresses/{network}.0.1", user="mallory")
    assert status == 403
    assert (await read(api, "/search?q=veiled", user=reader(plane, "rita")))["hits"]
