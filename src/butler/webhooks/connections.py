"""Connections to the admission server, and how many of them strangers may have.

Every client that reaches the port may connect, and the API server comes from the same address as every other process
of its machine. So a connection is a stranger's until a request under the secret path came on it (`knows`). Strangers
have a few seconds for the handshake and the head of a request, then they are hung up on; and there is room for so many
of them. One more makes the oldest go, of those of the address that has the most. An API server needs a few milliseconds
to make itself known, and keeps its connections: strangers can be many, and do not get in its way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

log = logging.getLogger(__name__)

STRANGERS: Final = 128
STRANGER_SECONDS: Final = 3.0
BACKLOG: Final = 512
OUT_OF_FILES: Final = 0.1


class _Stranger:
    """A connection of which nothing is known yet."""

    def __init__(self, peer: str, connection: socket.socket) -> None:
        self.peer = peer
        self.connection = connection
        self.protocol: asyncio.Protocol | None = None
        self.transport: asyncio.BaseTransport | None = None
        self.coming: asyncio.Task[None] | None = None

    def hang_up(self) -> None:
        if isinstance(self.transport, asyncio.Transport):
            self.transport.abort()
            return
        if self.coming is not None:
            self.coming.cancel()
        # Not closed: the event loop has it in its hands by now, and closes it when the handshake ends.
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


class Connections:
    """Listens, and hands connections over TLS to protocols."""

    def __init__(
        self,
        protocol: Callable[[], asyncio.Protocol],
        tls: ssl.SSLContext,
        *,
        strangers: int = STRANGERS,
        stranger_seconds: float = STRANGER_SECONDS,
    ) -> None:
        self._protocol = protocol
        self._tls = tls
        self._most = strangers
        self._seconds = stranger_seconds
        self._listening: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._strangers: dict[_Stranger, None] = {}
        """The oldest first."""
        self._of_peer: Counter[str] = Counter()
        self._by_protocol: dict[Any, _Stranger] = {}

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; the address. Raises OSError."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, proto, _, address = found[0]
        listening = socket.socket(family, kind, proto)
        try:
            listening.setblocking(False)
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(BACKLOG)
        except OSError as error:
            listening.close()
            why = (error.strerror or str(error)).lower()
            raise OSError(error.errno, f"admission cannot listen on {host} port {port}: {why}") from None
        self._listening = listening
        self._accepting = asyncio.create_task(self._accept(listening), name="admission-accept")
        name = listening.getsockname()
        return name[0], name[1]

    async def stop(self) -> None:
        """Take no more; strangers go at once."""
        if self._accepting is not None:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
            self._accepting = None
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for stranger in list(self._strangers):
            self._drop(stranger)

    def knows(self, protocol: object) -> None:
        """The connection of this protocol is no stranger's."""
        stranger = self._by_protocol.get(protocol)
        if stranger is not None:
            self._forget(stranger)

    @property
    def strangers(self) -> int:
        return len(self._strangers)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:
                # No file is left for it, or it went while it waited. What is left of those before goes in a moment.
                log.debug("a connection could not be taken: %s", error)
                await asyncio.sleep(OUT_OF_FILES)
                continue
            stranger = _Stranger(str(address[0]), connection)
            if len(self._strangers) >= self._most:
                self._drop(self._next_to_go())
            self._strangers[stranger] = None
            self._of_peer[stranger.peer] += 1
            stranger.coming = asyncio.create_task(self._receive(stranger))
            stranger.coming.add_done_callback(partial(_close_if_never_begun, stranger))
            loop.call_later(self._seconds, self._drop, stranger)

    def _next_to_go(self) -> _Stranger:
        (peer, _), *_ = self._of_peer.most_common(1)
        return next(stranger for stranger in self._strangers if stranger.peer == peer)

    async def _receive(self, stranger: _Stranger) -> None:
        def begin() -> asyncio.Protocol:
            # Known from here on: the first request may be answered before the handshake is reported below.
            stranger.protocol = self._protocol()
            self._by_protocol[stranger.protocol] = stranger
            return stranger.protocol

        try:
            stranger.transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                begin, stranger.connection, ssl=self._tls, ssl_handshake_timeout=self._seconds
            )
        except (OSError, TimeoutError):  # TLS errors are among them
            self._forget(stranger)

    def _drop(self, stranger: _Stranger) -> None:
        if stranger in self._strangers:
            self._forget(stranger)
            stranger.hang_up()

    def _forget(self, stranger: _Stranger) -> None:
        if stranger not in self._strangers:
            return
        del self._strangers[stranger]
        self._by_protocol.pop(stranger.protocol, None)
        self._of_peer[stranger.peer] -= 1
        if not self._of_peer[stranger.peer]:
            del self._of_peer[stranger.peer]


def _close_if_never_begun(stranger: _Stranger, _: asyncio.Task[None]) -> None:
    if stranger.protocol is None:
        stranger.connection.close()
