"""The WebSocket of the live stream: /api/v1/stream. `models/stream.py` says what is sent, `stream/hub.py` makes it.

Each has three tasks: one sends what is queued, one listens for the end (nothing else is to be heard), and one looks
from time to time whether the person may still see what they see. The first that ends, ends it all. That the session
still is one is seen to before any route.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Final, NamedTuple, cast

from litestar import WebSocket, websocket
from litestar.exceptions import WebSocketDisconnect

from butler.kube.errors import KubeError
from butler.server.access.person import Person
from butler.server.cache.cluster_state import KIND_NAMES, KindName
from butler.server.services import TheServices, now
from butler.server.stream.hub import Listener, StreamHub

MOST_LISTENERS: Final = 1_000
MOST_OF_ONE: Final = 200
"""Streams of one user: none may take all of them."""
BEAT: Final = 15.0
LOOK_AGAIN: Final = 10.0
"""Seconds until it is asked again what a person may see."""
GLANCE: Final = 2.0
"""Seconds until it is seen that a session has run out, or that the client takes nothing that is sent."""
STUCK: Final = 60.0
"""Seconds after which a client that takes nothing is hung up on; so long, too, an API server may be away."""

Socket = WebSocket[Any, Any, Any]


class Ending(NamedTuple):
    """Why a stream is closed: the code is for programs, the sentence for people."""

    code: int
    reason: str


BAD: Final = 4400
SPOKEN: Final = Ending(BAD, "this stream takes no messages: connect again and only listen")
LOGGED_OUT: Final = Ending(4401, "your session has ended: log in again")
HUNG_UP: Final = Ending(4408, "nothing was taken for a minute: connect again")
FULL: Final = Ending(4429, "too many streams are open here: try again in a moment")
YOURS: Final = Ending(4429, "too many streams are open in your name: close some, then try again")
AWAY: Final = Ending(4503, "the Kubernetes API server cannot be asked what you may see: try again in a moment")


@websocket("/stream")
async def follow(socket: Socket, services: TheServices) -> None:
    """Everything that changes, to a client that may see it."""
    await socket.accept()
    try:
        ending = await _serve(socket, services.stream)
    except KubeError:
        ending = AWAY
    except WebSocketDisconnect:
        return
    if ending is not None:
        with contextlib.suppress(TimeoutError, WebSocketDisconnect):
            async with asyncio.timeout(5):
                await socket.close(code=ending.code, reason=ending.reason)


async def _serve(socket: Socket, stream: StreamHub) -> Ending | None:
    person = socket.scope.get("user")
    if not isinstance(person, Person):
        return LOGGED_OUT
    asked = [kind for kind in (socket.query_params.get("kinds") or ",".join(KIND_NAMES)).split(",") if kind]
    if not set(asked) <= set(KIND_NAMES):
        return Ending(BAD, f"kinds: take some of {', '.join(KIND_NAMES)}")
    if len(stream.listeners) >= MOST_LISTENERS:
        return FULL
    if sum(other.person.user == person.user for other in stream.listeners) >= MOST_OF_ONE:
        return YOURS
    listener = Listener(person, cast("list[KindName]", asked))
    work: list[asyncio.Task[Ending | None]] = []
    try:
        await stream.join(listener, socket.query_params.get("since"))
        parts = (_send(socket, stream, listener), _hear(socket), _look(stream, listener))
        work += [asyncio.create_task(part) for part in parts]
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()
    finally:
        stream.leave(listener)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _send(socket: Socket, stream: StreamHub, listener: Listener) -> Ending | None:
    loop = asyncio.get_running_loop()
    while True:
        while listener.queue:
            listener.blocked_since = loop.time()
            await socket.send({"type": "websocket.send", "bytes": None, "text": listener.queue.popleft()})
            listener.blocked_since = None
        listener.wake.clear()
        try:
            async with asyncio.timeout(BEAT):
                await listener.wake.wait()
        except TimeoutError:
            listener.queue.append(stream.beat(listener))


async def _hear(socket: Socket) -> Ending | None:
    message = await socket.receive()
    return None if message["type"] == "websocket.disconnect" else SPOKEN


async def _look(stream: StreamHub, listener: Listener) -> Ending:
    """Ends when the person may no longer listen, or does not."""
    loop = asyncio.get_running_loop()
    looked = loop.time()
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GLANCE):
                await listener.look.wait()
        if listener.person.expires_at <= now():
            return LOGGED_OUT
        if listener.blocked_since is not None and loop.time() - listener.blocked_since > STUCK:
            return HUNG_UP
        if not listener.look.is_set() and loop.time() - looked < LOOK_AGAIN:
            continue
        listener.look.clear()
        try:
            await stream.look_again(listener)
            looked = loop.time()
        except KubeError:
            if loop.time() - looked > STUCK:
                return AWAY
            await asyncio.sleep(GLANCE)
