"""Requests of the stand-ins to tenants of their own process: function calls in place of a TLS connection to oneself.

Encrypting, sending, receiving and decrypting what never leaves the process was two thirds of what such a request cost.
Watches, and requests that are worth repeating, go over the network like those of anyone else, and so does everything
to a tenant that lives elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from butler.kube.errors import Unreachable, api_error
from butler.kube.retry import is_worth_repeating
from butler.kube.transport import ApiRequest, Transport, explain
from kubeserver import administrator_of

if TYPE_CHECKING:
    from butler.kube.config import Connection
    from kubeserver import ControlPlane, InProcessClient

CLUSTERS = "/clusters/"


def own_tenant(connection: Connection, kubeconfig: bytes, server: ControlPlane) -> InProcessClient | None:
    """The way into a tenant that lives in this process, by the kubeconfig that this process made; None: it does not."""
    start = f"{server.url}{CLUSTERS}"
    if not server.url or not connection.server.startswith(start):
        return None
    return administrator_of(server, connection.server.removeprefix(start), kubeconfig)


class OwnTenantTransport(Transport):
    """Asks `server` directly."""

    def __init__(self, connection: Connection, server: InProcessClient, **options: Any) -> None:
        super().__init__(connection, **options)
        self._prefix = connection.server[connection.server.index(CLUSTERS) :]
        self._server = server
        self._answering: set[asyncio.Task[tuple[int, bytes]]] = set()

    async def _send(self, request: ApiRequest, timeout: float | None) -> bytes:
        if self.is_closed:
            raise Unreachable(f"{request}: the client of {self.connection.source} was closed; ask for another one")
        answering = asyncio.create_task(
            self._server.exchange(
                request.method,
                f"{self._prefix}{request.path}",
                request.body or b"",
                query={name: str(value) for name, value in (request.params or {}).items() if value is not None},
                content_type=request.content_type,
            )
        )
        self._answering.add(answering)
        answering.add_done_callback(self._answering.discard)
        try:
            async with asyncio.timeout(self.timeouts.total if timeout is None else timeout):
                # Who leaves must not end the server's work half way.
                status, body = await asyncio.shield(answering)
        except TimeoutError as error:
            raise explain(error, request, self.connection) from error
        if status < 300:
            return body
        refusal = api_error(status, body, str(request), None)
        if is_worth_repeating(refusal, repeatable=request.repeatable):
            return await super()._send(request, timeout)
        raise refusal
