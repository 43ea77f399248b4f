"""Calling a webhook over HTTPS.

One session per CA bundle, so connections are kept alive between writes; a handful of bundles, and those in use. A call
ends in time whatever the other side does: the whole exchange has a deadline and the answer a size limit. What went
wrong is told in the words of Go's HTTP client, because that is what people find when they search for it.

Each logical cluster has a client of its own: who may configure webhooks in one must not take connections, or the time
to read authorities, from the webhooks of another.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import socket
import ssl
from collections import OrderedDict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver

from kubeserver.wire.goformat import quote

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp.abc import ResolveResult

Json = dict[str, Any]

RESPONSE_LIMIT: Final = 3 * 1024 * 1024
_KEPT_SESSIONS: Final = 16


class CallFailed(Exception):
    """Why a webhook could not be asked, or gave no usable answer."""


class ServiceUnreachable(Exception):
    """Why no address is known for a Service."""


def no_service(namespace: str, name: str, port: int) -> tuple[str, int]:
    """The resolver of a server that knows no Service with anything behind it."""
    del namespace, port
    raise ServiceUnreachable(f'service "{name}" not found')


@dataclass(slots=True)
class _Kept:
    session: aiohttp.ClientSession
    users: int = field(default=0)


class WebhookClient:
    """`resolve(namespace, name, port)` says where a Service really listens, or raises ServiceUnreachable."""

    def __init__(self, resolve: Callable[[str, str, int], tuple[str, int]] = no_service) -> None:
        self._resolve = resolve
        self._sessions: OrderedDict[str, _Kept] = OrderedDict()  # by bundle, the last used at the end
        self._making = asyncio.Lock()

    async def post(self, config: Json, timeout: float, body: bytes) -> Json:
        """Send a review and return the decoded answer; raises CallFailed."""
        url, shown, server_name = self._address(config, timeout)
        bundle = str(config.get("caBundle") or "")
        try:
            async with asyncio.timeout(timeout), self._session(bundle) as session:
                answer = await self._exchange(session, url, body, server_name)
        except TimeoutError:
            raise CallFailed(f"failed to call webhook: Post {quote(shown)}: context deadline exceeded") from None
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            why = _in_go_words(error)
            raise CallFailed(f"failed to call webhook: Post {quote(shown)}: {why}") from None
        return answer

    def _address(self, config: Json, timeout: float) -> tuple[str, str, str | None]:
        """Where to connect, the address to show, and the name the certificate must be for."""
        query = f"?timeout={int(timeout)}s"
        if config.get("url"):
            url = f"{config['url']}{query}"
            return url, url, None
        service = config.get("service") or {}
        namespace, name = str(service.get("namespace", "")), str(service.get("name", ""))
        port = int(service.get("port") or 443)
        path = str(service.get("path") or "/")
        server_name = f"{name}.{namespace}.svc"
        shown = f"https://{server_name}:{port}/{path.lstrip('/')}{query}"
        try:
            host, real_port = self._resolve(namespace, name, port)
        except ServiceUnreachable as why:
            raise CallFailed(f"failed to call webhook: Post {quote(shown)}: {why}") from None
        return f"https://{host}:{real_port}/{path.lstrip('/')}{query}", shown, server_name

    async def _exchange(self, session: aiohttp.ClientSession, url: str, body: bytes, server_name: str | None) -> Json:
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*"}
        async with session.post(
            url, data=body, headers=headers, server_hostname=server_name, allow_redirects=False
        ) as response:
            data = await _limited(response)
        if response.status >= 300:
            is_text = response.headers.get("Content-Type", "text/").startswith("text/")
            said = data[:1024].decode(errors="replace").strip() if is_text else "unknown"
            raise CallFailed(f"failed to call webhook: {_status_words(response.status, said)}")
        try:
            return msgspec.json.decode(data, type=dict[str, Any])
        except msgspec.DecodeError as error:
            raise CallFailed(f"failed to call webhook: couldn't get version/kind; json parse error: {error}") from None

    @asynccontextmanager
    async def _session(self, bundle: str) -> AsyncIterator[aiohttp.ClientSession]:
        if bundle not in self._sessions:
            async with self._making:  # one after the other: to read authorities takes up to a tenth of a second
                if bundle not in self._sessions:
                    context = await asyncio.to_thread(_trusting, bundle)
                    self._sessions[bundle] = _Kept(_new_session(context))
        kept = self._sessions[bundle]
        self._sessions.move_to_end(bundle)
        kept.users += 1
        try:
            yield kept.session
        finally:
            kept.users -= 1
            await self._forget_oldest()

    async def _forget_oldest(self) -> None:
        idle = [bundle for bundle, kept in self._sessions.items() if not kept.users]
        leaving = [self._sessions.pop(bundle) for bundle in idle[: max(0, len(self._sessions) - _KEPT_SESSIONS)]]
        for kept in leaving:
            await kept.session.close()

    async def close(self) -> None:
        sessions = [kept.session for kept in self._sessions.values()]
        self._sessions.clear()
        for session in sessions:
            await session.close()


class _Lookup(AbstractResolver):
    """Name lookups in a thread; aiohttp's own choice depends on what happens to be installed."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
        return [
            {
                "hostname": host,
                "host": str(address[0]),
                "port": int(address[1]),
                "family": each_family,
                "proto": proto,
                "flags": socket.AI_NUMERICHOST,
            }
            for each_family, _, proto, _, address in found
        ]

    async def close(self) -> None:
        return None


def _trusting(bundle: str) -> ssl.SSLContext:
    """TLS with the authorities of a bundle, or with those of the system. Raises CallFailed."""
    try:
        # Those of the system are many, so they are not read in vain.
        pem = base64.b64decode(bundle, validate=True).decode("ascii") if bundle else None
        context = ssl.create_default_context(cadata=pem)
    except (binascii.Error, ValueError, ssl.SSLError):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        raise CallFailed(f"could not get REST client: {why}") from None
    # From Python 3.13 on, checks that Go never makes and that certificates made by charts often fail.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _new_session(context: ssl.SSLContext) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(ssl=context, limit=64, resolver=_Lookup(), ttl_dns_cache=10)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None),  # the caller sets the deadline of the whole exchange
        auto_decompress=False,  # a small answer must not become a large one
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > RESPONSE_LIMIT:
            response.close()
            raise CallFailed(f"failed to call webhook: response body exceeds {RESPONSE_LIMIT} bytes")
    return bytes(data)


_STATUS_WORDS: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the server does not support the media type",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def _status_words(status: int, said: str) -> str:
    """What client-go says about an answer that is no answer; `said` is the webhook's own text."""
    if status == 403:
        return said
    if status in _STATUS_WORDS:
        return _STATUS_WORDS[status]
    if status >= 500:
        return f"an error on the server ({quote(said)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def _in_go_words(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_words(error.certificate_error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {error.host}: no such host"
    if isinstance(error, aiohttp.ClientSSLError):
        return f"remote error: tls: {error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        cause = error.os_error
        if isinstance(cause, ConnectionRefusedError):
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        return f"dial tcp {error.host}:{error.port}: connect: {cause.strerror or cause}"
    if isinstance(error, (aiohttp.ServerDisconnectedError, ConnectionResetError)):
        return "EOF"
    return str(error) or type(error).__name__


def _certificate_words(error: Exception) -> str:
    text = str(error)
    if "Hostname mismatch" in text or "IP address mismatch" in text or "doesn't match" in text:
        return f"tls: failed to verify certificate: x509: {getattr(error, 'verify_message', text)}"
    if "expired" in text:
        return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
