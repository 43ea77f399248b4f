"""One HTTP exchange with an API server, repeated where that is safe. The client speaks Kubernetes; this, HTTP.

Every request passes through `Transport.send`: credentials are added, one 401 renews them, refusals become typed
errors, and the rules of `retry` decide whether to ask again. Connections are kept alive in a pool of HTTP/1.1
connections (HTTP/2 buys nothing in Python), and watches have theirs beside it. The clock of a request covers all
its attempts, so that callers wait no longer than they asked. Redirects are refusals: credentials go nowhere else.
For servers that are not ours to trust: with `max_answer`, no answer takes more memory than that, and with `stream_rate`
no server keeps us busy by talking fast.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
import yarl

from butler.kube.credentials import ConnectionCredentials
from butler.kube.errors import ApiError, BadAnswer, KubeError, OutcomeUnknown, Unreachable, api_error
from butler.kube.retry import Allowance, Backoff, Budget, is_worth_repeating, pause

if TYPE_CHECKING:
    from butler.kube.config import Connection

Params = Mapping[str, str | int | None]
Observer = Callable[[str, str, str, float], None]
"""Told of every attempt: verb, resource, HTTP code (or the error's name), seconds."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to get a connection, for one attempt, and for the request with all its attempts."""

    connect: float = 5.0
    attempt: float = 20.0
    total: float = 45.0


DEFAULT_TIMEOUTS = Timeouts()
DEFAULT_BACKOFF = Backoff()
LONGEST_REFUSAL = 32 * 1024


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What is sent, and what a log or a metric calls it."""

    verb: str
    method: str
    path: str
    resource: str = ""
    params: Params | None = None
    body: bytes | None = field(default=None, repr=False)  # it may hold secrets
    content_type: str = "application/json"
    repeatable: bool = False

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"


def ignore(verb: str, resource: str, code: str, seconds: float) -> None:
    """An observer for those who do not count."""


class Transport:
    """A pool of connections to one API server, with credentials and patience."""

    def __init__(
        self,
        connection: Connection,
        *,
        pool: int = 48,
        streams_apart: bool = True,
        keep_idle: float = 60.0,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
        attempts: int = 5,
        max_answer: int | None = None,
        stream_rate: int | None = None,
        backoff: Backoff = DEFAULT_BACKOFF,
        user_agent: str = "butler",
        observe: Observer = ignore,
        rng: random.Random | None = None,
    ) -> None:
        self.connection = connection
        self.timeouts = timeouts
        self.max_answer = max_answer  # bytes of one answer, or of one line of a watch
        # Bytes a second of all streams, with one line of the longest in advance; each line counts a bit more.
        self.allowance = None if stream_rate is None else Allowance(stream_rate, max_answer or 8 * stream_rate)
        self._credentials = ConnectionCredentials(connection)
        self._pool = pool
        self._streams_apart = streams_apart
        self._keep_idle = keep_idle
        self._attempts = attempts
        self._backoff = backoff
        self._budget = Budget()
        self._user_agent = user_agent
        self._observe = observe
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._sessions: dict[bool, aiohttp.ClientSession] = {}  # one for streams, one for all else
        self._closed = False
        self._answers: set[aiohttp.ClientResponse] = set()  # that are being read
        self._under_way = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def is_closed(self) -> bool:
        return self._closed

    async def close(self, *, wait: float = 0.0) -> None:
        """Take no new requests, give those under way so many seconds to end, and hang up. Streams are cut off."""
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait):
                await self._idle.wait()
        for answer in list(self._answers):
            # aiohttp hangs up without a word to who reads a stream, and would leave it waiting for ever.
            answer.content.set_exception(aiohttp.ClientConnectionError("the client was closed"))
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    async def send(self, request: ApiRequest, *, timeout: float | None = None) -> bytes:
        """The body of a successful answer, or a typed error."""
        self._under_way += 1
        self._idle.clear()
        try:
            return await self._send(request, timeout)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._idle.set()

    async def _send(self, request: ApiRequest, timeout: float | None) -> bytes:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self.timeouts.total if timeout is None else timeout)
        renewed = False
        attempt = 0
        while True:
            left = max(0.001, deadline - loop.time())
            limits = aiohttp.ClientTimeout(
                total=min(left, self.timeouts.attempt), connect=min(left, self.timeouts.connect)
            )
            retry_after: float | None = None
            failure: KubeError
            try:
                async with _Answer(self, request, limits) as answer:
                    body = await self._read(answer, request)
                self._budget.earn()
                return body
            except ApiError as error:
                if error.code == 401 and not renewed and self._credentials.renewable:
                    renewed = True
                    continue
                if not is_worth_repeating(error, repeatable=request.repeatable):
                    raise
                retry_after, failure = error.retry_after, error
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failure = explain(error, request, self.connection)
                if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError):
                    raise failure from error
                if isinstance(failure, OutcomeUnknown) and not request.repeatable:
                    raise failure from error
            wait = pause(attempt, retry_after, self._backoff, self._rng)
            attempt += 1
            if attempt >= self._attempts or loop.time() + wait >= deadline or not self._budget.spend():
                raise failure
            await asyncio.sleep(wait)

    def stream(self, request: ApiRequest, *, silence: float) -> _Answer:
        """An answer to be read piece by piece, for as long as the server talks at least every `silence` seconds."""
        limits = aiohttp.ClientTimeout(
            total=None, connect=self.timeouts.connect, sock_connect=self.timeouts.connect, sock_read=silence
        )
        return _Answer(self, request, limits)

    def reads(self, answer: aiohttp.ClientResponse) -> None:
        """A caller reads this answer: `close` tells it."""
        self._answers.add(answer)

    def has_read(self, answer: aiohttp.ClientResponse) -> None:
        self._answers.discard(answer)

    async def _read(self, answer: aiohttp.ClientResponse, request: ApiRequest, at_most: int | None = None) -> bytes:
        if self.max_answer is None:
            return await answer.read()
        limit = min(at_most or self.max_answer, self.max_answer)
        body = bytearray()
        if (answer.content_length or 0) <= limit:
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > limit:
                    break
            else:
                return bytes(body)
        server = self.connection.server
        raise BadAnswer(f"{request}: {server} answered {answer.status} with more than {limit} bytes")

    async def open(self, request: ApiRequest, limits: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Send once; refusals are raised, other answers are returned for the caller to read and release."""
        if self._closed:
            raise Unreachable(f"{request}: the client of {self.connection.source} was closed; ask for another one")
        identity = await self._credentials.headers()
        shown = self._credentials.generation
        started = asyncio.get_running_loop().time()
        outcome = "error"
        try:
            response = await self._exchange(request, identity, limits)
            outcome = str(response.status)
            if response.status < 300:
                return response
            try:
                # Refusals end up in logs and conditions, so a stranger's has to be short.
                body = await self._read(response, request, LONGEST_REFUSAL)
            finally:
                response.close()  # a no-op for one that was read to its end
            if response.status == 401:
                self._credentials.forget(shown)
            raise api_error(
                response.status,
                body,
                str(request),
                response.headers.get("Retry-After"),
                foreign=self.max_answer is not None,
            )
        except (ssl.SSLError, aiohttp.ClientSSLError):
            self._credentials.forget_tls()
            raise
        finally:
            self._observe(request.verb, request.resource, outcome, asyncio.get_running_loop().time() - started)

    async def _exchange(
        self, request: ApiRequest, identity: list[tuple[str, str]], limits: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        query = urlencode({k: v for k, v in (request.params or {}).items() if v is not None})
        url = f"{self.connection.server}{request.path}"
        headers: list[tuple[str, str]] = [("Accept", "application/json"), *identity]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        context = self._credentials.tls()
        return await self._session(streams=limits.total is None).request(
            request.method,
            yarl.URL(f"{url}?{query}" if query else url, encoded=True),
            data=request.body,
            headers=headers,
            timeout=limits,
            ssl=context if context is not None else True,
            server_hostname=self.connection.server_name,
            proxy=self.connection.proxy,
            allow_redirects=False,
        )

    def _session(self, *, streams: bool) -> aiohttp.ClientSession:
        # A watch holds its connection for as long as it lives: in the pool, many would leave none for requests. Where
        # there are few, and clients by the thousand, a watch takes over the connection that its list came through.
        streams = streams and self._streams_apart
        session = self._sessions.get(streams)
        if session is None:
            limit = 0 if streams else self._pool
            session = self._sessions[streams] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=limit, keepalive_timeout=self._keep_idle, socket_factory=_kept_alive
                ),
                # Compression would cost the API server more CPU than it saves on a nearby network.
                headers={"User-Agent": self._user_agent, "Accept-Encoding": "identity"},
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
            # aiohttp would send a PUT or DELETE again on its own when a kept connection breaks: whether to repeat
            # a write is for `send` to decide, which knows what repeating it means.
            session._retry_connection = False  # noqa: SLF001  # there is no public switch; a test watches it
        return session


class _Answer:
    """`async with` around one response: released when read to its end, closed when left early."""

    def __init__(self, transport: Transport, request: ApiRequest, limits: aiohttp.ClientTimeout) -> None:
        self._transport = transport
        self._request = request
        self._limits = limits
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientResponse:
        self._response = await self._transport.open(self._request, self._limits)
        self._transport.reads(self._response)
        return self._response

    async def __aexit__(self, *raised: Any) -> None:
        if self._response is None:
            return
        self._transport.has_read(self._response)
        # A response that was read whole has given its connection back. One left early, such as a watch, is torn
        # down at once: a polite TLS farewell would wait for a peer that may be gone.
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._response.close()


def explain(error: Exception, request: ApiRequest, connection: Connection) -> Unreachable | OutcomeUnknown | BadAnswer:
    """Say in our terms what a failed exchange means: was the request sent or not."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError | ssl.SSLError):
        return Unreachable(f"{connection.server} ({connection.source}): TLS failed: {error}")
    never_sent = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientProxyConnectionError)
    what = str(error) or type(error).__name__
    if isinstance(error, aiohttp.ClientConnectorError):
        what = error.os_error.strerror or str(error.os_error)  # not with the address of an object in memory
    if isinstance(error, aiohttp.ClientPayloadError):
        what = "the connection broke off in the middle of it"  # the library quotes its own classes here
    if isinstance(error, never_sent):
        return Unreachable(f"{connection.server} ({connection.source}) cannot be reached: {what}")
    return OutcomeUnknown(f"{request}: sent to {connection.server}, but the answer did not come: {what}")


def _kept_alive(address: Any) -> socket.socket:
    """A socket whose peer is probed while idle, so that a vanished server is noticed in about 30 seconds."""
    sock = socket.socket(family=address[0], type=address[1], proto=address[2])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
    return sock
