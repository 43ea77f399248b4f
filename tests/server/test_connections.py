"""Slow and greedy clients of the console, on real sockets: what is cut off, and what goes on beside them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from typing import TYPE_CHECKING

import aiohttp
import pytest
import pytest_asyncio
from tls_files import certificate_for_loopback

from butler.kube import config
from butler.server import connections
from butler.server.connections import ConnectionLimits
from butler.server.process import Settings, running
from server.conftest import CSRF, ROLE, person
from server.eventually import eventually
from server.follower import apply
from server.objects import pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from typing import Any

    from butler.server.access.person import Person
    from butler.server.process import Running
    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
HEAD = b"GET /api/v1/me HTTP/1.1\r\nHost: "
POST = b"POST /link HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Length: 4000\r\n\r\ntoken="
"""Half a body, without credentials."""


async def who(connection: Any) -> Person | None:
    user = connection.headers.get(ROLE, "")
    return person(user) if user else None


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane) -> AsyncIterator[Running]:
    settings = Settings(world=True, local=True, requests_per_second=100_000, tries_per_minute=100_000)
    async with running(config.load(plane.kubeconfig), settings, who) as served:
        yield served


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "STALL_SECONDS", "HANDSHAKE_SECONDS"):
        monkeypatch.setattr(connections, name, 2.0)


Half = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def half(up: Running, said: bytes) -> Half:
    host, _, port = up.url.partition("://")[2].partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    here = f"{host}:{port}".encode()
    writer.write(said % (here, here) if b"%s" in said else said)
    return reader, writer


async def drip(client: Half, what: bytes) -> None:
    """Send a little now and then, for as long as it is taken."""
    with contextlib.suppress(OSError):
        while True:
            client[1].write(what)
            await client[1].drain()
            await asyncio.sleep(0.3)


async def is_cut_off(client: Half) -> bool:
    with contextlib.suppress(OSError):
        while True:
            if not await client[0].read(65536):
                return True
    return True


async def fine(url: str, session: aiohttp.ClientSession) -> None:
    async with session.get(f"{url}/api/v1/me", headers={ROLE: "admin"}, timeout=aiohttp.ClientTimeout(20)) as answer:
        assert answer.status == 200


async def test_three_hundred_half_requests_are_cut_off_and_no_client_waits_for_them(
    up: Running, impatient: None
) -> None:
    said = (b"", HEAD, POST, b"GET / HTTP/1.1\r\nX: ", b"\r\n", HEAD)
    drops = (b"", b"", b"x", b"x: y\r\n", b"\r\n", b"z")
    clients = [await half(up, said[number % 6]) for number in range(300)]
    dripping = [asyncio.create_task(drip(client, drops[number % 6])) for number, client in enumerate(clients)]
    try:
        async with aiohttp.ClientSession() as session:
            await fine(up.url, session)
        async with asyncio.timeout(60):
            assert all(await asyncio.gather(*(is_cut_off(client) for client in clients)))
    finally:
        for task in dripping:
            task.cancel()
        for _, writer in clients:
            writer.close()


async def test_a_connection_that_is_used_lives_longer_than_any_limit(up: Running, impatient: None) -> None:
    reader, writer = await half(up, b"GET /healthz HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n")
    here = up.url.partition("://")[2].encode()
    began = time.monotonic()
    while time.monotonic() - began < 6:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        assert head.startswith(b"HTTP/1.1 200 ")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        await asyncio.wait_for(reader.readexactly(length), 20)
        await asyncio.sleep(0.5)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: " + here + b"\r\n\r\n")
    writer.close()


async def test_a_stream_that_is_read_stays_and_one_that_is_not_is_cut_off(
    up: Running, plane: ControlPlane, network: str, impatient: None
) -> None:
    headers = {ROLE: "admin", "Origin": up.url}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{up.url}/api/v1/stream", headers=headers) as reading,
        aiohttp.ClientSession() as other,
        other.ws_connect(f"{up.url}/api/v1/stream", headers=headers) as deaf,
    ):
        for stream in (reading, deaf):
            assert (await stream.receive_json(timeout=20))["type"] == "hello"
        deaf._response.connection.transport.pause_reading()  # type: ignore[union-attr]
        listeners = up.services.stream.listeners
        assert len(listeners) == 2
        filling = asyncio.create_task(_shout(up))

        async def is_gone() -> None:
            for _ in range(50):
                await reading.receive_str(timeout=10)
            assert len(listeners) == 1

        try:
            await eventually(is_gone, seconds=60)
        finally:
            filling.cancel()
        await apply(plane, pool("still-told", f"{network}.0.0/24"))

        async def told() -> None:
            assert "still-told" in await reading.receive_str(timeout=10)

        await eventually(told, seconds=30)


async def _shout(up: Running) -> None:
    while True:
        for listener in up.services.stream.listeners:
            if len(listener.queue) < 100:
                listener.queue.append('{"type":"beat","position":"","heard":"' + "x" * 20_000 + '"}')
                listener.wake.set()
        await asyncio.sleep(0.01)


async def test_an_answer_that_is_not_taken_is_given_up(up: Running, impatient: None) -> None:
    """Of many requests on one connection: their answers fill every buffer on the way."""
    host, _, port = up.url.partition("://")[2].partition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((host, int(port)))
    client.setblocking(False)
    request = f"GET /api/v1/openapi.json HTTP/1.1\r\nHost: {host}:{port}\r\n{ROLE}: admin\r\n\r\n".encode()
    loop = asyncio.get_running_loop()

    async def cut_off() -> None:
        try:
            await asyncio.wait_for(loop.sock_sendall(client, request), 0.5)
        except OSError:
            return
        except TimeoutError:
            pass
        raise AssertionError("the connection is still there")

    try:
        await eventually(cut_off, seconds=60)
    finally:
        client.close()


async def test_a_head_without_end_is_refused(up: Running) -> None:
    client = await half(up, b"GET / HTTP/1.1\r\n" + b"x: y\r\n" * 20_000)
    async with asyncio.timeout(20):
        answer = await client[0].read(100)
    assert answer.startswith(b"HTTP/1.1 431 ")
    client[1].close()


async def test_when_all_places_are_taken_half_requests_give_way(plane: ControlPlane) -> None:
    settings = Settings(world=True, local=True, connections=20)
    async with (
        running(config.load(plane.kubeconfig), settings, who) as small,
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{small.url}/api/v1/stream", headers={ROLE: "admin", "Origin": small.url}) as own,
    ):
        assert (await own.receive_json(timeout=10))["type"] == "hello"
        clients = [await half(small, HEAD) for _ in range(60)]
        await fine(small.url, session)
        async with asyncio.timeout(10):  # the oldest are gone, before their time
            assert all(await asyncio.gather(*(is_cut_off(client) for client in clients[:40])))
        assert not own.closed
        for _, writer in clients:
            writer.close()


async def test_half_a_handshake_is_not_waited_for(plane: ControlPlane, tmp_path: Path, impatient: None) -> None:
    both, _ = certificate_for_loopback(tmp_path)
    settings = Settings(local=True, tls_certificate=both, tls_key=both)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("butler.server.process.HANDSHAKE_SECONDS", 2.0)
        async with running(config.load(plane.kubeconfig), settings) as served:
            clients = [await half(served, b"\x16\x03\x01") for _ in range(20)]
            async with asyncio.timeout(30):
                assert all(await asyncio.gather(*(is_cut_off(client) for client in clients)))
            for _, writer in clients:
                writer.close()


async def test_clients_that_leave_or_are_refused_are_no_errors_in_the_log(
    up: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        for said in (
            POST,
            HEAD,
            b"nonsense\r\n\r\n",
            _asks("POST", "/api/v1/pools"),
            _asks("PATCH", "/api/v1/pools/a/b"),
        ):
            _, writer = await half(up, said)
            await writer.drain()
            await asyncio.sleep(0.3)
            writer.close()
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {ROLE: "admin"}, {ROLE: "admin", "Origin": "https://evil.example"}, {"Origin": up.url}):
                for path in ("/api/v1/stream", "/api/v1/nothing", "/nothing", "/"):
                    with contextlib.suppress(aiohttp.ClientError):
                        async with session.ws_connect(up.url + path, headers=headers):
                            pass
            for _ in range(3):
                opened = await session.ws_connect(f"{up.url}/api/v1/stream", headers={ROLE: "admin", "Origin": up.url})
                opened._response.connection.transport.abort()  # type: ignore[union-attr]
        filling = asyncio.create_task(_shout(up))
        await asyncio.sleep(1)
        filling.cancel()
    loud = [record for record in caplog.records if record.levelno >= logging.WARNING or record.exc_info]
    assert [record.getMessage() for record in loud] == []
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []


def _asks(method: str, path: str) -> bytes:
    """Half a body, by the administrator."""
    head = f"{method} {path} HTTP/1.1\r\n{ROLE}: admin\r\nX-CSRF-Token: {CSRF}\r\n"
    return (
        head.encode()
        + b'Host: %s\r\nOrigin: http://%s\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"a'
    )


async def test_a_person_has_so_many_requests_under_way(up: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("butler.server.access.guard.MOST_AT_ONCE", 0)
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{up.url}/api/v1/me", headers={ROLE: "admin"}) as answer,
    ):
        assert (answer.status, answer.headers["Retry-After"]) == (429, "2")


class _Guest:
    """A connection that is only counted."""

    def __init__(self, *, waiting: bool) -> None:
        self.waiting = waiting
        self.open = True

    def is_waiting(self) -> bool:
        return self.waiting

    def hang_up(self) -> None:
        self.open = False


async def test_who_has_most_gives_way_and_never_what_is_being_answered() -> None:
    room = ConnectionLimits(6, 4)
    busy = [_Guest(waiting=False) for _ in range(2)]
    greedy = [_Guest(waiting=True) for _ in range(5)]
    assert all(room.enter(guest, "a") for guest in (*busy, *greedy[:2]))
    assert room.enter(greedy[2], "a")  # the fifth of one address: its own oldest gives way
    assert [guest.open for guest in (*busy, *greedy[:3])] == [True, True, False, True, True]
    others = [_Guest(waiting=True) for _ in range(3)]
    assert all(room.enter(guest, name) for guest, name in zip(others, "bcd", strict=True))
    assert len(room) == 6
    assert not greedy[1].open
    assert all(guest.open for guest in (*busy, *others))
    full = ConnectionLimits(1, 1)
    assert full.enter(_Guest(waiting=False), "a")
    assert not full.enter(_Guest(waiting=True), "b")
