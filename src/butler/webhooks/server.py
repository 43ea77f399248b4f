"""HTTPS for admission: takes an API server's question, has it decided, and always answers in time.

One path, POST only. What is no question gets an HTTP error and a word on why; a question gets an AdmissionReview,
also when the rules fail or take too long: then the answer is a refusal that says to try again. Nothing that a
caller sends may end the process, hold a connection for ever or fill the memory.

The certificate is looked at again every few seconds, so that files that were replaced, or a certificate that was
renewed, are shown to the next connection without a restart. It listens on the loopback interface unless told
otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from typing import TYPE_CHECKING, Final

from aiohttp import web

from butler.webhooks import review
from butler.webhooks.certificates import Serving, Source, UnusableCertificate, load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from butler.webhooks.review import Answer, Question

log = logging.getLogger(__name__)

PATH: Final = "/admission"
BODY_LIMIT: Final = 8 << 20
"""A question holds an object twice, before and after; API servers take objects of at most 3 MB."""
READ_WITHIN: Final = 10.0
DECIDE_WITHIN: Final = 4.0
"""Less than the 5 seconds that the webhook configuration grants, so that our own words reach the user."""
LOOK_EVERY: Final = 5.0
MOST_AT_ONCE: Final = 64
GOODBYE: Final = 0.05


class AdmissionServer:
    """Serves `decide` over HTTPS; `async with`, or `start` and `stop`."""

    def __init__(
        self,
        decide: Callable[[Question], Awaitable[Answer]],
        certificates: Source,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        decide_within: float = DECIDE_WITHIN,
        look_every: float = LOOK_EVERY,
        on_authorities: Callable[[], None] = lambda: None,
    ) -> None:
        self.address: tuple[str, int] | None = None
        self.why_stale = ""
        self._decide = decide
        self._certificates = certificates
        self._host = host
        self._port = port
        self._decide_within = decide_within
        self._look_every = look_every
        self._on_authorities = on_authorities
        self._serving: Serving | None = None
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.minimum_version = ssl.TLSVersion.TLSv1_2
        self._runner: web.AppRunner | None = None
        self._looking: asyncio.Task[None] | None = None
        self._room = asyncio.Semaphore(MOST_AT_ONCE)

    @property
    def ca_bundle(self) -> bytes:
        """What callers are to trust, as PEM. Known once started; `on_authorities` is called when it changes."""
        assert self._serving is not None, "the server has not started"
        return self._serving.authorities

    @property
    def url(self) -> str:
        """Where a caller on this machine reaches it."""
        assert self.address is not None, "the server has not started"
        host, port = self.address
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (not bound here)
        return f"https://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    async def start(self) -> None:
        """Listen; raises when there is no certificate or the address cannot be had."""
        serving = await self._certificates.fetch()
        load(self._tls, serving)
        self._serving = serving
        app = web.Application(client_max_size=BODY_LIMIT)
        app.router.add_post(PATH, self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=2.0, keepalive_timeout=75.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port, ssl_context=self._tls).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self.address = runner.addresses[0][:2]
        self._looking = asyncio.create_task(self._keep_looking(), name="admission-certificate")

    async def stop(self) -> None:
        """Stop listening; questions under way are answered first."""
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None
        runner, self._runner = self._runner, None
        if runner is None:
            return
        assert runner.server is not None
        open_now = [connection.transport for connection in runner.server.connections]
        await runner.cleanup()
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

    async def _answer(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return _no(415, f"expected application/json, got {request.content_type[:64]!r}")
        if (request.content_length or 0) > BODY_LIMIT:
            return _too_large()
        async with self._room:
            try:
                async with asyncio.timeout(READ_WITHIN):
                    body = await request.read()
            except TimeoutError:
                return _no(408, f"the body did not come within {READ_WITHIN:.0f} seconds")
            except web.HTTPRequestEntityTooLarge:
                return _too_large()
            try:
                question = review.read(body)
            except review.BadReview as error:
                return _no(400, str(error))
            answer = await self._decided(question)
        return web.Response(body=review.write(question, answer), content_type="application/json")

    async def _decided(self, question: Question) -> Answer:
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
        before = self._serving
        serving = await self._certificates.fetch()
        if serving is before or serving == before:
            return
        load(self._tls, serving)
        self._serving = serving
        log.info("the admission webhooks show a new certificate")
        if before is None or serving.authorities != before.authorities:
            self._on_authorities()


def _too_large() -> web.Response:
    return _no(413, f"the body is larger than {BODY_LIMIT} bytes")


def _no(code: int, why: str) -> web.Response:
    return web.Response(status=code, text=why)


__all__ = ["PATH", "AdmissionServer", "UnusableCertificate"]
