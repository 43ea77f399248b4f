"""How the tests of hostile clients talk to the server: as HTTP, as raw bytes, and as those who must not notice."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    import aiohttp
    from server_process import ServerProcess

Json = dict[str, Any]

CONFIGS = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = "application/json-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
YAML = "application/yaml"
MEGABYTE = 1 << 20
# What is caught here runs for minutes or for ever; a slow machine must not look like that.
NOT_FROZEN = 20.0  # seconds


async def call(
    session: aiohttp.ClientSession, method: str, path: str, body: Any = None, content_type: str = "", **headers: str
) -> tuple[int, Any]:
    data = body.encode() if isinstance(body, str) else body
    if data is not None and not isinstance(data, bytes):
        data = json.dumps(data).encode()
    given = {**headers, **({"Content-Type": content_type or "application/json"} if data is not None else {})}
    async with session.request(method, path, data=None if data is None else _stream(data), headers=given) as answer:
        text = await answer.text(errors="replace")
    with contextlib.suppress(ValueError):
        return answer.status, json.loads(text)
    return answer.status, text


async def _stream(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 65536):
        yield data[start : start + 65536]


class Busy:
    """How long others wait for their answers while something is going on."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session
        self._asked_at: float | None = None
        self.worst = 0.0

    async def __aenter__(self) -> Busy:
        self._task = asyncio.create_task(self._ask())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._asked_at is not None:  # who is not answered yet has waited, too
            self.worst = max(self.worst, time.monotonic() - self._asked_at)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _ask(self) -> None:
        while True:
            self._asked_at = began = time.monotonic()
            async with self._session.get("/api/v1/namespaces/default") as answer:
                await answer.read()
            self.worst, self._asked_at = max(self.worst, time.monotonic() - began), None
            await asyncio.sleep(0.02)


def plain(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def secure(server: ServerProcess, *, anonymous: bool = False) -> ssl.SSLSocket:
    tls = server.plane.anonymous_tls() if anonymous else server.plane.tls
    return tls.wrap_socket(plain(server), server_hostname="127.0.0.1")


def told(server: ServerProcess, data: bytes, seconds: float = 10) -> bytes:
    """Send raw bytes and read until the server closes or has nothing more to say."""
    with secure(server) as raw:
        raw.settimeout(seconds)
        received = b""
        with contextlib.suppress(OSError):
            raw.sendall(data)
        with contextlib.suppress(OSError):
            while piece := raw.recv(65536):
                received += piece
        return received
