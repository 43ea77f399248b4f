"""The live stream over real WebSockets: what is heard, in which order, and by whom who was away or slow."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from butler.server.stream import hub as streams
from server.eventually import eventually
from server.follower import Follower, Json, apply, following, serving
from server.objects import GROUP, HOME, allocation, pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.server.process import Running
    from control_planes import ControlPlane

ALLOCATIONS = f"/apis/{GROUP}/namespaces/{HOME}/ipallocations"
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def server(plane: ControlPlane) -> AsyncIterator[Running]:
    async with serving(plane) as up:
        yield up


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as opened:
        yield opened


async def test_a_change_made_with_kubectl_arrives_at_once(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    await apply(plane, pool("quick", f"{network}.0.0/24"))
    await apply(plane, allocation("quick-one", "quick", 4))
    async with following(session, server) as follower:

        async def granted() -> None:
            assert follower.state["pool"][f"{HOME}/quick"]["allocated"] == 4

        await eventually(granted)
        taken = []
        for number in range(10):
            command = ("annotate", "--overwrite", "ipallocation", "quick-one", "-n", HOME, f"round={number}")
            await asyncio.to_thread(plane.kubectl, *command)
            done = time.monotonic()
            version = plane.request("GET", f"{ALLOCATIONS}/quick-one")[1]["metadata"]["resourceVersion"]

            async def heard(wanted: str = version) -> None:
                assert follower.state["allocation"][f"{HOME}/quick-one"]["resourceVersion"] == wanted

            await eventually(heard, seconds=10)
            taken.append(time.monotonic() - done)
    print(f"after kubectl came back: {[f'{seconds * 1000:.0f} ms' for seconds in taken]}")
    assert min(taken) < 5


async def test_an_allocation_changes_its_pool_and_both_are_told_as_lists_show_them(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    await apply(plane, pool("both", f"{network}.0.0/24"))
    async with following(session, server) as follower:
        await apply(plane, allocation("both-one", "both", 7))

        async def told() -> None:
            shown = follower.state["pool"][f"{HOME}/both"]
            assert (shown["allocated"], shown["waiting"]) == (7, 0)
            assert follower.state["allocation"][f"{HOME}/both-one"]["state"] == "held"

        await eventually(told)
        about = [change for change in follower.changes("allocation") if change["name"] == "both-one"]
        assert all(obj["pools"] == ["both"] and obj["tenants"] == ["team-web/shop"] for obj in about)
        await asyncio.to_thread(plane.request, "DELETE", f"{ALLOCATIONS}/both-one")

        async def gone() -> None:
            assert f"{HOME}/both-one" not in follower.state["allocation"]
            assert follower.state["pool"][f"{HOME}/both"]["allocated"] == 0

        await eventually(gone)


async def test_a_burst_is_told_of_every_allocation_and_seldom_of_the_pool(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    await apply(plane, pool("burst", f"{network}.0.0/22"))
    async with following(session, server) as follower:
        began = time.monotonic()
        await asyncio.gather(*(apply(plane, allocation(f"burst-{number}", "burst", 1)) for number in range(200)))

        async def told() -> None:
            assert follower.state["pool"][f"{HOME}/burst"]["allocated"] == 200
            held = [text for text in follower.state["allocation"].values() if text["pool"] == "burst"]
            assert sum(obj["state"] == "held" for obj in held) == 200

        await eventually(told, seconds=60)
        took = time.monotonic() - began
        about = [change for change in follower.changes("pool") if change["name"] == "burst"]
        print(f"{len(about)} frames about the pool in {took:.1f} s")
        assert len(about) <= took / streams.PAUSE + 2


async def test_a_hundred_listeners_hear_everything_in_order(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    await apply(plane, pool("crowd", f"{network}.0.0/22"))
    async with contextlib.AsyncExitStack() as stack:
        crowd = [await stack.enter_async_context(following(session, server)) for _ in range(100)]
        for number in range(30):
            await apply(plane, allocation(f"crowd-{number}", "crowd", 2))

        async def told() -> None:
            for follower in crowd:
                assert follower.state["pool"][f"{HOME}/crowd"]["allocated"] == 60
                states = [item["state"] for item in follower.state["allocation"].values() if item["pool"] == "crowd"]
                assert states == ["held"] * 30, "the pool counts what is promised, before it is granted"

        await eventually(told, seconds=60)
        heard = [
            [(one["name"], one["item"]) for one in follower.changes("allocation") if one["item"]["pool"] == "crowd"]
            for follower in crowd
        ]
        # Each hears the same in the same order; the records of the grants, which come later, may be on their way.
        so_far = min(map(len, heard))
        assert so_far >= 30
        assert all(row[:so_far] == heard[0][:so_far] for row in heard)
        for follower in crowd:
            assert not follower.resets
            versions: dict[str, int] = {}
            for frame in follower.changes("allocation"):
                version = int(frame["item"]["resourceVersion"])
                assert version > versions.get(frame["name"], 0)
                versions[frame["name"]] = version


async def test_who_comes_back_hears_what_they_missed(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    await apply(plane, pool("missed", f"{network}.0.0/24"))
    await apply(plane, allocation("missed-goes", "missed", 2))
    async with following(session, server) as follower:

        async def held() -> None:
            assert follower.state["pool"][f"{HOME}/missed"]["allocated"] == 2

        await eventually(held)
    await asyncio.to_thread(plane.request, "DELETE", f"{ALLOCATIONS}/missed-goes")
    await apply(plane, allocation("missed-comes", "missed", 3))
    task = asyncio.create_task(follower.run(server.url))
    try:

        async def caught_up() -> None:
            assert f"{HOME}/missed-goes" not in follower.state["allocation"]
            assert follower.state["pool"][f"{HOME}/missed"]["allocated"] == 3

        await eventually(caught_up)
        assert follower.resets == []
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_who_comes_back_too_late_is_told_to_load_again(
    server: Running, session: aiohttp.ClientSession, plane: ControlPlane, network: str
) -> None:
    async with following(session, server) as follower:
        pass
    stream = server.services.stream
    for past in stream._pasts.values():
        past._most = 3
    try:
        await apply(plane, pool("late", f"{network}.0.0/24"))
        for number in range(5):
            await apply(plane, allocation(f"late-{number}", "late", 1))
        await asyncio.sleep(0.5)
        follower.ready.clear()
        task = asyncio.create_task(follower.run(server.url))

        async def loaded() -> None:
            assert follower.resets == [["pool", "allocation"]]
            late = follower.state["pool"].get(f"{HOME}/late")
            assert late is not None
            assert late["allocated"] == 5

        await eventually(loaded)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    finally:
        for past in stream._pasts.values():
            past._most = 5_000


@pytest.mark.parametrize("since", ["nonsense", "W10", "a" * 3000])
async def test_a_position_that_makes_no_sense_means_loading_again(
    server: Running, session: aiohttp.ClientSession, since: str
) -> None:
    follower = Follower(session, ("pool",))
    follower.position = since
    task = asyncio.create_task(follower.run(server.url))

    async def loaded() -> None:
        assert follower.resets == [["pool"]]

    await eventually(loaded)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_cache_that_listed_anew_makes_all_clients_load_again(
    server: Running, session: aiohttp.ClientSession
) -> None:
    async with following(session, server) as follower:
        before = follower.position
        server.services.state.allocations.lists += 1  # as after an answer 410

        async def told() -> None:
            assert follower.resets == [["pool", "allocation"]]

        await eventually(told)
    late = Follower(session, ("pool", "allocation"))
    late.position = before
    await _hear_once(late, server)
    assert late.resets in ([], [["pool", "allocation"]])


async def _hear_once(follower: Follower, server: Running) -> None:
    task = asyncio.create_task(follower.run(server.url))
    async with asyncio.timeout(20):
        await follower.ready.wait()
    await asyncio.sleep(0.3)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _narrow(address: Any) -> socket.socket:
    """A socket with a small buffer, so that the server notices that the client does not read."""
    made = socket.socket(address[0], address[1], address[2])
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    made.setblocking(False)
    return made


class Slow(Follower):
    """A client that stops reading after the first frame, until told to go on."""

    def __init__(self, session: aiohttp.ClientSession, go_on: asyncio.Event) -> None:
        super().__init__(session, ("pool", "allocation"))
        self._go_on = go_on

    async def hear(self, frame: Json, url: str) -> None:
        await super().hear(frame, url)
        await self._go_on.wait()


def _listen_narrowly(host: str, port: int) -> socket.socket:
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # accepted connections inherit it
    made.bind((host, port))
    return made


async def test_who_reads_too_slowly_is_told_to_load_again_and_costs_little(
    plane: ControlPlane, network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MOST_QUEUED", 40)
    monkeypatch.setattr("butler.server.process._listen", _listen_narrowly)
    await apply(plane, pool("slow", f"{network}.0.0/20"))
    go_on = asyncio.Event()
    async with (
        serving(plane) as server,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(socket_factory=_narrow)) as narrow,
    ):
        slow = Slow(narrow, go_on)
        task = asyncio.create_task(slow.run(server.url))
        try:
            made, most = await _overwhelm(server, plane)
            assert most <= 40
            go_on.set()

            async def caught_up() -> None:
                assert slow.resets
                held = [text for text in slow.state["allocation"].values() if text["pool"] == "slow"]
                assert len(held) == made
                assert slow.state["pool"][f"{HOME}/slow"]["allocated"] == made

            await eventually(caught_up, seconds=60)
        finally:
            go_on.set()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _overwhelm(server: Running, plane: ControlPlane) -> tuple[int, int]:
    """Create allocations until a client is told to load again; how many, and how much waited at most."""
    most = 0
    for batch in range(60):
        names = [f"slow-{batch}-{number}" for number in range(20)]
        await asyncio.gather(*(apply(plane, allocation(name, "slow", 1)) for name in names))
        for listener in server.services.stream.listeners:
            most = max(most, len(listener.queue))
            if any(text.startswith('{"type":"reset"') for text in listener.queue):
                return (batch + 1) * 20, most
    raise AssertionError(f"nothing was too much: {most} frames waited at most")
