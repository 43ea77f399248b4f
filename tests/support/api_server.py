"""An API server in this process, for unit tests of whatever talks to one: kubeserver, without a socket or a disk.

`ApiServer` is a client of it, with what a test wants besides: `put` writes an object as a restore from a backup does,
with the uid, the timestamps and the status that the test chose; `objects` reads and writes one kind as a dict; `counts`
says what was asked; `objection` makes requests fail, and `meanwhile` lets something happen just before a write.

Definitions take longer to install than all the rest, so one server serves a whole run: `serving` starts it on the loop
of the tests, and each `ApiServer` begins with an empty one. The one before it is of no use from then on, and says so.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from butler.api.crd import KINDS, custom_resource_definition
from butler.api.objects import Json, Key
from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.errors import api_error
from butler.kube.objects import to_json
from butler.kube.transport import ApiRequest, Transport
from kubeserver import InProcessClient, in_process
from kubeserver.storage.store import Entry, ObjectKey, Table, restamped

if TYPE_CHECKING:
    from butler.kube.resource import Resource

T = TypeVar("T")

NAMESPACES = ("butler-system", "home", "ns", "team-a")
WRITES = ("create", "update", "patch", "apply", "delete")


@dataclass
class _Running:
    client: InProcessClient
    bare: dict[ObjectKey, Entry]
    """What an empty server has."""
    user: ApiServer | None = None


_running: WeakKeyDictionary[asyncio.AbstractEventLoop, _Running] = WeakKeyDictionary()


@asynccontextmanager
async def serving(definitions: Iterable[Json] | None = None) -> AsyncIterator[None]:
    """Serve all `ApiServer`s of the running loop; Butler's own kinds are defined unless the caller says which are."""
    wanted = [custom_resource_definition(kind) for kind in KINDS] if definitions is None else definitions
    async with in_process(wanted, NAMESPACES) as client:
        store = client.server._store
        bare = {entry.key: entry for table in store.tables() for entry in store.entries(table)}
        _running[asyncio.get_running_loop()] = _Running(client, bare)
        try:
            yield
        finally:
            del _running[asyncio.get_running_loop()]


class ApiServer(Client):
    """An empty server, and a client of it that neither repeats requests nor waits."""

    def __init__(self) -> None:
        super().__init__(Connection("https://in-process.invalid"))
        self._running = _running[asyncio.get_running_loop()]
        self._store = self._running.client.server._store
        self.transport = _InProcess(self)
        self.counts: Counter[str] = Counter()
        """By verb and plural, such as "get secrets"."""
        self.objection: Callable[[ApiRequest], Exception | None] = lambda _: None
        """What the caller is told in place of an answer; the server never hears of the request."""
        self.meanwhile: Callable[[], object] | None = None
        """Called once, just before the next write."""
        self.most_at_once = 0
        self._at_once = 0
        self._running.user = self
        self._empty()

    def objects(self, resource: Resource[T]) -> Objects[T]:
        return Objects(self, resource)

    def put(self, resource: Resource[T], obj: T | Json) -> T:
        """Write an object as it is, as a restore does; only its resourceVersion is the server's."""
        body = to_json(obj, resource)
        meta = body["metadata"] = {"uid": str(uuid.uuid4()), **body["metadata"]}
        key = self._key(resource, Key(meta.get("namespace") or "", meta["name"]))
        self._keep(key, msgspec.json.encode(body))
        return self.objects(resource)[Key(key.namespace, key.name)]

    def drop(self, resource: Resource[Any], key: Key) -> None:
        """Take an object away, whatever its finalizers say."""
        self._remove(self._key(resource, key))

    async def ask(self, request: ApiRequest) -> bytes:
        """What `transport.send` does."""
        self._mine()
        self.counts[f"{request.verb} {request.resource.partition('.')[0]}"] += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(0)
            if request.verb in WRITES and self.meanwhile is not None:
                self.meanwhile, happens = None, self.meanwhile
                happens()
            if (error := self.objection(request)) is not None:
                raise error
            return await self._answer(request)
        finally:
            self._at_once -= 1

    async def _answer(self, request: ApiRequest) -> bytes:
        status, answer = await self._running.client.request(
            request.method,
            request.path,
            request.body,
            query={name: str(value) for name, value in (request.params or {}).items() if value is not None},
            content_type=request.content_type,
        )
        body = answer.encode() if isinstance(answer, str) else msgspec.json.encode(answer)
        if status >= 300:
            raise api_error(status, body, str(request), None)
        return body

    def _key(self, resource: Resource[Any], key: Key) -> ObjectKey:
        return ObjectKey("", resource.group, resource.plural, key.namespace, key.name)

    def _mine(self) -> Any:
        assert self._running.user is self, "another ApiServer was made since: there is one at a time"
        return self._store

    def _empty(self) -> None:
        bare = self._running.bare
        left = {entry.key: entry for table in self._store.tables() for entry in self._store.entries_latest(table)}
        for key, entry in left.items():
            if key not in bare or bare[key].revision != entry.revision:
                self._remove(key)
        for key, entry in bare.items():
            if self._store.latest(key) is None:
                self._keep(key, entry.value)
                kept = self._store.get(key)
                assert kept is not None
                bare[key] = kept

    def _keep(self, key: ObjectKey, content: bytes) -> None:
        old = self._mine().latest(key)
        if old is None:
            self._store.create(key, lambda revision: restamped(content, revision))
        else:
            self._store.update(key, old.revision, lambda revision: restamped(content, revision))
        self._store._hand_over()

    def _remove(self, key: ObjectKey) -> None:
        found = self._mine().latest(key)
        if found is None:
            raise KeyError(key)
        self._store.delete(key, found.revision, lambda revision: restamped(found.value, revision))
        self._store._hand_over()


class Objects(MutableMapping[Key, T], Generic[T]):
    """The objects of one kind on a server: as they are there now, and written as `ApiServer.put` does."""

    def __init__(self, server: ApiServer, resource: Resource[T]) -> None:
        self._server = server
        self._resource = resource

    def __getitem__(self, key: Key) -> T:
        found = self._server._mine().get(self._server._key(self._resource, key))
        if found is None:
            raise KeyError(key)
        return msgspec.json.decode(found.value, type=self._resource.type)

    def __setitem__(self, key: Key, obj: T | Json) -> None:
        meta = to_json(obj)["metadata"]
        assert (meta.get("namespace") or "", meta["name"]) == key, f"{meta['name']} is not {key}"
        self._server.put(self._resource, obj)

    def __delitem__(self, key: Key) -> None:
        self._server.drop(self._resource, key)

    def __iter__(self) -> Iterator[Key]:
        table = Table("", self._resource.group, self._resource.plural)
        return iter([Key(entry.key.namespace, entry.key.name) for entry in self._server._mine().entries(table)])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class _InProcess(Transport):
    """Requests as function calls."""

    def __init__(self, server: ApiServer) -> None:
        super().__init__(server.connection)
        self._server = server

    async def send(self, request: ApiRequest, *, timeout: float | None = None) -> bytes:
        return await self._server.ask(request)
