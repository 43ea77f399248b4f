"""HTTPS for admission: takes an API server's question, has it decided, and always answers in time.

A client that asks under the secret path (`paths`) is an API server. Every other client gets a bare 404, whatever it
asks, and is hung up on: answers name pools, allocations and addresses. An API server that sends what is no question
gets an HTTP error with the reason; a question gets an AdmissionReview, also when the rules fail or take too long: then
the answer is a refusal that says to try again. Nothing that a caller sends may end the process, hold a connection for
ever or fill the memory (`connections`), and only a question that has come whole takes a place among those that are
decided.

The certificate is looked at again every few seconds, so that files that were replaced, or a certificate that was
renewed, are shown to the next connection without a restart. It listens on the loopback interface unless told
otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import logging
import ssl
from typing import TYPE_CHECKING, Any, Final

from aiohttp import web

from butler.webhooks import review
from butler.webhooks.certificates import Serving, Source, UnusableCertificate, load
from butler.webhooks.connections import STRANGER_SECONDS, STRANGERS, Connections
from butler.webhooks.secret_path import PREFIX, OwnPaths, Paths, PathSource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from butler.webhooks.review import AdmissionAnswer, Question

log = logging.getLogger(__name__)

BODY_LIMIT: Final = 16 << 20
"""A question holds an object twice, before and after. API servers take objects of at most 3 MB, and as JSON a text may
be twice as long as it was sent."""
READ_WITHIN: Final = 2.0
DECIDE_WITHIN: Final = 4.0
"""Less than the 5 seconds that the webhook configuration grants, so that our own words reach the user."""
LOOK_EVERY: Final = 5.0
MOST_AT_ONCE: Final = 64
SHUTDOWN: Final = 2.0
GOODBYE: Final = 0.05


class AdmissionServer:
    """Serves `decide` over HTTPS; `async with`, or `start` and `stop`."""

    def __init__(
        self,
        decide: Callable[[Question], Awaitable[AdmissionAnswer]],
        certificates: Source,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        decide_within: float = DECIDE_WITHIN,
        look_every: float = LOOK_EVERY,
        on_registration: Callable[[], None] = lambda: None,
        paths: PathSource | None = None,
        strangers: int = STRANGERS,
        stranger_seconds: float = STRANGER_SECONDS,
    ) -> None:
        """`on_registration` is called when what API servers are to be told changes: authorities or path."""
        self.address: tuple[str, int] | None = None
        self.why_stale = ""
        self.takes_bare_path = False
        """Whether the path of versions that had no secret is good as well, for the time of an upgrade."""
        self._decide = decide
        self._certificates = certificates
        self._host = host
        self._port = port
        self._decide_within = decide_within
        self._look_every = look_every
        self._on_registration = on_registration
        self._path_source = paths or OwnPaths()
        self._paths: Paths | None = None
        self._strangers = strangers
        self._stranger_seconds = stranger_seconds
        self._serving: Serving | None = None
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._http: web.Server | None = None
        self._connections: Connections | None = None
        self._looking: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(MOST_AT_ONCE)

    @property
    def ca_bundle(self) -> bytes:
        """What callers are to trust, as PEM. Known once started."""
        assert self._serving is not None, "the server has not started"
        return self._serving.authorities

    @property
    def url(self) -> str:
        """Where a caller on this machine reaches it, with the secret."""
        assert self.address is not None, "the server has not started"
        host, port = self.address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (not bound here)
        return f"https://{f'[{host}]' if ':' in host else host}:{port}{self.path}"

    @property
    def path(self) -> str:
        """The path that API servers are to ask, with the secret."""
        assert self._paths is not None, "the server has not started"
        return self._paths.path

    async def start(self) -> None:
        """Listen; raises when there is no certificate or the address cannot be had."""
        serving = await self._certificates.fetch()
        load(self._tls, serving)
        self._serving = serving
        self._paths = await self._path_source.fetch()
        http = web.Server(
            self._answer,
            request_factory=_bounded_request,
            access_log=None,
            keepalive_timeout=75.0,
            lingering_time=0.0,
        )
        connections = Connections(http, self._tls, strangers=self._strangers, stranger_seconds=self._stranger_seconds)
        self.address = await connections.start(self._host, self._port)
        self._http, self._connections = http, connections
        self._looking = asyncio.create_task(self._keep_looking(), name="admission-certificate")

    async def stop(self) -> None:
        """Stop listening; questions under way are answered first."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None
        http, self._http = self._http, None
        if http is None or self._connections is None:
            return
        await self._connections.stop()
        open_now = [connection.transport for connection in http.connections]
        http.pre_shutdown()
        await http.shutdown(SHUTDOWN)
        if open_now:
            # Callers keep connections open and answer a farewell late or never: the last words are out, so hang up.
            await asyncio.sleep(GOODBYE)
            for transport in open_now:
                if transport is not None:
                    transport.abort()
            await asyncio.sleep(0)

    async def __aenter__(self) -> AdmissionServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    # Questions.

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        if not self._is_from_api_server(request):
            return _nothing_here()
        assert self._connections is not None
        self._connections.knows(request.protocol)
        if request.content_type != "application/json":
            return _no(415, f"expected application/json, got {request.content_type[:64]!r}")
        if (request.content_length or 0) > BODY_LIMIT:
            return _too_large()
        try:
            async with asyncio.timeout(READ_WITHIN):
                body = await request.read()
        except TimeoutError:
            return _no(408, f"the body did not come within {READ_WITHIN:g} seconds")
        except web.HTTPRequestEntityTooLarge:
            return _too_large()
        try:
            question = review.read(body)
        except review.BadReview as error:
            refusal = review.unreadable(body, str(error))
            if refusal is None:
                return _no(400, str(error))
            return web.Response(body=refusal, content_type="application/json")
        async with self._room:
            answer = await self._decided(question)
        return web.Response(body=review.write(question, answer), content_type="application/json")

    def _is_from_api_server(self, request: web.BaseRequest) -> bool:
        assert self._paths is not None
        known = self._paths.knows(request.path, datetime.datetime.now(datetime.UTC))
        return request.method == "POST" and (known or (self.takes_bare_path and request.path == PREFIX))

    async def _decided(self, question: Question) -> AdmissionAnswer:
        try:
            async with asyncio.timeout(self._decide_within):
                return await self._decide(question)
        except TimeoutError:
            return review.undecided(question, f"it took longer than {self._decide_within:g} seconds")
        except Exception as error:
            # A rule that fails must not let the write through, and the reason belongs in our log, not in theirs.
            log.exception("%s of %s %s/%s", question.operation, question.resource, question.namespace, question.name)
            return review.undecided(
                question, f"the check itself failed ({type(error).__name__}, see the log of Butler)"
            )

    # Certificates.

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._look_every)
            try:
                await self._look()
                self.why_stale = ""
            except Exception as error:
                # Whatever it is, the certificate at hand still serves; say so once, not every few seconds.
                why = f"{type(error).__name__}: {error}"
                if why != self.why_stale:
                    log.warning("the certificate of the admission webhooks is kept as it is: %s", why)
                self.why_stale = why

    async def _look(self) -> None:
        before, path = self._serving, self.path
        serving, self._paths = await self._certificates.fetch(), await self._path_source.fetch()
        if serving is not before and serving != before:
            load(self._tls, serving)
            self._serving = serving
            log.info("the admission webhooks show a new certificate")
        if self.path != path or before is None or serving.authorities != before.authorities:
            self._on_registration()


def _bounded_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=BODY_LIMIT
    )


def _nothing_here() -> web.Response:
    """All that a stranger is told."""
    response = web.Response(status=404)
    response.force_close()
    return response


def _too_large() -> web.Response:
    return _no(413, f"the body is larger than {BODY_LIMIT} bytes")


def _no(code: int, why: str) -> web.Response:
    return web.Response(status=code, text=why)


__all__ = ["AdmissionServer", "UnusableCertificate"]
