"""How a live stream ends, and who hears what by it."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio

from server.conftest import ROLE, person
from server.eventually import eventually
from server.follower import KINDS, apply, following, serving, tenant
from server.objects import HOME, allocation, pool
from server.rights import grant, namespace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.server.process import Running
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(plane: ControlPlane) -> AsyncIterator[Running]:
    async with serving(plane) as up:
        yield up


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


async def _ending(
    session: aiohttp.ClientSession, url: str, *, user: str = "admin", say: object = None
) -> tuple[int, str]:
    """How a stream ends."""
    headers = {ROLE: user, "Origin": url.split("/api", 1)[0]}
    async with session.ws_connect(url, headers=headers) as connected:
        if isinstance(say, str):
            await connected.send_str(say)
        elif isinstance(say, bytes):
            await connected.send_bytes(say)
        while True:
            message = await connected.receive(20)
            if message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.CLOSING):
                return connected.close_code or 0, str(message.extra or "")


@pytest.mark.parametrize("said", ["hello?", b"\x00\xff", '{"type":"subscribe"}'])
async def test_who_speaks_is_hung_up_on(server: Running, session: aiohttp.ClientSession, said: object) -> None:
    code, reason = await _ending(session, f"{server.url}/api/v1/stream", say=said)
    assert (code, reason) == (4400, "this stream takes no messages: connect again and only listen")


async def test_a_message_that_is_too_large_ends_it(server: Running, session: aiohttp.ClientSession) -> None:
    assert (await _ending(session, f"{server.url}/api/v1/stream", say="x" * 5000))[0] == 1009


async def test_unknown_kinds_are_refused(server: Running, session: aiohttp.ClientSession) -> None:
    code, reason = await _ending(session, f"{server.url}/api/v1/stream?kinds=pool,secret")
    assert code == 4400
    assert "kinds: take some of pool" in reason


async def test_when_it_is_full_the_next_one_is_told_so(
    server: Running, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butler.server.routes.stream.MOST_LISTENERS", 0)
    assert (await _ending(session, f"{server.url}/api/v1/stream"))[0] == 4429


async def test_no_user_takes_all_streams(
    server: Running, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butler.server.routes.stream.MOST_OF_ONE", 1)
    async with following(session, server):
        code, reason = await _ending(session, f"{server.url}/api/v1/stream")
    assert (code, reason) == (4429, "too many streams are open in your name: close some, then try again")


async def test_a_session_that_runs_out_ends_its_stream(
    server: Running, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()
    later = person("admin").expires_at + timedelta(hours=1)
    async with following(session, server):
        monkeypatch.setattr("butler.server.routes.stream.now", lambda: later)
        code, _ = await _ending(session, f"{server.url}/api/v1/stream")
    assert code == 4401
    assert time.monotonic() - began < 20


async def test_a_quiet_stream_beats(
    server: Running, session: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butler.server.routes.stream.BEAT", 0.2)
    async with following(session, server) as follower:

        async def beats() -> None:
            found = [frame for frame in follower.frames if frame["type"] == "beat"]
            assert len(found) >= 3
            assert all(obj["position"] for obj in found)

        await eventually(beats)


async def test_who_may_see_nothing_hears_nothing(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    async with following(session, server, KINDS, "stranger") as follower:
        assert follower.visible == []
        await apply(plane, pool("unseen", f"{network}.0.0/24"))
        await apply(plane, allocation("unseen-one", "unseen", 2))
        async with following(session, server) as other:

            async def told() -> None:
                assert other.state["pool"][f"{HOME}/unseen"]["allocated"] == 2

            await eventually(told)
        await asyncio.sleep(0.5)
        assert [frame["type"] for frame in follower.frames if frame["type"] != "beat"] == ["hello"]


async def test_who_has_rights_in_one_namespace_hears_of_its_tenants_only(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane
) -> None:
    mine, theirs = namespace(plane, "stream-mine"), namespace(plane, "stream-theirs")
    grant(plane, "tina", ["get", "list", "watch"], ["tenantclusters"], namespace=mine)
    await apply(plane, tenant("first", mine))
    async with following(session, server, KINDS, "tina") as follower:
        assert follower.visible == ["tenant"]
        for where in (theirs, mine):
            await apply(plane, tenant("second", where))

        async def told() -> None:
            assert set(follower.state["tenant"]) == {f"{mine}/first", f"{mine}/second"}

        await eventually(told)
        await asyncio.sleep(0.5)
        told_of = {(frame["kind"], frame["namespace"]) for frame in follower.frames if frame["type"] == "changed"}
        assert told_of == {("tenant", mine)}


async def test_a_right_that_comes_or_goes_makes_people_load_again(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butler.server.routes.stream.LOOK_AGAIN", 0.5)
    monkeypatch.setattr("butler.server.routes.stream.GLANCE", 0.2)
    monkeypatch.setattr("butler.server.permissions.REMEMBER", 0.3)
    await apply(plane, pool("rights", f"{network}.0.0/24"))
    async with following(session, server, user="rita") as follower:
        assert follower.state["pool"] == {}
        grant(plane, "rita", ["list"], ["networkpools", "ipallocations"])

        async def sees() -> None:
            assert f"{HOME}/rights" in follower.state["pool"]

        await eventually(sees)
        roles = (
            f"/apis/rbac.authorization.k8s.io/v1/namespaces/{HOME}/rolebindings/rita-networkpools-ipallocations-list"
        )
        status, _ = plane.request("DELETE", roles)
        assert status == 200

        async def sees_nothing() -> None:
            assert follower.state == {"pool": {}, "allocation": {}}

        await eventually(sees_nothing)


async def test_a_tenant_in_a_new_namespace_is_told_of_at_once_to_who_may_see_it(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane
) -> None:
    async with following(session, server, ("tenant",), "nora") as follower:
        new = namespace(plane, "stream-new")
        grant(plane, "nora", ["list"], ["tenantclusters"], namespace=new)
        await apply(plane, tenant("first", new))

        async def told() -> None:
            assert set(follower.state["tenant"]) == {f"{new}/first"}

        await eventually(told, seconds=8)
