"""Connections at the edge: how many there may be, and how slow a client may be.

A request has so long to arrive and an answer so long to be taken, by the clock and not by the byte: a client that sends
or reads one byte a minute is hung up on. A live stream may be open for as long as its session lasts, as long as it is
read. All clients share one room: when it is full, or one address has its share of it, the oldest connection on which no
whole request has arrived gives way, of the address that has most. So half requests push out each other and no others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

HEAD_SECONDS: Final = 15.0
BODY_SECONDS: Final = 30.0
STALL_SECONDS: Final = 60.0
"""How long a client may take nothing of what there is for it."""
HANDSHAKE_SECONDS: Final = 10.0
HEAD_LIMIT: Final = 64 * 1024
WIRE_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of one request as they come, however they are cut; what a body may be is the application's to say."""
MOST: Final = 4_000
MOST_OF_ONE: Final = 1_000

log = logging.getLogger(__name__)
log.setLevel(
    logging.ERROR
)  # uvicorn has a line for every broken request and refused WebSocket: strangers would fill the log
_TOO_LARGE: Final = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
_FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 2\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class ClientConnection(Protocol):
    """What the room has to know of a connection."""

    def is_waiting(self) -> bool:
        """Whether no whole request is there that is being answered."""

    def hang_up(self) -> None: ...


class ConnectionLimits:
    """The connections that are open, by the address that opened them."""

    def __init__(
        self, most: int = MOST, most_of_one: int = MOST_OF_ONE, address: Callable[[str], str] = lambda peer: peer
    ) -> None:
        """`address` tells what of a peer's address counts as one."""
        self._most = most
        self._most_of_one = most_of_one
        self._address = address
        self._of: dict[str, dict[ClientConnection, None]] = {}
        self._where: dict[ClientConnection, str] = {}

    def __len__(self) -> int:
        return len(self._where)

    def enter(self, connection: ClientConnection, peer: str) -> bool:
        """Take a place; False where there is none and no connection gives way."""
        address = self._address(peer)
        if len(self._of.get(address, ())) >= self._most_of_one and not self._give_way(address):
            return False
        if len(self._where) >= self._most:
            most = max(self._of, key=lambda other: len(self._of[other]))
            if not self._give_way(most):
                return False
        self._of.setdefault(address, {})[connection] = None
        self._where[connection] = address
        return True

    def leave(self, connection: ClientConnection) -> None:
        address = self._where.pop(connection, None)
        if address is not None:
            of_one = self._of[address]
            del of_one[connection]
            if not of_one:
                del self._of[address]

    def _give_way(self, address: str) -> bool:
        for connection in self._of.get(address, ()):
            if connection.is_waiting():
                self.leave(connection)
                connection.hang_up()
                return True
        return False


class HttpConnection(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits."""

    room: ConnectionLimits
    _entered = False
    _deadline: asyncio.TimerHandle | None = None  # runs while a head or a body is awaited
    _stalled: asyncio.TimerHandle | None = None
    _has_head = False
    _bytes = 0  # of the request that is arriving

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.logger = log
        self._entered = self.room.enter(self, self.client[0] if self.client else "")
        if self._entered:
            self._await(HEAD_SECONDS)
        else:
            self._answer_and_close(_FULL)

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.leave(self)
        self._cancel()
        self._taken()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self._entered or self.transport.is_closing():
            return
        if self._deadline is None and not self._is_busy():
            self._await(HEAD_SECONDS)  # also for what does not begin a request, such as empty lines
        self._bytes += len(data)
        super().data_received(data)
        if self.parser is None or self.transport.is_closing():
            return
        if not self._has_head and self._bytes > HEAD_LIMIT and self._deadline is not None:
            self._answer_and_close(_TOO_LARGE)
        elif self._bytes > WIRE_LIMIT:
            self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._has_head = False

    def on_headers_complete(self) -> None:
        self._has_head = True
        self._cancel()
        self._await(BODY_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._cancel()
        self._has_head, self._bytes = False, 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._close_for_sure()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._close_for_sure()

    def handle_websocket_upgrade(self) -> None:
        self.room.leave(self)
        self._cancel()
        self._taken()
        super().handle_websocket_upgrade()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._taken()

    def is_waiting(self) -> bool:
        return self._deadline is not None or not self._is_busy()

    def hang_up(self) -> None:
        self.transport.abort()

    def _is_busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await(self, seconds: float) -> None:
        self._deadline = self._deadline or self.loop.call_later(seconds, self.transport.abort)

    def _cancel(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _taken(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _answer_and_close(self, answer: bytes) -> None:
        self.transport.write(answer)
        self.transport.close()
        self._close_for_sure()

    def _close_for_sure(self) -> None:
        """Closing waits until all is taken, which a client need not ever do."""
        self.loop.call_later(STALL_SECONDS, self.transport.abort)


class StreamConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol with limits. How many a person may have open is the stream's to say."""

    room: ConnectionLimits
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.logger = self.conn.logger = log
        self.room.enter(self, self.client[0] if self.client else "")  # it has just left, as a request

    def connection_lost(self, exc: Exception | None) -> None:
        self.room.leave(self)
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self._stalled or self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    async def send(self, message: Any) -> None:
        if self.close_sent and self.handshake_complete:
            raise ClientDisconnected  # as it soon will be: uvicorn would call it a mistake of ours
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # refused with an answer, which uvicorn forgets

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        # Closing waits until all is taken, which a client need not ever do.
        self.loop.call_later(STALL_SECONDS, self.transport.abort)

    def is_waiting(self) -> bool:
        return False

    def hang_up(self) -> None:
        self.transport.abort()


def protocols(room: ConnectionLimits) -> tuple[type[asyncio.Protocol], type[asyncio.Protocol]]:
    """The protocols of a server whose connections share a room: of HTTP, and of WebSockets."""
    made: Any = [type(kind.__name__, (kind,), {"room": room}) for kind in (HttpConnection, StreamConnection)]
    return cast("tuple[type[asyncio.Protocol], type[asyncio.Protocol]]", tuple(made))
