"""A client for each tenant cluster, and walls between them.

A tenant's API server belongs to the tenant: it may be down, slow, full of garbage or out to hurt us, and there are
hundreds. So each gets few connections, little time and little memory, is never followed to another address, and one
that does not answer is left alone for a while: until then a caller that asks for its client gets an error instead of
keeping a worker waiting that the next tenant needs. Clients are remembered by the TenantCluster's UID (names come
back, UIDs do not) and made anew when the kubeconfig Secret changes; the old one may finish what it is at.

The kubeconfig is not trusted (`butler.kube.untrusted_kubeconfig`): Steward writes it, but a user who may write Secrets
in the tenant's namespace must not thereby run commands or read files here. Its contents never appear in an error.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from butler.api.labels import FieldManager
from butler.api.objects import key_of, version_of
from butler.kube.client import Client
from butler.kube.config import from_text, rewritten
from butler.kube.errors import ConfigError, Unreachable
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json, Key
    from butler.kube.config import Connection

ADMIN_CONF = "admin.conf"
ADMIN_SVC = "admin.svc"
"""The same administrator, by the Service's name inside the management cluster."""

SHORT_TIMEOUTS = Timeouts(connect=3.0, attempt=5.0, total=10.0)
REST = Backoff(first=0.5, cap=30.0)


@dataclass(frozen=True, slots=True)
class TenantLimits:
    """What one tenant may cost: connections, seconds, bytes of an answer, speed, and how long to leave it alone."""

    connections: int = 3
    """One for the watch of its feed, two for requests."""
    timeouts: Timeouts = SHORT_TIMEOUTS
    max_answer: int = 8 * 1024 * 1024
    stream_rate: int = 1024 * 1024
    """Bytes a second that its watches may say in the long run; what comes faster waits in the tenant's own socket."""
    keep_idle: float = 10.0
    """Seconds that an unused connection is kept: a thousand of them take 70 MB."""
    rest: Backoff = REST


class TenantResting(Unreachable):
    """The tenant did not answer a moment ago; it is asked again after `seconds`."""

    def __init__(self, text: str, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


def kubeconfig_secret(cluster_name: str) -> str:
    """The Secret in the tenant's namespace into which Steward writes the administrator's kubeconfig."""
    return f"{cluster_name}-admin-kubeconfig"


def connection_from(secret: Json, endpoint: str | None = None, *, in_cluster: bool = False) -> Connection:
    """The connection that a kubeconfig Secret describes; ConfigError, without its contents, when it is no use.

    `endpoint` is the URL of the tenant's API server by the word of the management cluster. A user who may write Secrets
    in a tenant's namespace must not make us ask other servers, so the kubeconfig has to lead there. None: it is not
    known, and only callers ask that were given the kubeconfig by the creator of the tenant.
    """
    connection, _ = _read(secret, in_cluster=in_cluster)
    if endpoint is not None:
        _check_endpoint(connection, endpoint, secret)
    return connection


def kubeconfig_from(secret: Json, endpoint: str, name: str) -> str:
    """The administrator's kubeconfig, to be handed on: written anew, with nothing in it but one way to one server."""
    connection, text = _read(secret)
    _check_endpoint(connection, endpoint, secret)
    return rewritten(text, source=f"Secret {key_of(secret)}", name=name)


def _check_endpoint(connection: Connection, endpoint: str, secret: Json) -> None:
    where = f"Secret {key_of(secret)}"
    host, port = _place(connection.server)
    if (host, port) != _place(endpoint):
        raise ConfigError(f"{where}: its kubeconfig leads to another server than status.controlPlaneEndpoint")
    if connection.insecure and not (host == "localhost" or host.startswith("127.") or host == "::1"):
        raise ConfigError(f"{where}: its kubeconfig would take any server for the tenant's (insecure-skip-tls-verify)")


def _place(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return (parts.hostname or "").lower(), parts.port or (80 if parts.scheme == "http" else 443)


def _read(secret: Json, *, in_cluster: bool = False) -> tuple[Connection, bytes]:
    where = f"Secret {key_of(secret)}"
    data = secret.get("data")
    data = data if isinstance(data, dict) else {}
    name = ADMIN_SVC if in_cluster and data.get(ADMIN_SVC) else ADMIN_CONF
    encoded = data.get(name)
    if not encoded:
        raise ConfigError(f"{where} has no {name}")
    try:
        text = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ConfigError(f"{where}: {name} is not base64") from None
    return from_text(text, source=f"{where}, {name}", allow_plain_loopback=True), text


class _Health:
    """Whether a tenant answers, learned from every attempt of its client."""

    def __init__(self, rest: Backoff, clock: Callable[[], float], rng: random.Random) -> None:
        self._rest, self._clock, self._rng = rest, clock, rng
        self._failures = 0
        self._until = 0.0

    def observe(self, code: str) -> None:
        """Any HTTP answer, even a refusal, is a sign of life."""
        if code != "error":
            self._failures, self._until = 0, 0.0
        elif self._clock() >= self._until:  # several requests that fail together are one failure
            self._until = self._clock() + self._rest.delay(self._failures, self._rng)
            self._failures += 1

    @property
    def left(self) -> float:
        """Seconds until it is worth asking again."""
        return max(0.0, self._until - self._clock())


@dataclass(slots=True)
class _Known:
    version: str
    client: Client
    health: _Health


class TenantClients:
    """The clients of all tenant clusters of this process. `aclose` it at the end, or use it with `async with`."""

    def __init__(
        self,
        endpoints: Callable[[str], str | None] | None = None,
        *,
        in_cluster: bool = False,
        limits: TenantLimits | None = None,
        clock: Callable[[], float] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """`endpoints` says by UID where a tenant's API server is; None: kubeconfigs are believed."""
        self._endpoints = endpoints
        self._in_cluster = in_cluster
        self._limits = limits or TenantLimits()
        self._clock = clock or (lambda: asyncio.get_running_loop().time())
        self._rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._known: dict[str, _Known] = {}
        self._leaving: dict[asyncio.Task[None], Client] = {}

    async def __aenter__(self) -> TenantClients:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def client(self, key: Key, uid: str, secret: Json) -> Client:
        """The client of the TenantCluster `key` with this UID, for what its kubeconfig Secret says now.

        ConfigError when the Secret is no use, TenantResting while the tenant is left alone after it did not answer.
        Ask for it in every reconcile and do not keep it: a changed Secret closes the client that came before.
        """
        known = self._current(uid, secret)
        if (left := known.health.left) > 0:
            raise TenantResting(f"tenant cluster {key} did not answer just now; asking again in {left:.0f} s", left)
        return known.client

    def restless(self, uid: str, secret: Json) -> Client:
        """The same client, whether the tenant answers or not: for who paces its own attempts. ConfigError as above."""
        return self._current(uid, secret).client

    def _current(self, uid: str, secret: Json) -> _Known:
        version = version_of(secret)
        known = self._known.get(uid)
        if known is None or known.version != version:
            endpoint = None
            if self._endpoints is not None and not (endpoint := self._endpoints(uid)):
                raise ConfigError(f"Secret {key_of(secret)}: where the tenant's API server is, is not known yet")
            connection = connection_from(secret, endpoint, in_cluster=self._in_cluster)  # before the old one goes
            if known is not None and known.client.connection == connection:
                known.version = version  # a user put a label on it: no reason to hang up
            else:
                self._leave(self._known.pop(uid, None))
                known = self._known[uid] = self._open(version, connection)
        return known

    def _open(self, version: str, connection: Connection) -> _Known:
        limits = self._limits
        health = _Health(limits.rest, self._clock, self._rng)
        client = Client(
            connection,
            field_manager=FieldManager.TENANTS,
            pool=limits.connections,
            streams_apart=False,
            keep_idle=limits.keep_idle,
            timeouts=limits.timeouts,
            attempts=2,
            max_answer=limits.max_answer,
            stream_rate=limits.stream_rate,
            rng=self._rng,
            user_agent="butler-tenants",
            observe=lambda _verb, _resource, code, _seconds: health.observe(code),
        )
        return _Known(version, client, health)

    def _leave(self, known: _Known | None) -> None:
        """Close a client in the background, when the requests under way are done; they are not given long."""
        if known is not None:
            task = asyncio.create_task(known.client.close(wait=self._limits.timeouts.total))
            self._leaving[task] = known.client
            task.add_done_callback(lambda done: self._leaving.pop(done, None))

    async def forget(self, uid: str) -> None:
        """The TenantCluster is gone, or its kubeconfig is: hang up. Unknown UIDs are fine."""
        known = self._known.pop(uid, None)
        if known is not None:
            await known.client.close()

    async def aclose(self) -> None:
        """Hang up everywhere, at once."""
        clients = [known.client for known in self._known.values()] + list(self._leaving.values())
        leaving = list(self._leaving)
        self._known.clear()
        for task in leaving:
            task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        await asyncio.gather(*(client.close() for client in clients))

    def __len__(self) -> int:
        return len(self._known)
