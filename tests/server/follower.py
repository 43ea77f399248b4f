"""A client of the live stream as the console is one: it loads lists, follows, and comes back where it broke off."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import aiohttp

from butler.kube import config
from butler.server.process import Running, Settings, running
from server.conftest import ROLE, person
from server.objects import GROUP, create

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

    from butler.server.access.person import Person
    from control_planes import ControlPlane

Json = dict[str, Any]
LISTS = {
    "pool": "pools",
    "allocation": "allocations",
    "tenant": "tenants",
    "provider": "providers",
    "activity": "activity",
}
KINDS = tuple(LISTS)


async def load(
    session: aiohttp.ClientSession, url: str, kind: str, user: str = "admin", heard: str = ""
) -> dict[str, Json]:
    """All items of a kind by `namespace/name`, page by page; none where they may not be read."""
    headers = {ROLE: user, "Butler-Heard": heard}
    found: dict[str, Json] = {}
    cursor: str | None = None
    while True:
        params = {"limit": "1000", **({"cursor": cursor} if cursor else {})}
        async with session.get(f"{url}/api/v1/{LISTS[kind]}", params=params, headers=headers) as answer:
            page = await answer.json(content_type=None)
            if answer.status == 403:
                return {}
            assert answer.status == 200, page
        for item in page["items"]:
            found[item["id"] if kind == "activity" else f"{item['namespace']}/{item['name']}"] = item
        cursor = page["next"]
        if cursor is None:
            return found


class Follower:
    """What one client knows. `run` follows one server until cut off; call it again to go on, with any server."""

    def __init__(self, session: aiohttp.ClientSession, kinds: Sequence[str] = KINDS, user: str = "admin") -> None:
        self.session = session
        self.kinds = kinds
        self.user = user
        self.state: dict[str, dict[str, Json]] = {kind: {} for kind in kinds}
        self.position: str | None = None
        self.frames: list[Json] = []
        self.visible: list[str] = []
        self.resets: list[list[str]] = []
        self.close_code: int | None = None
        self.ready = asyncio.Event()
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def run(self, url: str) -> None:
        params = {"kinds": ",".join(self.kinds), **({"since": self.position} if self.position else {})}
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with self.session.ws_connect(
                f"{url}/api/v1/stream", params=params, headers={ROLE: self.user, "Origin": url}
            ) as connected:
                self._socket = connected
                async for message in connected:
                    assert message.type is aiohttp.WSMsgType.TEXT, message
                    await self.hear(message.json(), url)
                self.close_code = connected.close_code
        self._socket = None

    async def hear(self, frame: Json, url: str) -> None:
        self.frames.append(frame)
        self.heard: str = frame["heard"]
        if frame["type"] == "hello":
            self.visible = frame["kinds"]
            if self.position is None:
                await self._load(self.kinds, url)
            self.ready.set()
        elif frame["type"] == "reset":
            self.resets.append(frame["kinds"])
            await self._load(frame["kinds"], url)
        elif frame["type"] == "changed":
            name = f"{frame['namespace']}/{frame['name']}"
            if frame["item"] is None:
                self.state[frame["kind"]].pop(name, None)
            else:
                self.state[frame["kind"]][name] = frame["item"]
        self.position = frame["position"]

    async def _load(self, kinds: Sequence[str], url: str) -> None:
        for kind in kinds:
            self.state[kind] = await load(self.session, url, kind, self.user, self.heard)

    def cut(self) -> None:
        """End the TCP connection without a word."""
        if self._socket is not None:
            pipe: socket.socket | None = self._socket.get_extra_info("socket")
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.shutdown(socket.SHUT_RDWR)

    def changes(self, kind: str) -> list[Json]:
        return [frame for frame in self.frames if frame["type"] == "changed" and frame["kind"] == kind]


@contextlib.asynccontextmanager
async def following(
    session: aiohttp.ClientSession,
    server: Running,
    kinds: tuple[str, ...] = ("pool", "allocation"),
    user: str = "admin",
) -> AsyncIterator[Follower]:
    """A client that listens, and has received hello."""
    follower = Follower(session, kinds, user)
    task = asyncio.create_task(follower.run(server.url))
    ready = asyncio.create_task(follower.ready.wait())
    try:
        async with asyncio.timeout(20):
            await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield follower
    finally:
        task.cancel()
        ready.cancel()
        await asyncio.gather(task, ready, return_exceptions=True)


@contextlib.asynccontextmanager
async def serving(plane: ControlPlane) -> AsyncIterator[Running]:
    """A server of a control plane, where the header `ROLE` names the user."""

    async def who(connection: Any) -> Person | None:
        user = connection.headers.get(ROLE, "")
        return person(user) if user else None

    settings = Settings(world=True, requests_per_second=10_000)
    async with running(config.load(plane.kubeconfig), settings, who) as up:
        yield up


def apply(plane: ControlPlane, obj: Json) -> Awaitable[Json]:
    """Create an object without holding up who listens."""
    return asyncio.to_thread(create, plane, obj)


def tenant(name: str, where: str) -> Json:
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
    meta = {"name": name, "namespace": where}
    return {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": spec}
