"""A proxy between a client and an API server that misbehaves on command.

It speaks plain HTTP on the loopback interface and whatever the server wants upstream. What it does to the n-th
request of a kind (list, watch, read, write) is decided by a `Plan`, a pure function of a seed and n, so a failing
run can be repeated. Faults act where networks do: before the request reaches the server, after it but before the
answer, in the middle of an answer, and in the middle of a watch's line.

    async with FaultProxy(url, tls, headers) as proxy:
        proxy.plan = Seeded(seed=7, rate=0.5)
        client = Client(Connection(proxy.url))
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

Traffic = Literal["list", "watch", "read", "write"]
Kind = Literal[
    "none",
    "refuse",  # answer with `code` and never ask the server
    "cut_before",  # drop the connection before the server hears of it
    "cut_after",  # let the server do it, then drop the connection instead of answering
    "cut_within",  # send part of the answer, then drop the connection
    "delay",  # answer late by `seconds`
    "stall",  # half open: accept, then say nothing for ever
    "truncate",  # send a well-formed answer whose body ends early
    "close",  # watches: end the stream as a server does
    "duplicate",  # watches: send every line twice
    "replay",  # watches: after every line send an earlier one again
    "outdate",  # watches: ask the server for a version that it has long forgotten, and pass on what it says
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
REASONS = {410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
_HOP_BY_HOP = {"connection", "transfer-encoding", "content-length", "host", "keep-alive"}


@dataclass(frozen=True)
class Fault:
    """One misdeed. `after` is how many lines of a watch pass unharmed first, `lines` how many it may live to."""

    kind: Kind = "none"
    code: int = 0
    seconds: float = 0.0
    after: int = 0
    lines: int = 1_000_000_000


FAIR = Fault()


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
    counts: Counter[tuple[Traffic, Kind]] = field(default_factory=Counter)
    url: str = ""
    _numbers: Counter[Traffic] = field(default_factory=Counter)
    _open: set[asyncio.Transport] = field(default_factory=set)
    _refusing: bool = False

    async def __aenter__(self) -> FaultProxy:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=None),
        )
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
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
                transport.abort()
                raise ConnectionResetError
            traffic = _traffic(request)
            fault = self.plan.fault(traffic, self._numbers[traffic])
            self._numbers[traffic] += 1
            self.counts[traffic, fault.kind] += 1
            return await self._exchange(request, transport, fault, watching=traffic == "watch")
        finally:
            self._open.discard(transport)

    async def _exchange(
        self, request: web.Request, transport: asyncio.Transport, fault: Fault, *, watching: bool
    ) -> web.StreamResponse:
        body = await request.read()
        if fault.kind == "refuse":
            return _refusal(fault.code)
        if fault.kind == "cut_before":
            transport.abort()
            raise ConnectionResetError
        if fault.kind == "delay":
            await asyncio.sleep(fault.seconds)
        if fault.kind == "stall" and not watching:
            await asyncio.sleep(3600)
        passed_on = [(n, v) for n, v in request.headers.items() if n.lower() not in _HOP_BY_HOP]
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
            content = await answer.read()
            if fault.kind == "cut_after":
                transport.abort()
                raise ConnectionResetError
            headers = [(n, v) for n, v in answer.headers.items() if n.lower() not in _HOP_BY_HOP]
            if fault.kind == "truncate":
                content = content[: len(content) * 2 // 3]
            if fault.kind == "cut_within":
                partial = web.StreamResponse(status=answer.status, headers=dict(headers))
                partial.content_length = len(content)
                await partial.prepare(request)
                await partial.write(content[: len(content) // 2])
                transport.abort()
                raise ConnectionResetError
            return web.Response(status=answer.status, body=content, headers=dict(headers))

    async def _stream(
        self, request: web.Request, transport: asyncio.Transport, answer: aiohttp.ClientResponse, fault: Fault
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        passed: list[bytes] = []
        async for line in answer.content:
            if len(passed) >= fault.after:
                if fault.kind == "close":
                    return response
                if fault.kind == "cut_within" or len(passed) >= fault.lines:
                    await response.write(line[: len(line) // 2])
                    transport.abort()
                    raise ConnectionResetError
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


def _refusal(code: int) -> web.Response:
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "made up by the proxy",
        "reason": REASONS[code],
        "code": code,
    }
    # Nothing is done upstream, and the header says so, as an overloaded API server does.
    headers = {"Retry-After": "0"} if code in (429, 503) else {}
    return web.Response(status=code, text=json.dumps(body), content_type="application/json", headers=headers)
