"""API servers that attack the clients that watch them, one for each path prefix. A process of its own.

    python hostile_server.py        prints its port, and serves until standard input ends

Each behaviour answers lists and watches of Services, and nothing else is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from aiohttp import web

Json = dict[str, Any]
Answer = Callable[[web.Request, bool], Awaitable[web.StreamResponse]]


def service(number: int, **more: Any) -> Json:
    meta = {"name": f"s{number}", "namespace": "web", "uid": f"u{number}", "resourceVersion": str(number + 1000)}
    return {"metadata": meta | more, "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {}}}


def listed(items: list[Json], **meta: str) -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "999"} | meta, "items": items})


def line(kind: str, obj: Json) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def stream(request: web.Request, chunks: AsyncIterator[bytes]) -> web.StreamResponse:
    response = web.StreamResponse()
    with contextlib.suppress(ConnectionError):  # they got away
        await response.prepare(request)
        async for chunk in chunks:
            await response.write(chunk)
    return response


async def repeated(chunk: bytes, pause: float = 0.0) -> AsyncIterator[bytes]:
    while True:
        yield chunk
        await asyncio.sleep(pause)


async def silent(_: web.Request, __: bool) -> web.StreamResponse:
    await asyncio.sleep(3600)
    return web.Response()


async def garbage(_: web.Request, __: bool) -> web.StreamResponse:
    return web.Response(body=b"\x00\xff<html>" * 100)


async def deep(_: web.Request, __: bool) -> web.StreamResponse:
    return web.Response(body=b'{"items":[{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}")


async def redirecting(request: web.Request, _: bool) -> web.StreamResponse:
    return web.Response(status=307, headers={"Location": f"http://{request.host}{request.path}x"})


async def endless(request: web.Request, _: bool) -> web.StreamResponse:
    return await stream(request, repeated(b"[" * 65536))


async def trickling(request: web.Request, _: bool) -> web.StreamResponse:
    return await stream(request, repeated(b" ", 0.05))


async def trickling_watch(request: web.Request, watching: bool) -> web.StreamResponse:
    return await trickling(request, watching) if watching else listed([service(1)])


async def huge(_: web.Request, __: bool) -> web.StreamResponse:
    return listed([service(1, annotations={"a": "x" * 50_000_000})])


async def crowded(request: web.Request, _: bool) -> web.StreamResponse:
    """A hundred thousand Services."""
    start = int(request.query.get("continue") or 0)
    items = [service(number) for number in range(start, start + 250)]
    return listed(items, **({"continue": str(start + 250)} if start < 100_000 else {}))


async def unlimited(_: web.Request, __: bool) -> web.StreamResponse:
    """All in one page, whatever limit was asked for."""
    return listed([{"metadata": {"name": str(number), "namespace": "a"}} for number in range(20_000)])


async def never_done(request: web.Request, _: bool) -> web.StreamResponse:
    """A page with one Service each, and always one more to come."""
    start = int(request.query.get("continue") or 0)
    await asyncio.sleep(0.05)
    return listed([service(start)], **{"continue": str(start + 1)})


async def ending(_: web.Request, watching: bool) -> web.StreamResponse:
    return web.Response() if watching else listed([service(1)])


async def forgetful(_: web.Request, watching: bool) -> web.StreamResponse:
    """One event, and then the version is too old: list again."""
    gone = {"status": "Failure", "reason": "Expired", "code": 410}
    return web.Response(body=line("ADDED", service(2)) + line("ERROR", gone)) if watching else listed([service(1)])


async def flooding(request: web.Request, watching: bool) -> web.StreamResponse:
    """New Services, as fast as they can be sent."""

    async def events() -> AsyncIterator[bytes]:
        for first in itertools.count(0, 200):
            yield b"".join(line("ADDED", service(number)) for number in range(first, first + 200))

    return await stream(request, events()) if watching else listed([])


async def chattering(request: web.Request, watching: bool) -> web.StreamResponse:
    """The same Service changes, as fast as that can be sent."""

    async def events() -> AsyncIterator[bytes]:
        for first in itertools.count(0, 200):
            lines = (service(1, resourceVersion=str(2000 + number)) for number in range(first, first + 200))
            yield b"".join(line("MODIFIED", obj) for obj in lines)

    return await stream(request, events()) if watching else listed([service(1)])


async def empty_lines(request: web.Request, watching: bool) -> web.StreamResponse:
    return await stream(request, repeated(b"\n" * 65536)) if watching else listed([])


async def misshapen(_: web.Request, __: bool) -> web.StreamResponse:
    return listed([service(1), {"metadata": 7}])


async def other_types(_: web.Request, __: bool) -> web.StreamResponse:
    """Not what was asked for."""
    return listed([service(1) | {"spec": {"type": "ClusterIP"}}])


BEHAVIOURS: dict[str, Answer] = {
    call.__name__: call
    for call in (
        silent,
        garbage,
        deep,
        redirecting,
        endless,
        trickling,
        trickling_watch,
        huge,
        crowded,
        unlimited,
        never_done,
        ending,
        forgetful,
        flooding,
        chattering,
        empty_lines,
        misshapen,
        other_types,
    )
}


async def serve(request: web.Request) -> web.StreamResponse:
    _, behaviour, _ = request.path.split("/", 2)
    return await BEHAVIOURS[behaviour](request, request.query.get("watch") == "true")


async def main() -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
