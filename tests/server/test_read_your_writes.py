"""What a user has heard from one replica is in what another one shows them, also while it counts large pools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import aiohttp
import pytest

from butler.server.cache import background_work
from butler.server.cursor import encode_cursor
from server.conftest import ROLE
from server.eventually import eventually
from server.follower import following, serving
from server.objects import allocation, create, pool

if TYPE_CHECKING:
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_no_replica_shows_less_than_another_has_told(
    plane: ControlPlane, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background_work, "FEW", -1)  # every pool is a large one, and shown as it was a moment ago
    create(plane, pool("told", f"{network}.0.0/24"))
    async with serving(plane) as one, serving(plane) as other, aiohttp.ClientSession() as session:

        async def shown(heard: str) -> int:
            headers = {ROLE: "admin", "Butler-Heard": heard}
            async with session.get(f"{other.url}/api/v1/pools/butler-system/told", headers=headers) as answer:
                assert answer.status == 200
                return int((await answer.json())["pool"]["allocated"])

        async with following(session, one, ("pool",)) as follower:

            async def told(wanted: int) -> None:
                assert follower.state["pool"]["butler-system/told"]["allocated"] >= wanted

            for number in range(1, 21):
                create(plane, allocation(f"told-{number}", "told", 1))
                await eventually(lambda number=number: told(number))
                heard_of = follower.state["pool"]["butler-system/told"]["allocated"]
                assert await shown(follower.heard) >= heard_of


async def test_what_never_happens_is_not_waited_for(plane: ControlPlane) -> None:
    headers = {ROLE: "admin", "Butler-Heard": encode_cursor({"pool": 10**30, "unknown": 5, "activity": -1})}
    async with (
        serving(plane) as up,
        aiohttp.ClientSession() as session,
        session.get(f"{up.url}/api/v1/pools", headers=headers) as answer,
    ):
        assert answer.status == 200
