"""An API server in memory, seen as a client: for what the controllers themselves cost, without a server beside them.

Objects are kept decoded; a write is merged, versioned and told to the watches. What that costs is kept apart in
`spent`, so that it can be taken off the processor time of the whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from butler.api.codec import from_json, to_json
from butler.api.objects import Key, key_of
from butler.kube.client import Listed, WatchEvent
from butler.kube.errors import AlreadyExists, Conflict, Details, NotFound, Status
from butler.kube.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

Json = dict[str, Any]


class MemoryClient:
    def __init__(self) -> None:
        self.objects: dict[str, dict[Key, Any]] = {}
        self.version = 1
        self.timeline = Timeline()
        self.spent = 0.0
        self.requests: Counter[str] = Counter()
        self._watches: dict[str, list[asyncio.Queue[WatchEvent[Any]]]] = {}

    def put(self, plural: str, obj: Any, kind: str = "ADDED") -> Any:
        """Store an object under the next version, which it gets, and tell it."""
        self.version += 1
        if isinstance(obj, dict):
            obj = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(self.version)}}
        else:
            metadata = msgspec.structs.replace(obj.metadata, resource_version=str(self.version))
            obj = msgspec.structs.replace(obj, metadata=metadata)
        known = self.objects.setdefault(plural, {})
        if kind == "DELETED":
            known.pop(key_of(obj), None)
        else:
            known[key_of(obj)] = obj
        for watch in self._watches.get(plural, ()):
            watch.put_nowait(WatchEvent(kind, obj, str(self.version)))  # type: ignore[arg-type]
        return obj

    @contextlib.contextmanager
    def _counted(self, verb: str, plural: str) -> Iterator[None]:
        began = time.thread_time()
        self.requests[f"{verb} {plural}"] += 1
        try:
            yield
        finally:
            self.spent += time.thread_time() - began

    def _find(self, resource: Any, name: str, namespace: str) -> Any:
        found = self.objects.get(resource.plural, {}).get(Key(namespace, name))
        if found is None:
            details = Details(name=name, group=resource.group, kind=resource.plural)
            raise NotFound(404, Status(reason="NotFound", details=details))
        return found

    async def get(self, resource: Any, name: str, namespace: str = "", **_: Any) -> Any:
        await asyncio.sleep(0)
        with self._counted("GET", resource.plural):
            return self._find(resource, name, namespace)

    async def list(self, resource: Any, namespace: str = "", **_: Any) -> Listed[Any]:
        await asyncio.sleep(0)
        with self._counted("LIST", resource.plural):
            known = self.objects.get(resource.plural, {})
            found = [obj for key, obj in known.items() if namespace in ("", key.namespace)]
            return Listed(found, str(self.version))

    async def newest_version(self, *_: Any, **__: Any) -> str:
        return str(self.version)

    async def watch(self, resource: Any, namespace: str = "", on_open: Any = None, **_: Any) -> AsyncIterator[Any]:
        told: asyncio.Queue[WatchEvent[Any]] = asyncio.Queue()
        self._watches.setdefault(resource.plural, []).append(told)
        if on_open is not None:
            on_open()
        while True:
            event = await told.get()
            if event.object is None or namespace in ("", key_of(event.object).namespace):
                yield event

    async def create(self, resource: Any, obj: Any, namespace: str = "", **_: Any) -> Any:
        await asyncio.sleep(0)
        with self._counted("CREATE", resource.plural):
            if resource.plural == "events":
                return obj
            body = obj if isinstance(obj, dict) else to_json(obj)
            uid = f"{resource.plural}-{self.version}"
            body = {**body, "metadata": {"namespace": namespace, "generation": 1, "uid": uid, **body["metadata"]}}
            if key_of(body) in self.objects.get(resource.plural, {}):
                raise AlreadyExists(409, Status(reason="AlreadyExists"))
            return self.put(resource.plural, _typed(resource, body))

    async def patch(self, resource: Any, name: str, patch: Any, namespace: str = "", **_: Any) -> Any:
        await asyncio.sleep(0)
        with self._counted("PATCH", resource.plural):
            found = self._find(resource, name, namespace)
            body = found if isinstance(found, dict) else to_json(found)
            version = (patch.get("metadata") or {}).get("resourceVersion")
            if version is not None and version != body["metadata"]["resourceVersion"]:
                raise Conflict(409, Status(reason="Conflict"))
            return self.put(resource.plural, _typed(resource, _merged(body, patch)), "MODIFIED")

    async def delete(self, resource: Any, name: str, namespace: str = "", **_: Any) -> Json:
        with self._counted("DELETE", resource.plural):
            self.put(resource.plural, self._find(resource, name, namespace), "DELETED")
        return {}

    async def close(self, **_: Any) -> None:
        """There is nothing to close."""


def _typed(resource: Any, body: Json) -> Any:
    return body if resource.type is dict else from_json(resource.type, body)


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
