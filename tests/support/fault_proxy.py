"""A proxy between a client and an API server that misbehaves on command.

It speaks plain HTTP on the loopback interface and whatever the server wants upstream. What it does to the n-th
request of a kind (list, watch, read, write) is decided by a `Plan`, a pure function of a seed and n, so a failing
run can be repeated. Faults act where networks do: before the request reaches the server, after it but before the
answer, in the middle of an answer, and in the middle of a watch's line.

    async with FaultProxy(url, tls, headers) as proxy:
        proxy.plan = Seeded(seed=7, rate=0.5)
        client = Client(Connection(proxy.url))

`aim` singles out requests by what they ask for, ahead of the plan. `on_write` is called at two moments of every
write, before the server hears of it and after it has answered: the place to kill a client at exactly that point.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable, Mapping

Traffic = Literal["list", "watch", "read", "write"]
Kind = Literal[
    "none",
    "refuse",  # answer with `code` and never ask the server
    "cut_before",  # drop the connection before the server hears of it
    "cut_after",  # let the server do it, then drop the connection instead of answering
    "cut_within",  # send part of the answer, then drop the connection
    "delay",  # answer late by `seconds`
    "stall",  # half open: accept, then say nothing for ever
    "deny",  # answer that this very object does not exist, as a server would, and never ask it
    "refuse_after",  # let the server do it, then answer with `code`
    "stall_after",  # let the server do it, then say nothing for ever
    "truncate",  # send a well-formed answer whose body ends early
    "shorten",  # lists: leave out every other item, as if they did not exist
    "empty",  # lists: leave out all items
    "shuffle",  # lists: all items, in another order
    "close",  # watches: end the stream as a server does
    "duplicate",  # watches: send every line twice
    "replay",  # watches: after every line send an earlier one again
    "outdate",  # watches: ask the server for a version that it has long forgotten, and pass on what it says
    "lag",  # watches: pass each line on late, by up to `seconds`, in order
    "reorder",  # watches: hold lines back now and then and let the next one pass
]
FAULTS: dict[Traffic, tuple[Kind, ...]] = {
    "list": ("refuse", "cut_before", "cut_after", "cut_within", "delay", "truncate", "stall"),
    "watch": ("refuse", "cut_before", "cut_within", "delay", "stall", "close", "duplicate", "replay", "outdate"),
    "read": ("refuse", "cut_before", "cut_after", "delay"),
    "write": ("refuse", "cut_before", "cut_after", "delay"),
}
CODES: dict[Traffic, tuple[int, ...]] = {
    "list": (429, 500, 503, 504),
    "watch": (410, 429, 500, 503),
    "read": (429, 500, 503),
    "write": (429, 503),
}
REASONS = {
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


@dataclass(frozen=True)
class Fault:
    """One misdeed. `after` is how many lines of a watch pass unharmed first, `lines` how many it may live to.

    `seed` decides which lines lag or change places, and by how much.
    """

    kind: Kind = "none"
    code: int = 0
    seconds: float = 0.0
    after: int = 0
    lines: int = 1_000_000_000
    seed: int = 0


FAIR = Fault()


@dataclass(frozen=True)
class Asked:
    """What a request is about, read from its address; `number` counts the requests of its traffic."""

    traffic: Traffic
    number: int
    method: str
    path: str
    group: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    def __str__(self) -> str:
        parts = (self.plural, self.name, self.subresource)
        return f"{self.method} {'/'.join(part for part in parts if part)}"


Moment = Literal["before", "after"]


class Plan(Protocol):
    def fault(self, traffic: Traffic, number: int) -> Fault:
        """What to do to the n-th request of a kind."""


@dataclass(frozen=True)
class Seeded:
    """Faults at a given rate, the same for the same seed whatever order requests of different kinds come in."""

    seed: int
    rate: float = 0.5
    longest_delay: float = 0.2
    only: tuple[Traffic, ...] = ("list", "watch", "read", "write")

    def fault(self, traffic: Traffic, number: int) -> Fault:
        rng = random.Random(f"{self.seed}:{traffic}:{number}")
        if traffic not in self.only:
            return FAIR
        if rng.random() >= self.rate:
            return Fault(lines=rng.randrange(3, 20))
        return Fault(
            kind=rng.choice(FAULTS[traffic]),
            code=rng.choice(CODES[traffic]),
            seconds=rng.uniform(0, self.longest_delay),
            after=rng.randrange(6),
            lines=rng.randrange(3, 20),
        )


@dataclass(frozen=True)
class Always:
    """The same fault for some kinds of traffic."""

    what: Fault
    only: tuple[Traffic, ...] = ("list", "watch", "read", "write")

    def fault(self, traffic: Traffic, _number: int) -> Fault:
        return self.what if traffic in self.only else FAIR


FAITHFUL = Always(FAIR)


@dataclass
class FaultProxy:
    """Listens on a free port of 127.0.0.1 until closed; `counts` tells what was done to whom."""

    upstream: str
    tls: ssl.SSLContext | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    plan: Plan = FAITHFUL
    aim: Callable[[Asked], Fault | None] | None = None
    on_write: Callable[[Asked, Moment], Awaitable[None]] | None = None
    rewrite: Callable[[bytes], bytes] | None = None
    """Changes what the server says, answers and single lines of watches, before anything is done to it."""
    counts: Counter[tuple[Traffic, Kind]] = field(default_factory=Counter)
    url: str = ""
    _numbers: Counter[Traffic] = field(default_factory=Counter)
    _open: set[asyncio.Transport] = field(default_factory=set)
    _refusing: bool = False

    async def __aenter__(self) -> FaultProxy:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=False,
            skip_auto_headers=("Accept-Encoding",),  # what the client did not ask for it may not understand
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        # Every misdeed is an unhandled exception to the server in here; its stack is no news.
        quiet = logging.Logger("fault_proxy", logging.CRITICAL + 1)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1, logger=quiet
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut_all()
        await self._runner.cleanup()
        await self._session.close()

    def cut_all(self) -> None:
        """Drop every connection that is being served, at once."""
        for transport in list(self._open):
            transport.abort()

    def go_dark(self, dark: bool = True) -> None:
        """Behave like a server that is gone: every connection is dropped, new ones too, until told otherwise."""
        self._refusing = dark
        if dark:
            self.cut_all()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        transport = request.transport
        assert isinstance(transport, asyncio.Transport)
        self._open.add(transport)
        try:
            if self._refusing:
                _cut(transport)
            traffic = _traffic(request)
            asked = _asked(request, traffic, self._numbers[traffic])
            self._numbers[traffic] += 1
            aimed = self.aim(asked) if self.aim is not None else None
            fault = aimed if aimed is not None else self.plan.fault(traffic, asked.number)
            self.counts[traffic, fault.kind] += 1
            return await self._exchange(request, transport, fault, asked)
        finally:
            self._open.discard(transport)

    async def _tell(self, asked: Asked, moment: Moment, transport: asyncio.Transport) -> None:
        """Call `on_write`; when it raises ConnectionResetError the client gets no answer."""
        if asked.traffic == "write" and self.on_write is not None:
            try:
                await self.on_write(asked, moment)
            except ConnectionResetError:
                _cut(transport)

    async def _exchange(
        self, request: web.Request, transport: asyncio.Transport, fault: Fault, asked: Asked
    ) -> web.StreamResponse:
        body = await request.read()
        watching = asked.traffic == "watch"
        if fault.kind == "refuse":
            return _refusal(fault.code)
        if fault.kind == "deny":
            return _refusal(404, {"name": asked.name, "group": asked.group, "kind": asked.plural})
        if fault.kind == "cut_before":
            _cut(transport)
        await self._tell(asked, "before", transport)
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault.kind == "stall" and not watching:
            await asyncio.sleep(3600)
        unwanted = _HOP_BY_HOP if self.rewrite is None else _HOP_BY_HOP | {"accept-encoding"}  # to be read in here
        passed_on = [(n, v) for n, v in request.headers.items() if n.lower() not in unwanted]
        query = request.rel_url.update_query(resourceVersion="1") if fault.kind == "outdate" else request.rel_url
        async with self._session.request(
            request.method,
            f"{self.upstream}{query}",
            data=body or None,
            headers=[*passed_on, *self.headers.items()],
            ssl=self.tls if self.tls is not None else True,
        ) as answer:
            if watching and answer.status == 200:
                try:
                    return await self._stream(request, transport, answer, fault)
                finally:
                    if answer.connection is not None and answer.connection.transport is not None:
                        answer.connection.transport.abort()
            content = self._said(await answer.read())
            await self._tell(asked, "after", transport)
            if fault.kind == "cut_after":
                _cut(transport)
            if fault.kind == "refuse_after":
                return _refusal(fault.code)
            if fault.kind == "stall_after":
                await asyncio.sleep(3600)
            headers = [(n, v) for n, v in answer.headers.items() if n.lower() not in _HOP_BY_HOP]
            if fault.kind == "truncate":
                content = content[: len(content) * 2 // 3]
            if fault.kind in ("shorten", "empty", "shuffle") and answer.status == 200:
                content = _rewritten(content, fault)
            if fault.kind == "cut_within":
                partial = web.StreamResponse(status=answer.status, headers=dict(headers))
                partial.content_length = len(content)
                await partial.prepare(request)
                await partial.write(content[: len(content) // 2])
                _cut(transport)
            return web.Response(status=answer.status, body=content, headers=dict(headers))

    def _said(self, content: bytes) -> bytes:
        return content if self.rewrite is None else self.rewrite(content)

    async def _stream(
        self, request: web.Request, transport: asyncio.Transport, answer: aiohttp.ClientResponse, fault: Fault
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        if fault.kind in ("lag", "reorder"):
            await _Late(fault).pass_on(answer, response)
            return response
        passed: list[bytes] = []
        async for heard in answer.content:
            line = self._said(heard)
            if len(passed) >= fault.after:
                if fault.kind == "close":
                    return response
                if fault.kind == "cut_within" or len(passed) >= fault.lines:
                    await response.write(line[: len(line) // 2])
                    _cut(transport)
                if fault.kind == "stall":
                    await asyncio.sleep(3600)
            await response.write(line)
            passed.append(line)
            if fault.kind == "duplicate":
                await response.write(line)
            if fault.kind == "replay" and len(passed) > 1:
                await response.write(passed[-1 - len(passed) % min(5, len(passed))])
            if fault.kind == "delay":
                await asyncio.sleep(fault.seconds / 5)
        return response


class _Late:
    """Passes a watch on with each line late by its own time; in order, or (reorder) not quite."""

    def __init__(self, fault: Fault) -> None:
        self._fault = fault
        self._rng = random.Random(fault.seed)
        self._lag = self._rng.uniform(0, fault.seconds)
        self._due = 0.0

    async def pass_on(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        waiting: asyncio.PriorityQueue[tuple[float, int, bytes]] = asyncio.PriorityQueue()
        reading = asyncio.create_task(self._read(answer, waiting))
        loop = asyncio.get_running_loop()
        try:
            while True:
                due, number, line = await waiting.get()
                if due > loop.time():
                    # Another line may overtake this one while it waits.
                    waiting.put_nowait((due, number, line))
                    await asyncio.sleep(min(0.01, due - loop.time()))
                elif line:
                    await response.write(line)
                else:
                    return
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    async def _read(
        self, answer: aiohttp.ClientResponse, waiting: asyncio.PriorityQueue[tuple[float, int, bytes]]
    ) -> None:
        number = 0
        try:
            async for line in answer.content:
                waiting.put_nowait((self._when(), number, line))
                number += 1
        finally:
            waiting.put_nowait((max(self._due, asyncio.get_running_loop().time()), number, b""))

    def _when(self) -> float:
        now = asyncio.get_running_loop().time()
        if self._fault.kind == "lag":
            # Mostly by the same time, so that lines keep their distance; a delay for each would bring them in bursts.
            if self._rng.random() < 0.1:
                self._lag = self._rng.uniform(0, self._fault.seconds)
            self._due = max(self._due, now + self._lag)
            return self._due
        return now + (self._fault.seconds if self._rng.random() < 0.3 else 0.0)


def _rewritten(content: bytes, fault: Fault) -> bytes:
    """A list that looks whole, but is not what the server said."""
    listed = json.loads(content)
    items = list(listed["items"])
    if fault.kind == "shuffle":
        random.Random(fault.seed).shuffle(items)
    listed["items"] = {"empty": [], "shorten": items[::2]}.get(fault.kind, items)
    return json.dumps(listed).encode()


def _cut(transport: asyncio.Transport) -> NoReturn:
    transport.abort()
    raise ConnectionResetError


def _asked(request: web.Request, traffic: Traffic, number: int) -> Asked:
    """Read `/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<subresource>` and its shorter forms."""
    parts = [part for part in request.path.split("/") if part]
    group, parts = ("", parts[2:]) if parts[:1] == ["api"] else ((*parts, "", "")[1], parts[3:])
    namespace = ""
    if len(parts) > 2 and parts[0] == "namespaces":
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = (*parts, "", "", "")[:3]
    return Asked(traffic, number, request.method, request.path, group, plural, namespace, name, subresource)


def _traffic(request: web.Request) -> Traffic:
    if request.method != "GET":
        return "write"
    if request.query.get("watch") == "true":
        return "watch"
    tail = [part for part in request.path.split("/") if part]
    depth = len(tail) - (2 if tail[0] == "api" else 3)
    if len(tail) > 2 and "namespaces" in tail[:-1]:
        depth -= 2
    return "list" if depth == 1 else "read"


def _refusal(code: int, details: dict[str, str] | None = None) -> web.Response:
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "made up by the proxy",
        "reason": REASONS[code],
        "details": details or {},
        "code": code,
    }
    # Nothing is done upstream, and the header says so, as an overloaded API server does.
    headers = {"Retry-After": "0"} if code in (429, 503) else {}
    return web.Response(status=code, text=json.dumps(body), content_type="application/json", headers=headers)
