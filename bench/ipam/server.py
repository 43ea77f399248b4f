"""An API server as the benchmark sees it: create objects quickly, watch until they are done, count what was written.

Counting is done by the server, not by us: `apiserver_request_total` on its /metrics.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import time
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import aiohttp
import msgspec

from ipam.report import note

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from control_planes import ControlPlane

CONNECTIONS = 32
PATIENCE = 900.0
"""Seconds after which a stage that does not finish is given up."""

_SAMPLE = re.compile(r"^apiserver_request_total\{(.*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_WRITES = {"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"}


class Written(NamedTuple):
    """What a count of writes is about. A refused one has cost the server work, too, so it counts."""

    resource: str  # with its subresource: ipallocations/status
    verb: str
    refused: str  # the code of an answer that was no success, else empty

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}" + (f", refused with {self.refused}" if self.refused else "")


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    address_ref: dict[str, Any] | None = None


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    status: _Status | str | None = None  # text where the server reports an error


class _Line(msgspec.Struct):
    type: str
    object: _Object


_read_line = msgspec.json.Decoder(_Line).decode


class Observer:
    """Sees objects change: when the first was touched, and when each was done."""

    def __init__(self, at_first_change: Callable[[], None] | None = None) -> None:
        self.first_change: float | None = None
        self.done: dict[str, float] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self._at_first_change = at_first_change
        self._moved = asyncio.Condition()

    async def follow(self, open_watch: Callable[[str], Awaitable[aiohttp.ClientResponse]], version: str) -> None:
        """Take in all changes after a version. A busy server ends the streams of those who read slowly: go on."""
        while True:
            answer = await open_watch(version)
            try:
                assert answer.status == 200, await answer.text()
                async for line in answer.content:
                    event = _read_line(line)
                    if event.type == "ERROR":
                        raise RuntimeError(f"the watch failed: {line!r}")
                    version = event.object.metadata.resource_version
                    await self._take(event)
            except aiohttp.ClientError as error:
                note(f"(our watch broke: {error!r})")
            finally:
                answer.close()
            note("(the server ended our watch; it goes on where it was)")

    async def _take(self, event: _Line) -> None:
        if event.type == "MODIFIED" and self.first_change is None:
            self.first_change = time.perf_counter()
            if self._at_first_change is not None:
                self._at_first_change()
        status, name = event.object.status, event.object.metadata.name
        is_done = isinstance(status, _Status) and (status.phase == "Allocated" or status.address_ref)
        if is_done and name not in self.done:
            self.done[name] = time.perf_counter()
            async with self._moved:
                self._moved.notify_all()

    async def all_of(self, names: Iterable[str], alive: Any = None) -> float:
        """Wait until all are done; when the last one was. `alive` is asked now and then and may raise."""
        wanted = set(names)
        deadline = time.monotonic() + PATIENCE
        while missing := wanted - self.done.keys():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(missing)} of {len(wanted)} are not done after {PATIENCE:.0f} s")
            for task in self.tasks:
                if task.done():
                    task.result()  # which raises: it never ends by itself
            if alive is not None:
                alive()
            async with self._moved:
                with contextlib.suppress(TimeoutError):
                    # A coarse wait: asking after every single event would take the time that is measured.
                    await asyncio.wait_for(self._moved.wait(), 1.0)
            if len(missing) > 10:
                await asyncio.sleep(0.05)
        return max(self.done[name] for name in wanted)


class Server:
    """One control plane and a session with it."""

    def __init__(self, plane: ControlPlane, session: aiohttp.ClientSession) -> None:
        self.plane = plane
        self._session = session

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self._session.post(self.plane.url + path, json=body) as answer:
            text = await answer.read()
            assert answer.status in (200, 201), text[:500]
            return msgspec.json.decode(text)  # type: ignore[no-any-return]

    async def create_all(self, path: str, bodies: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Create them over several connections; in the order given."""
        waiting = iter(enumerate(bodies))
        made: dict[int, dict[str, Any]] = {}

        async def work() -> None:
            for place, body in waiting:
                made[place] = await self.create(path, body)

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        return [made[place] for place in range(len(bodies))]

    async def get(self, path: str) -> dict[str, Any]:
        async with self._session.get(self.plane.url + path) as answer:
            text = await answer.read()
            assert answer.status == 200, text[:500]
            return msgspec.json.decode(text)  # type: ignore[no-any-return]

    @asynccontextmanager
    async def watching(self, *paths: str, at_first_change: Callable[[], None] | None = None) -> AsyncIterator[Observer]:
        """Follow changes from now on."""
        observer = Observer(at_first_change)
        try:
            for path in paths:
                version = (await self.get(f"{path}?limit=1"))["metadata"]["resourceVersion"]
                follow = observer.follow(partial(self._open_watch, path), version)
                observer.tasks.append(asyncio.create_task(follow))
            yield observer
        finally:
            for task in observer.tasks:
                task.cancel()
            await asyncio.gather(*observer.tasks, return_exceptions=True)

    async def _open_watch(self, path: str, version: str) -> aiohttp.ClientResponse:
        query = {"watch": "true", "resourceVersion": version, "timeoutSeconds": "3600"}
        return await self._session.get(self.plane.url + path, params=query)

    async def writes(self) -> Counter[Written]:
        """How many writes the server has answered so far, by resource and verb."""
        async with self._session.get(self.plane.url + "/metrics") as answer:
            text = await answer.text()
        found: Counter[Written] = Counter()
        for labels, value in _SAMPLE.findall(text):
            label = dict(_LABEL.findall(labels))
            if label["verb"] in _WRITES:
                resource = "/".join(part for part in (label["resource"], label["subresource"]) if part)
                refused = "" if label["code"].startswith("2") else label["code"]
                found[Written(resource, label["verb"], refused)] += int(float(value))
        return found


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[Server]:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS + 8, ssl=plane.tls)
    async with aiohttp.ClientSession(
        connector=connector,
        headers=dict(plane.headers),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
        read_bufsize=1 << 20,
        json_serialize=json.dumps,
    ) as session:
        yield Server(plane, session)


def prepare(plane: ControlPlane, crds: str, namespaces: Iterable[str]) -> None:
    """Give the server Butler's kinds and the namespaces of the benchmark."""
    plane.kubectl("apply", "--server-side", "-f", crds)
    plane.kubectl("wait", "--for=condition=Established", "-f", crds, "--timeout=60s")  # others may be installing theirs
    for namespace in namespaces:
        status, answer = plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
        assert status in (201, 409), answer
