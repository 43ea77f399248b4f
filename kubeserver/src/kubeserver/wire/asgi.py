"""HTTP at the edge: uvicorn's requests become ours, our answers become its, and nothing is decided in between.

The server listens with TLS and asks for a client certificate without insisting; who it names is put into the ASGI
scope by our protocol class, since ASGI itself does not carry it. Heads and bodies are read with a limit in bytes and
in time, and answers are sent only as fast as they are taken, so neither a huge object nor a client that sends or reads
one byte a minute takes more than its share.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl
from uuid import uuid4

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kubeserver.storage.store import StoreError
from kubeserver.wire.messages import LARGE, ClientLeft, Response, Stream, respond
from kubeserver.wire.status import ApiError, bad_request, internal

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable

    from kubeserver.server import ApiServer

log = logging.getLogger(__name__)

Scope = dict[str, Any]
Message = dict[str, Any]

BODY_LIMIT: Final = 3 * 1024 * 1024
HEAD_LIMIT: Final = 1024 * 1024  # as Go's servers
_HANDSHAKE_SECONDS: Final = 10.0
_HEAD_SECONDS: Final = 32.0  # as kube-apiserver
_BODY_SECONDS: Final = 60.0
_STALL_SECONDS: Final = 60.0  # how long a client may read nothing at all of what we have for it
_KEEP_ALIVE_SECONDS: Final = 180
_STOP_SECONDS: Final = 3

_SKIPPED: Final = 256 * 1024  # bytes of an unwanted body that are read to keep a connection, as in Go
_PIECE: Final = 256 * 1024  # of an answer, sent at once

CERTIFICATE: Final = "kubeserver.certificate"
_ABORT: Final = "kubeserver.abort"
GONE: Final = "kubeserver.gone"
_TOO_MANY_DIGITS: Final = "integer string conversion"  # what Python says of a number that takes long to read
_HEAD_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"Connection: close\r\n\r\n431 Request Header Fields Too Large"
)


class Protocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which also limits the heads of requests and tells whom a client's certificate names."""

    _subject: tuple[tuple[str, str], ...] = ()
    _patience: asyncio.TimerHandle | None = None  # runs while a head is awaited
    _head = 0  # bytes of it so far

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._await_head()
        certificate = transport.get_extra_info("peercert") or {}
        self._subject = tuple(pair for group in certificate.get("subject", ()) for pair in group)

    def connection_lost(self, exc: Exception | None) -> None:
        self._have_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._patience is not None:
            self._head += len(data)
            if self._head > HEAD_LIMIT:
                self._have_head()
                self.transport.write(_HEAD_TOO_LARGE)
                self.transport.close()
        if not self.transport.is_closing():
            super().data_received(data)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._await_head()
        self.scope[CERTIFICATE] = self._subject  # type: ignore[typeddict-unknown-key]
        self.scope[_ABORT] = self.transport.abort  # type: ignore[typeddict-unknown-key]
        self.scope[GONE] = self.transport.is_closing  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._have_head()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._have_head()
        self._head = 0
        self._patience = self.loop.call_later(_HEAD_SECONDS, self.transport.close)

    def _have_head(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: the process that runs this server decides when to stop."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # As uvicorn does it for sockets that it is given, but that a half handshake is not kept for a minute: each is
        # 50 kB, and every client that reaches the port can begin thousands.
        await self.lifespan.startup()
        config, loop = self.config, asyncio.get_running_loop()

        def connection() -> asyncio.Protocol:
            kind: Any = config.http_protocol_class
            made: asyncio.Protocol = kind(config=config, server_state=self.server_state, app_state=self.lifespan.state)
            return made

        self.servers = [
            await loop.create_server(
                connection, sock=each, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=_HANDSHAKE_SECONDS
            )
            for each in sockets or ()
        ]
        self.started = True


def http_server(app: Any, tls: ssl.SSLContext) -> HttpServer:
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,  # as Kubernetes does; clients compare clocks by it
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    config.load()
    config.ssl = tls
    return HttpServer(config)


class Edge:
    """The ASGI application."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        body = Body(scope["method"], dict(headers), receive, scope[GONE])
        try:
            query = _query(scope["query_string"])
            path = scope["raw_path"].decode("latin-1")
            answer = await self._server.answer(scope["method"], path, query, headers, body, scope[CERTIFICATE])
        except ApiError as error:
            answer = refusal(error)
        except RecursionError:
            answer = refusal(bad_request("the body of the request is nested too deeply"))
        except StoreError as error:
            answer = refusal(internal(str(error)))
        except ClientLeft:
            return
        except Exception as error:
            if isinstance(error, ValueError) and _TOO_MANY_DIGITS in str(error):
                answer = refusal(bad_request("a number in the request has thousands of digits"))
            else:
                log.exception("%s %s failed", scope["method"], scope["path"])
                answer = refusal(ApiError(500, "InternalError", "Internal error occurred: see the server's log"))
        if body.in_the_way:
            answer.headers.append(("Connection", "close"))
        try:
            if isinstance(answer, Stream):
                await _send_stream(answer, receive, send)
            else:
                await _send(answer, send, head=scope["method"] == "HEAD")
        except TimeoutError:
            scope[_ABORT]()  # closing would wait for the client to take what it does not take
            await _until_client_leaves(receive)


def refusal(error: ApiError) -> Response:
    answer = respond(error.code, error.status())
    answer.headers += list(error.headers.items())
    return answer


def _query(raw: bytes) -> dict[str, str]:
    if not raw:
        return {}
    found: dict[str, str] = {}
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True, encoding="utf-8", errors="replace"):
        found.setdefault(name, value)
    return found


class Body:
    """What a client sends behind its head, read when it is asked for, with a limit in bytes and in time."""

    def __init__(self, method: str, headers: dict[str, str], receive: Any, gone: Callable[[], bool]) -> None:
        self._receive = receive
        self.gone = gone
        announced = headers.get("content-length")
        self._size = int(announced) if announced else BODY_LIMIT if "transfer-encoding" in headers else 0
        self._left = self._size > 0
        self._taken = method not in ("GET", "HEAD")

    @property
    def large(self) -> bool:
        return self._taken and self._size > LARGE

    @property
    def in_the_way(self) -> bool:
        """Whether so much was left unread that the connection is of no use any more."""
        return self._left and self._size > _SKIPPED

    async def read(self) -> bytes:
        if not self._taken:
            return b""
        if self._size > BODY_LIMIT:
            raise _too_large()
        body = bytearray()  # and no list of pieces: a client may send one byte at a time
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                while True:
                    message = await self._receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    body += message.get("body", b"")
                    if len(body) > BODY_LIMIT:
                        raise _too_large()
                    if not message.get("more_body"):
                        self._left = False
                        return bytes(body)
        except TimeoutError:
            seconds = f"{_BODY_SECONDS:.0f}"
            raise bad_request(f"the body of the request did not arrive within {seconds} seconds") from None


def _too_large() -> ApiError:
    return ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")


def _headers(answer: Response | Stream) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", answer.content_type.encode()),
        (b"cache-control", b"no-cache, private"),
        (b"audit-id", str(uuid4()).encode()),
        *((name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in answer.headers),
    ]


async def _send(answer: Response, send: Any, *, head: bool) -> None:
    headers = [*_headers(answer), (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.code, "headers": headers})
    body = b"" if head else answer.body
    for start in range(0, len(body) or 1, _PIECE):
        async with asyncio.timeout(_STALL_SECONDS):
            piece = body if len(body) <= _PIECE else body[start : start + _PIECE]
            await send({"type": "http.response.body", "body": piece, "more_body": start + _PIECE < len(body)})


async def _send_stream(stream: Stream, receive: Any, send: Any) -> None:
    """Send chunks until they end or the client leaves, whichever comes first."""
    await send({"type": "http.response.start", "status": 200, "headers": _headers(stream)})
    sending = asyncio.create_task(_pump(stream, send))
    leaving = asyncio.create_task(_until_client_leaves(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            sending.result()
    finally:
        leaving.cancel()
        sending.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)
        await stream.chunks.aclose()  # type: ignore[attr-defined]  # every stream is an async generator


async def _pump(stream: Stream, send: Any) -> None:
    try:
        async for chunk in stream.chunks:
            async with asyncio.timeout(_STALL_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    except TimeoutError:
        raise  # without the last chunk, so that the client can tell
    except ClientLeft:
        return
    except Exception:
        log.exception("a watch ended early")
    await send({"type": "http.response.body", "body": b""})


async def _until_client_leaves(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
