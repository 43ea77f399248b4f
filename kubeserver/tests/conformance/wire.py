"""Speaking to an API server in plain HTTP and JSON, so that a test sees exactly what went over the wire.

`Api` sends one request and gives back an `Answer` with the status code, the headers and the body; nothing is
retried, decoded into types or hidden. `failure` and `invalid` spell out the `Status` bodies that Kubernetes answers
errors with, so that a test can compare whole bodies and a missing cause cannot slip through.
"""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    import aiohttp
    from multidict import CIMultiDictProxy

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

Object = dict[str, Any]
Causes = list[tuple[str, str, str]]


@dataclass(frozen=True)
class Answer:
    status: int
    headers: CIMultiDictProxy[str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def made(self) -> Any:
        """The body of a request that had to succeed."""
        assert self.status in (200, 201, 202), f"{self.status}: {self.text}"
        return self.body

    @property
    def causes(self) -> Causes:
        """(reason, field, message) of each cause, in the server's order."""
        found = self.body["details"].get("causes", [])
        return [(item.get("reason", ""), item.get("field", ""), item.get("message", "")) for item in found]

    @property
    def warnings(self) -> list[str]:
        """The texts of the Warning headers, without their code and agent."""
        found = self.headers.getall("Warning", [])
        return [json.loads(text.removeprefix("299 - ")) for text in found]


class Watch:
    """An open watch: the events, one by one, as they come."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def next(self, seconds: float = 20) -> Object:
        line = await asyncio.wait_for(self._response.content.readline(), seconds)
        assert line, "the server ended the watch"
        event: Object = json.loads(line)
        return event

    async def next_change(self) -> Object:
        """The next event that is no bookmark; bookmarks may come at any time."""
        while True:
            event = await self.next()
            if event["type"] != "BOOKMARK":
                return event

    async def names(self, count: int) -> list[tuple[str, str]]:
        """(type, name) of the next events."""
        events = [await self.next_change() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"]["name"]) for event in events]

    async def end(self, seconds: float = 20) -> list[Object]:
        """Everything until the server ends the stream."""
        data = await asyncio.wait_for(self._response.content.read(), seconds)
        return [json.loads(line) for line in data.splitlines()]


class Api:
    """One user's view of a server."""

    def __init__(self, session: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> None:
        self.session = session
        self.url = url
        self.headers = dict(headers)

    def acting_as(self, user: str, *groups: str) -> Api:
        """The same connection, impersonating another user."""
        headers = {**self.headers, "Impersonate-User": user}
        if groups:
            headers["Impersonate-Group"] = groups[0]
        return Api(self.session, self.url, headers)

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = JSON,
        accept: str = JSON,
        **query: Any,
    ) -> Answer:
        """`body` may be an object, or text or bytes to be sent as they are."""
        text = body if isinstance(body, str | bytes) or body is None else json.dumps(body)
        data = text.encode() if isinstance(text, str) else text
        headers = {**self.headers, "Accept": accept}
        if data is not None:
            headers["Content-Type"] = content_type
        # aiohttp warns of large bodies that are not streams.
        stream = None if data is None else io.BytesIO(data)
        async with self.session.request(
            method, self.url + path, data=stream, headers=headers, params=query
        ) as response:
            return Answer(response.status, response.headers, (await response.read()).decode())

    async def get(self, path: str, *, accept: str = JSON, **query: Any) -> Answer:
        return await self.call("GET", path, accept=accept, **query)

    async def post(
        self, path: str, body: object, *, content_type: str = JSON, accept: str = JSON, **query: Any
    ) -> Answer:
        return await self.call("POST", path, body, content_type=content_type, accept=accept, **query)

    async def put(self, path: str, body: object, **query: Any) -> Answer:
        return await self.call("PUT", path, body, **query)

    async def delete(self, path: str, body: object = None, **query: Any) -> Answer:
        return await self.call("DELETE", path, body, **query)

    async def patch(self, path: str, body: object, content_type: str, **query: Any) -> Answer:
        return await self.call("PATCH", path, body, content_type=content_type, **query)

    async def merge(self, path: str, body: object, **query: Any) -> Answer:
        return await self.patch(path, body, MERGE_PATCH, **query)

    async def apply(self, path: str, body: object, manager: str = "applier", **query: Any) -> Answer:
        return await self.patch(path, body, APPLY_PATCH, fieldManager=manager, **query)

    @asynccontextmanager
    async def watch(self, path: str, *, accept: str = JSON, **query: Any) -> AsyncIterator[Watch]:
        async with self.session.get(
            self.url + path,
            headers={**self.headers, "Accept": accept},
            params={"watch": "true", "timeoutSeconds": 60, **query},
        ) as response:
            transport = response.connection and response.connection.transport
            assert response.status == 200, await response.text()
            try:
                yield Watch(response)
            finally:
                # Cut the stream: an orderly end of TLS would outlive the test and its event loop.
                if transport is not None:
                    transport.abort()
                    await asyncio.sleep(0)


async def eventually(check: Callable[[], Awaitable[bool]], what: str, seconds: float = 30) -> None:
    """Poll until `check` holds; some promises are kept by controllers, a little later."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await check():
        assert asyncio.get_running_loop().time() < deadline, f"not after {seconds} s: {what}"
        await asyncio.sleep(0.05)


def failure(code: int, reason: str, message: str, **details: object) -> Object:
    """The Status body of an error."""
    body: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    if details:
        body["details"] = details
    return body


def not_found(resource: str, name: str, group: str = "") -> Object:
    qualified = f"{resource}.{group}" if group else resource
    grouped = {"group": group} if group else {}
    return failure(404, "NotFound", f'{qualified} "{name}" not found', name=name, kind=resource, **grouped)


def invalid(kind: str, name: str, *causes: tuple[str, str, str], group: str = "") -> Object:
    """The 422 body for causes given as (reason, field, message)."""
    qualified = f"{kind}.{group}" if group else kind
    texts = list(dict.fromkeys(f"{field}: {message}" for _, field, message in causes))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    details: Object = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = kind
    details["causes"] = [{"reason": reason, "message": message, "field": field} for reason, field, message in causes]
    return failure(422, "Invalid", f'{qualified} "{name}" is invalid: {joined}', **details)


def unexplained(code: int, message: str) -> Object:
    """An error that Kubernetes gives no reason for: it did not foresee it."""
    body = failure(code, "", message)
    del body["reason"]
    return body
