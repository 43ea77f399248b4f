"""A server without a socket: requests are function calls. For those in the same process, who want none of its costs.

    async with in_process(definitions=[crd], namespaces=["home"]) as client:
        configmap = {"metadata": {"name": "a"}}
        status, created = await client.request("POST", "/api/v1/namespaces/home/configmaps", configmap)

Everything between the head of a request and the body of its answer is the code that serves HTTP.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from contextlib import aclosing, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode, urlsplit

from kubeserver import pki
from kubeserver.control_plane import ControlPlane
from kubeserver.storage.store import Store
from kubeserver.wire.asgi import CERTIFICATE, GONE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping

Json = dict[str, Any]

ADMINISTRATOR: Final = ("admin", ("system:masters",))
_DISCONNECT: Final = {"type": "http.disconnect"}


@asynccontextmanager
async def in_process(
    definitions: Iterable[Json] = (), namespaces: Iterable[str] = ()
) -> AsyncIterator[InProcessClient]:
    """A new server that keeps its objects in memory, and its administrator's client.

    It has no thread and no timer that a test would wait for, so it also runs on an event loop whose clock jumps.
    """
    with tempfile.TemporaryDirectory(prefix="kubeserver-") as folder:  # for kubeconfigs of logical clusters
        server = ControlPlane(Path(folder), Store.in_memory(), _keys())
        try:
            await server.install(definitions, namespaces, "kubeserver")
            yield InProcessClient(server)
        finally:
            await server.stop()


def administrator_of(server: ControlPlane, cluster: str, kubeconfig: bytes) -> InProcessClient | None:
    """The client of a logical cluster's administrator, for one who shows the kubeconfig that the server wrote for it.

    It is worth as much as that kubeconfig: nothing in a cluster of the same name that comes later.
    """
    unit = server.unit_behind(cluster, kubeconfig)
    return None if unit is None else InProcessClient(server, unit=unit)


class InProcessClient:
    """Requests of one user; `unit` is what the certificate of a logical cluster's user would say that it is for."""

    def __init__(self, server: ControlPlane, user: tuple[str, tuple[str, ...]] = ADMINISTRATOR, unit: str = "") -> None:
        self.server = server
        self._user = user
        self._unit = unit

    def acting_as(self, name: str, *groups: str) -> InProcessClient:
        """The same server, as another user."""
        return InProcessClient(self.server, (name, groups), self._unit)

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Any]:
        """The status and the body of an answer, decoded where it is JSON."""
        exchange = await self._ask(method, path, _encoded(body), query, content_type, headers)
        return exchange.status, _decoded(exchange.body, exchange.content_type)

    async def exchange(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, bytes]:
        """The same, with bodies as they are."""
        exchange = await self._ask(method, path, body, query, content_type, None)
        return exchange.status, exchange.body

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes,
        query: Mapping[str, str] | None,
        content_type: str,
        headers: Mapping[str, str] | None,
    ) -> _Exchange:
        exchange = _Exchange(self._scope(method, path, query, body, content_type, headers), body)
        await self.server.application(exchange.scope, exchange.receive, exchange.send)
        exchange.body = b"".join([piece async for piece in exchange.pieces()])
        return exchange

    async def watch(self, path: str, *, query: Mapping[str, str] | None = None) -> AsyncGenerator[Json, None]:
        """The events of a watch, until it is closed or the server ends it."""
        exchange = _Exchange(self._scope("GET", path, {"watch": "true", **(query or {})}, b"", "", None), b"")
        serving = asyncio.create_task(self.server.application(exchange.scope, exchange.receive, exchange.send))
        try:
            rest = b""
            async with aclosing(exchange.pieces()) as pieces:
                async for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield json.loads(line)
        finally:
            exchange.leave()
            await serving

    def _scope(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: bytes,
        content_type: str,
        headers: Mapping[str, str] | None,
    ) -> Json:
        parts = urlsplit(path)
        sent = {"content-type": content_type} if body else {}
        sent |= {"content-length": str(len(body))} if body else {}
        sent |= {name.lower(): value for name, value in (headers or {}).items()}
        name, groups = self._user
        subject = (*(("organizationName", group) for group in groups), ("commonName", name))
        subject += (("organizationalUnitName", self._unit),) if self._unit else ()
        asked = "&".join(part for part in (parts.query, urlencode(query or {})) if part)
        return {
            "type": "http",
            "method": method,
            "path": parts.path,
            "raw_path": quote(parts.path, safe="/%:@~!$&'()*+,;=").encode(),
            "query_string": asked.encode(),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()],
            CERTIFICATE: subject,
            GONE: lambda: False,
        }


class _Exchange:
    """One request and its answer, in the messages of ASGI."""

    def __init__(self, scope: Json, body: bytes) -> None:
        self.scope = scope
        self.status, self.content_type, self.body = 0, "", b""
        self._body: bytes | None = body
        self._left = asyncio.Event()
        self._answer: asyncio.Queue[bytes | None] = asyncio.Queue()

    def leave(self) -> None:
        """What a client does that closes its connection."""
        self._left.set()

    async def receive(self) -> Json:
        if self._body is None:
            await self._left.wait()
            return _DISCONNECT
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Json) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.content_type = dict(message["headers"]).get(b"content-type", b"").decode()
            return
        if message.get("body"):
            self._answer.put_nowait(message["body"])
        if not message.get("more_body"):
            self._answer.put_nowait(None)

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        while (piece := await self._answer.get()) is not None:
            yield piece


@cache
def _keys() -> pki.Pki:
    """Made once: no client checks the certificate of a server without a socket, and keys take longer than a start."""
    with tempfile.TemporaryDirectory(prefix="kubeserver-") as folder:
        return pki.ensure(Path(folder) / "pki")


def _encoded(body: object) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def _decoded(body: bytes, content_type: str) -> Any:
    return json.loads(body) if body and "json" in content_type else body.decode()
