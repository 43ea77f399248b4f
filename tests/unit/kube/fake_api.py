"""An API server in memory, small: enough of list, watch, write and 410 to drive the client and the cache.

For unit tests only; what a server really does is learned from the real ones in tests/local/runtime. Time never
passes in here by itself: bookmarks, compaction and closing of watches happen when a test says so.
"""

import asyncio
import copy
import json
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = tuple[int, Json, dict[str, str]]


def status(code: int, reason: str, message: str = "", **details: Any) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": message or reason,
        "reason": reason,
        "code": code,
        "details": details,
    }


def refusal(code: int, reason: str, message: str = "", retry_after: int | None = None) -> Answer:
    return code, status(code, reason, message), {} if retry_after is None else {"Retry-After": str(retry_after)}


class FakeApi:
    """Objects of any plural, keyed by their path. `refuse` queues answers to give instead of serving."""

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.history: list[tuple[int, str, str, Json]] = []  # version, type, collection, object
        self.version = 100
        self.compacted = 100
        self._forgotten = 0  # how many events were compacted away
        self.refuse: deque[Answer | None] = deque()
        self.requests: list[tuple[str, str]] = []
        self.counts: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.before: Callable[[web.Request], Any] | None = None
        self._news = asyncio.Event()
        self._generation = 0  # bumping it closes all watches
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def start(self, ssl_context: Any = None) -> None:
        app = web.Application(client_max_size=8 << 20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=ssl_context)
        await site.start()
        port = self._runner.addresses[0][1]
        self.url = f"{'https' if ssl_context else 'http'}://127.0.0.1:{port}"

    async def stop(self) -> None:
        self.close_watches()
        if self._runner is not None:
            await self._runner.cleanup()

    # What tests do behind the client's back.

    def put(self, path: str, body: Json | None = None) -> Json:
        obj = copy.deepcopy(body or {})
        parts = path.strip("/").split("/")
        meta = obj.setdefault("metadata", {})
        meta["name"] = parts[-1]
        if "namespaces" in parts[:-2]:
            meta["namespace"] = parts[parts.index("namespaces") + 1]
        old = self.objects.get(path)
        meta["uid"] = old["metadata"]["uid"] if old else f"uid-{self.version + 1}"
        self._commit("MODIFIED" if old else "ADDED", path, obj)
        return obj

    def remove(self, path: str) -> None:
        self._commit("DELETED", path, self.objects[path])

    def _commit(self, kind: str, path: str, obj: Json) -> None:
        self.version += 1
        obj = copy.deepcopy(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        if kind == "DELETED":
            del self.objects[path]
        else:
            self.objects[path] = obj
        self._emit(kind, path.rpartition("/")[0], obj)

    def _emit(self, kind: str, collection: str, obj: Json) -> None:
        self.history.append((self.version, kind, collection, obj))
        self._wake()

    def bookmark(self) -> None:
        self._emit("BOOKMARK", "", {"metadata": {"resourceVersion": str(self.version)}})

    def send_line(self, kind: str, obj: Json) -> None:
        """Put any line into all watches, as a broken server would."""
        self._emit(kind, "", obj)

    def compact(self) -> None:
        self.compacted = self.version
        self._forgotten += len(self.history)
        self.history.clear()

    def snapshot(self) -> Callable[[], None]:
        """Remember everything; calling what comes back restores it, as an etcd from a backup, and ends all watches."""
        objects, version, history = copy.deepcopy(self.objects), self.version, list(self.history)

        def restore() -> None:
            self.objects, self.version, self.history = copy.deepcopy(objects), version, list(history)
            self.close_watches()

        return restore

    def close_watches(self) -> None:
        self._generation += 1
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # What clients see.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        watching = request.query.get("watch") == "true"
        verb = "WATCH" if watching else request.method
        if verb == "GET" and request.query.get("limit") == "1":
            verb = "COMPARE"  # only the version of the collection is wanted
        self.requests.append((verb, request.path_qs))
        self.headers.append(dict(request.headers))
        self.counts[verb] += 1
        if self.before is not None and (answer := await self.before(request)) is not None:
            return answer  # type: ignore[no-any-return]
        if self.refuse and (refused := self.refuse.popleft()) is not None:
            return web.json_response(refused[1], status=refused[0], headers=refused[2])
        if watching:
            return await self._watch(request)
        body = await request.json() if request.can_read_body and request.method in ("POST", "PUT", "PATCH") else {}
        code, answer = self._act(request, body)
        return web.json_response(answer, status=code)

    def _act(self, request: web.Request, body: Json) -> tuple[int, Json]:
        path = request.path.removesuffix("/status")
        old = self.objects.get(path)
        if request.method == "POST":
            target = f"{path}/{body['metadata']['name']}"
            if target in self.objects:
                return 409, status(409, "AlreadyExists")
            self.put(target, body)
            return 201, self.objects[target]
        if request.method == "GET" and old is None and self._is_collection(path):
            return self._list(request, path)
        if old is None:
            return 404, status(404, "NotFound", f"{path} not found")
        if request.method == "GET":
            return 200, old
        if request.method == "DELETE":
            self.remove(path)
            return 200, status(200, "")
        claimed = body.get("metadata", {}).get("resourceVersion") if isinstance(body, dict) else None
        if claimed is not None and claimed != old["metadata"]["resourceVersion"]:
            return 409, status(409, "Conflict", "the object has been modified")
        self._commit("MODIFIED", path, body if request.method == "PUT" else merge(old, body))
        return 200, self.objects[path]

    def _is_collection(self, path: str) -> bool:
        return len(path.split("/")) % 2 == 0 if path.startswith("/api/") else len(path.split("/")) % 2 == 1

    def _list(self, request: web.Request, path: str) -> tuple[int, Json]:
        items = [obj for key, obj in sorted(self.objects.items()) if _within(path, key.rpartition("/")[0])]
        limit, token = int(request.query.get("limit", 0)), request.query.get("continue")
        version, start = (int(part) for part in token.split(":")) if token else (self.version, 0)
        if token and version < self.compacted:
            return 410, status(410, "Expired", "The provided continue parameter is too old")
        more = bool(limit) and start + limit < len(items)
        meta: Json = {"resourceVersion": str(version)}
        if more:
            meta["continue"] = f"{version}:{start + limit}"
        return 200, {"kind": "List", "metadata": meta, "items": items[start : start + limit] if limit else items}

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since = int(request.query.get("resourceVersion") or self.version)
        if since < self.compacted:
            return web.json_response(status(410, "Expired", "too old resource version"), status=410)
        generation = self._generation
        first = next((i for i, event in enumerate(self.history) if event[0] > since), len(self.history))
        seen = self._forgotten + first
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        while generation == self._generation:
            news = self._news
            seen = max(seen, self._forgotten)
            while seen - self._forgotten < len(self.history):
                _, kind, collection, obj = self.history[seen - self._forgotten]
                seen += 1
                if not collection or _within(request.path, collection):
                    await response.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")
            if generation == self._generation:
                await news.wait()
        return response


def _within(asked: str, collection: str) -> bool:
    """Whether a collection is the asked one, or a namespace's part of it."""
    if asked == collection:
        return True
    head, _, plural = asked.rpartition("/")
    return collection.startswith(f"{head}/namespaces/") and collection.endswith(f"/{plural}")


def merge(target: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of an object."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged
