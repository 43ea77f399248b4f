"""One cautious HTTP request to a provider's API.

Credentials travel with these requests, so: TLS is checked unless the administrator switched that off, no redirect is
followed, no cookie is kept, nothing is taken from the environment except the proxy that the operator of this process
has set. Answers are cut off where they grow too large, are not unpacked, and are waited for only a short time. What
went wrong is told in sentences that stay the same from one attempt to the next, because they end up in conditions,
and a condition that changes is a write.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
import yarl

from butler.kube.config import environment_proxy

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES: Final = 512 * 1024
CONNECT_SECONDS: Final = 4.0
TOTAL_SECONDS: Final = 8.0


class NoAnswer(Exception):
    """No server answered, or not in a way that could be read; the message is a sentence about the server."""


class Untrusted(NoAnswer):
    """A server answers, with a certificate that is not trusted."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. Its body may hold a token: keep it out of messages."""

    status: int
    body: bytes = field(repr=False)

    def json(self) -> Any:
        """The body as JSON; None where it is none."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.MsgspecError, RecursionError):
            return None

    def at(self, *path: str | int) -> Any:
        """A value inside a JSON body; None where it leads nowhere."""
        found = self.json()
        for step in path:
            if isinstance(found, dict) and isinstance(step, str):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found


@dataclass(frozen=True, slots=True)
class Patience:
    connect: float = CONNECT_SECONDS
    total: float = TOTAL_SECONDS


PATIENCE: Final = Patience()


async def ask(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    tls: ssl.SSLContext | None = None,
    server_name: str | None = None,
    patience: Patience = PATIENCE,
) -> Reply:
    """Send one request; raises `NoAnswer`."""
    where = _where(url)
    try:
        async with (
            aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                headers={"User-Agent": "butler", "Accept-Encoding": "identity"},
            ) as session,
            session.request(
                method,
                yarl.URL(url, encoded=True),
                headers=headers,
                data=body,
                ssl=tls or trust(),
                server_hostname=server_name,
                proxy=environment_proxy(url, os.environ),
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=patience.total, sock_connect=patience.connect),
            ) as response,
        ):
            return Reply(response.status, await _body(response, where))
    except NoAnswer:
        raise
    except aiohttp.ClientConnectorCertificateError as error:
        said = getattr(error.certificate_error, "verify_message", "") or "it cannot be verified"
        raise Untrusted(f"{where} shows a TLS certificate that is not trusted: {said}") from None
    except Exception as error:
        raise NoAnswer(_why(error, where, patience)) from None


async def _body(response: aiohttp.ClientResponse, where: str) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > MOST_BYTES:
            response.close()
            raise NoAnswer(f"{where} answers with more than {MOST_BYTES // 1024} KiB, which its API does not")
    return bytes(body)


def trust(authority: bytes | None = None, *, insecure: bool = False) -> ssl.SSLContext:
    """Whom to believe: the given authority, else the system's; everyone where that is asked for."""
    if insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
    if authority is None:
        return _system_trust()
    context = ssl.create_default_context(cadata=authority.decode("ascii", "ignore"))
    # The authorities that appliances make for themselves often lack what Python 3.13 began to insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


@lru_cache(maxsize=1)
def _system_trust() -> ssl.SSLContext:
    # Reading some hundred certificates takes tens of milliseconds, in which nothing else runs.
    return ssl.create_default_context()


def _where(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or url


def _why(error: Exception, where: str, patience: Patience) -> str:
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return f"{where} does not speak TLS as expected"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"{where} is a name that cannot be resolved"
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return f"{where} does not answer within {patience.total:.0f} seconds"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"{where} cannot be reached: {os.strerror(error.errno).lower() if error.errno else 'no connection'}"
    if isinstance(error, aiohttp.ClientError | OSError):
        return f"{where} breaks off before it has answered"
    # A value that cannot be put into a request: its text may hold what must not be told.
    return f"{where} could not be asked ({type(error).__name__})"
