"""A witness of everything that happened to NetworkPools, IPAllocations and network claims, seen from outside.

It watches the API server directly (never through the fault proxy, never through Butler's own client) and writes
down every revision: what the object was, when it was seen, and who wrote it. The invariants are then checked over
that record, so the record has to be whole. A watch in Kubernetes is whole as long as it is resumed at the last
version seen; a connection that breaks is therefore resumed, and completes itself. Where that is impossible (the
server forgot the version: 410) or where the record contradicts itself (an update of something unknown, a version
that steps back, a generation that was skipped), the witness fails loudly: a gap is never papered over, because
the violation could be inside it.

A record is finished by comparing with a consistent list: a watch that has seen the listed version of every object, and
the end of every object that the list does not name, has seen everything up to the list.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Mapping

Json = dict[str, Any]
Objects = dict[tuple[str, str], Json]
GROUP = "/apis/butler.butlerlabs.dev/v1alpha1"
POOL, ALLOCATION, CLAIMS = "NetworkPool", "IPAllocation", "Claims"
CLAIMS_NAME = "butler-network-claims"
CATCH_UP_SECONDS = 30.0
LINE_LIMIT = 64 << 20


class Gap(Exception):
    """The record is not whole, so nothing can be concluded from it."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One state of one object, as the server committed it; `after` is None when the object went away."""

    version: int
    kind: str
    namespace: str
    name: str
    uid: str
    before: Json | None
    after: Json | None
    seconds: float = 0.0

    @property
    def obj(self) -> Json:
        """What the object is, or last was."""
        return self.after if self.after is not None else self.before or {}

    @property
    def key(self) -> tuple[str, str]:
        return self.namespace, self.name

    @property
    def writer(self) -> str:
        """The manager whose fields changed last, which is who wrote this revision (deletions leave no trace)."""
        entries = self.obj.get("metadata", {}).get("managedFields") or [{}]
        last = max(entries, key=lambda entry: entry.get("time") or "")
        part = f"/{last['subresource']}" if last.get("subresource") else ""
        return f"{last.get('manager') or 'an unknown writer'}{part}"


@dataclass
class History:
    """All revisions of the kinds watched. `began` is the version of the first list: what is older is hearsay."""

    revisions: list[Revision] = field(default_factory=list)
    began: int = 0

    def in_order(self) -> list[Revision]:
        """By version: one store gives out all versions, so those of different kinds can be compared."""
        return sorted(self.revisions, key=lambda revision: revision.version)


@dataclass
class _Watched:
    """One collection: where it is served, how far it was read, and its state there."""

    kind: str
    path: str
    query: str = ""
    position: int = 0
    live: Objects = field(default_factory=dict)

    def take(self, event: str, obj: Json) -> Revision | None:
        """The next line of the watch; raises Gap when it cannot be the next."""
        meta = obj["metadata"]
        version = int(meta["resourceVersion"])
        if event == "BOOKMARK":
            self.position = max(self.position, version)
            return None
        key = (meta.get("namespace", ""), meta["name"])
        known = self.live.get(key)
        story = f"{self.kind} {'/'.join(key)}: {event} at {version} after {self.position}"
        if version <= self.position:
            raise Gap(f"{story}: the watch stepped back")
        if event == "ADDED":
            if known is not None:
                raise Gap(f"{story}: it was there already, at {known['metadata']['resourceVersion']}")
        elif known is None:
            raise Gap(f"{story}: it was unknown")
        elif known["metadata"]["uid"] != meta["uid"]:
            raise Gap(f"{story}: another object of that name went unseen")
        elif meta.get("generation", 0) > known["metadata"].get("generation", 0) + 1:
            raise Gap(f"{story}: a generation was skipped")
        self.position = version
        if event == "DELETED":
            del self.live[key]
            return Revision(version, self.kind, *key, meta["uid"], known, None, time.monotonic())
        self.live[key] = obj
        return Revision(version, self.kind, *key, meta["uid"], known, obj, time.monotonic())


class Witness:
    """Writes down what happens, from `start` to `finish`."""

    def __init__(
        self,
        url: str,
        tls: ssl.SSLContext | None,
        headers: Mapping[str, str],
        *,
        namespace: str = "",
        home_namespace: str = "butler-system",
        also: Mapping[str, str] | None = None,
    ) -> None:
        """`also`: kinds beyond those of address management, with their paths, to be written down in the same order."""
        self.url = url
        self.history = History()
        self._tls = tls
        self._headers = dict(headers)
        scope = f"/namespaces/{namespace}" if namespace else ""
        selector = f"fieldSelector=metadata.name%3D{CLAIMS_NAME}"
        self._watched = [
            _Watched(POOL, f"{GROUP}{scope}/networkpools"),
            _Watched(ALLOCATION, f"{GROUP}{scope}/ipallocations"),
            _Watched(CLAIMS, f"/api/v1/namespaces/{home_namespace}/configmaps", selector),
            *(_Watched(kind, path) for kind, path in (also or {}).items()),
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._moved = asyncio.Event()
        self.last_change = time.monotonic()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[Witness]:
        """Follow from a first list until the block ends; a failure of the witness ends the block's test."""
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls if self._tls is not None else True)
        limits = aiohttp.ClientTimeout(total=None, connect=10)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._headers, timeout=limits, read_bufsize=LINE_LIMIT
        )
        try:
            for watched in self._watched:
                await self._first_list(watched)
            self._tasks = [asyncio.create_task(self._follow(watched)) for watched in self._watched]
            yield self
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._session.close()
            await asyncio.sleep(0.02)  # for the transports to notice

    def state(self, kind: str) -> Objects:
        """The objects of a kind as last seen."""
        return next(watched.live for watched in self._watched if watched.kind == kind)

    async def until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait for a state of the watched objects; False when it does not come."""
        deadline = time.monotonic() + seconds
        while not condition():
            self._complain()
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._moved.clear()
            try:
                async with asyncio.timeout(min(left, 0.5)):
                    await self._moved.wait()
            except TimeoutError:
                continue
        return True

    async def finish(self) -> History:
        """Read on until everything that a consistent list shows has been seen; the whole record."""
        for watched in self._watched:
            wanted, listed_at = await self._list(watched)

            def caught_up(watched: _Watched = watched, wanted: Objects = wanted, listed_at: int = listed_at) -> bool:
                # What is newer than the list is as good: a watch is in order.
                return all(
                    _version(watched.live[key]) > listed_at
                    if key not in wanted
                    else _version(watched.live.get(key)) >= _version(wanted[key]) or watched.position > listed_at
                    for key in {*watched.live, *wanted}
                )

            if not await self.until(caught_up, CATCH_UP_SECONDS):
                raise Gap(f"the watch of {watched.kind} did not come as far as a list in {CATCH_UP_SECONDS} s")
        self._complain()
        return self.history

    def _complain(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _first_list(self, each: _Watched) -> None:
        each.live, each.position = await self._list(each)
        for key, obj in each.live.items():
            meta = obj["metadata"]
            self.history.revisions.append(
                Revision(int(meta["resourceVersion"]), each.kind, *key, meta["uid"], None, obj, time.monotonic())
            )
        self.history.began = max(self.history.began, each.position)

    async def _list(self, each: _Watched) -> tuple[Objects, int]:
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while True:
            async with self._session.get(f"{self.url}{each.path}?{each.query}") as answer:
                body = await answer.json()
            if answer.status == 200:
                break
            # A kind that was just defined is not yet served: its storage starts.
            assert answer.status == 429, f"listing {each.path}: {body}"
            assert time.monotonic() < deadline, f"listing {each.path}: {body}"
            await asyncio.sleep(0.2)
        items = {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in body["items"]}
        return items, int(body["metadata"]["resourceVersion"])

    async def _follow(self, each: _Watched) -> None:
        while True:
            query = f"watch=true&allowWatchBookmarks=true&resourceVersion={each.position}&{each.query}"
            try:
                async with self._session.get(f"{self.url}{each.path}?{query}") as stream:
                    if stream.status == 410:
                        raise Gap(f"the server forgot {each.kind} at {each.position}: the record has a hole")
                    try:
                        async for line in stream.content:
                            self._note(each, json.loads(line))
                    finally:
                        # A polite TLS farewell would outlive the test.
                        if stream.connection is not None and stream.connection.transport is not None:
                            stream.connection.transport.abort()
            except (aiohttp.ClientError, ConnectionError, ValueError):
                # Half a line at the end of a broken connection; the watch resumes where it was and misses nothing.
                await asyncio.sleep(0.1)

    def _note(self, each: _Watched, line: Json) -> None:
        if line["type"] == "ERROR":
            if line["object"].get("code") == 410:
                raise Gap(f"the server forgot {each.kind} at {each.position}: the record has a hole")
            raise ConnectionError(str(line["object"]))
        revision = each.take(line["type"], line["object"])
        if revision is not None:
            self.history.revisions.append(revision)
            self.last_change = time.monotonic()
        self._moved.set()


def _version(obj: Json | None) -> int:
    return 0 if obj is None else int(obj["metadata"]["resourceVersion"])
