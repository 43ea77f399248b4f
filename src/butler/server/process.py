"""The server as part of a process: caches that follow Kubernetes, and an HTTP listener on top of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from litestar.types import ASGIApp

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.metrics import Metrics
from butler.kube.operator import Operator
from butler.server.access.guard import Guard, Who
from butler.server.access.links import Links, link_of, publish_address
from butler.server.access.logins import Logins
from butler.server.access.oidc import Oidc, OidcSettings
from butler.server.access.passwords import Passwords
from butler.server.access.public_url import PublicUrl, client_address, is_loopback
from butler.server.access.records import NAMESPACE
from butler.server.access.sessions import Lifetime, Sessions
from butler.server.access.store import open_store
from butler.server.actions.impersonation import Impersonator
from butler.server.app import build
from butler.server.audit import AuditTrail
from butler.server.cache.cluster_state import ClusterState
from butler.server.cache.list_items import ListItems
from butler.server.cache.pool_forecasts import PoolForecasts
from butler.server.certificate import keep_certificate
from butler.server.connections import HANDSHAKE_SECONDS, MOST, MOST_OF_ONE, ConnectionLimits, protocols
from butler.server.permissions import UserPermissions
from butler.server.rate_limit import Limit
from butler.server.routes import login_link, probes
from butler.server.services import Services, now
from butler.server.static import console_routes, find_console
from butler.server.stream.hub import StreamHub

NAME = "butler-server"


class _Http(uvicorn.Server):
    """uvicorn without its own signal handling, as the caller decides when to stop, and with little patience."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # As uvicorn does it for sockets that it is given, but that a half handshake is not kept for a minute.
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise RuntimeError("the server ended while it was starting")
        config, loop = self.config, asyncio.get_running_loop()
        patience = HANDSHAKE_SECONDS if config.ssl is not None else None

        def connection() -> asyncio.Protocol:
            kind: Any = config.http_protocol_class
            made: asyncio.Protocol = kind(config=config, server_state=self.server_state, app_state=self.lifespan.state)
            return made

        self.servers = [
            await loop.create_server(
                connection, sock=listener, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=patience
            )
            for listener in sockets or ()
        ]
        self.started = True


class Unsafe(Exception):
    """Settings under which no request should be served, in one sentence that says what to change."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is served."""

    home: str = "butler-system"
    records: str = NAMESPACE
    """Where sessions, links and the local administrator are kept."""
    host: str = "127.0.0.1"
    port: int = 0
    world: bool = False
    local: bool = False
    """One-time links are taken: a user who can make one is an administrator of this machine's control plane anyway."""
    local_admin: bool = False
    """The local administrator may log in with a password; `butleradm server password` makes one."""
    oidc: OidcSettings | None = None
    url: str = ""
    """What people type; needed behind a proxy and where the address says nothing. [default: host and port]"""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    behind_proxy: bool = False
    """A proxy speaks https to people and http to us."""
    lifetime: Lifetime = field(default_factory=Lifetime)
    console: Path | None = None
    """The built files of the console. [default: where they are]"""
    metrics_port: int | None = None
    requests_per_second: float = 500.0
    """How much one address may ask of one replica in the long run."""
    tries_per_minute: float = 12.0
    """How often one address may try to come in, in the long run."""
    connections: int = MOST
    """How many may be open at once."""


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    url: str
    operator: Operator
    services: Services
    over: asyncio.Event
    """Set when it ended by itself, which it never should: its caller should end, too."""

    async def one_time_link(self) -> str:
        """A link that opens the console once, within ten minutes, as the user that this server is to Kubernetes."""
        links = self.services.logins.links
        if links is None:
            raise Unsafe("this server takes no links: log in, or start it with --local")
        return link_of(self.url, await links.make())


@contextlib.asynccontextmanager
async def running(connection: Connection, settings: Settings, who: Who | None = None) -> AsyncIterator[Running]:
    """Serve until the block ends; begins when everything has been read. `who` replaces the sessions in tests."""
    if why := why_unsafe(settings):
        raise Unsafe(why)
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as ends:
        listener = ends.enter_context(contextlib.closing(_listen(settings.host, settings.port)))
        client = await ends.enter_async_context(Client(connection, field_manager=NAME, observe=metrics.observe_request))
        operator = Operator(client, NAME, metrics=metrics, host=settings.host, port=settings.metrics_port)
        state = ClusterState(operator, settings.home)
        where = PublicUrl(_url(settings, listener.getsockname()[1]), settings.behind_proxy)
        logins = await _logins(client, settings, where)
        permissions = UserPermissions(client, settings.home)
        impersonator = Impersonator(connection, AuditTrail(client), state, permissions)
        list_items = ListItems(state)
        stream = StreamHub(state, permissions, list_items)
        services = Services(
            state=state,
            permissions=permissions,
            impersonator=impersonator,
            home=settings.home,
            list_items=list_items,
            forecasts=PoolForecasts(state),
            logins=logins,
            stream=stream,
            world=settings.world,
        )
        files = console_routes(settings.console or find_console())
        app = build(services, outside=[login_link.router, probes.routes(operator), files])
        usual = Limit(burst=4 * settings.requests_per_second, per_second=settings.requests_per_second)
        still = logins.sessions.still if who is None else None
        guard = Guard(app, where, who or logins.who, usual, still, logins.tell_forgery)
        http = _server(guard, settings, where)
        operator.add_service(logins.keep_sweeping)
        operator.add_service(lambda: keep_certificate(http.config, settings.tls_certificate, settings.tls_key))
        operator.add_service(stream.run)
        following = asyncio.create_task(operator.run(handle_signals=False))
        serving = asyncio.create_task(http.serve(sockets=[listener]))
        try:
            while not http.started or operator.why_unready():
                for task in (following, serving):
                    if task.done():
                        await task
                        raise RuntimeError("the server ended while it was starting")
                await asyncio.sleep(0.01)
            if settings.local:
                await publish_address(client, settings.records, where.url)
            over = asyncio.Event()
            for task in (following, serving):
                task.add_done_callback(lambda _: over.set())
            yield Running(where.url, operator, services, over)
        finally:
            http.should_exit = True
            operator.stop()
            await asyncio.gather(serving, following, return_exceptions=True)
            await impersonator.close()


def why_unsafe(settings: Settings) -> str:
    """What is wrong with the settings, or nothing. Pure."""
    at, host = urlsplit(settings.url), settings.host
    encrypted = settings.tls_certificate is not None or settings.behind_proxy
    if settings.records == settings.home:
        return (
            f"sessions cannot be kept in {settings.home}: who may write Secrets there, such as credentials of"
            " providers, could let themselves in; give --records-namespace one of its own"
        )
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        return "a certificate needs its key, and a key its certificate: give both --tls-cert and --tls-key"
    if settings.url and not (at.scheme in ("https", "http") and at.hostname):
        return f"{settings.url} is no address of a web page: begin it with https:// and a name"
    if at.path.strip("/") or at.query or at.fragment:
        return f"{settings.url}: the console has a host of its own and no path there: give it without"
    if not encrypted and not is_loopback(host):
        return (
            f"on {host} others could read along: give --tls-cert and --tls-key, put a proxy before it and say"
            " --behind-proxy, or serve 127.0.0.1"
        )
    if not settings.url and (settings.behind_proxy or host in ("0.0.0.0", "::")):  # noqa: S104
        return "the server has to know what people type: give --url https://..."
    if settings.url and (at.scheme == "https") != encrypted:
        return f"{settings.url} does not fit: https needs --tls-cert or --behind-proxy, and these need https"
    if settings.local and (settings.behind_proxy or not is_loopback(host)):
        return "one-time links are for one machine: leave out --local, or serve 127.0.0.1"
    return ""


async def _logins(client: Client, settings: Settings, where: PublicUrl) -> Logins:
    store = await open_store(client, settings.records)
    return Logins(
        where,
        Sessions(store, lifetime=settings.lifetime, links=settings.local, now=now),
        Links(store, now=now) if settings.local else None,
        Passwords(store, now=now) if settings.local_admin else None,
        Oidc(store, settings.oidc, where.url, now=now) if settings.oidc else None,
        tries=Limit(burst=max(20.0, settings.tries_per_minute), per_second=settings.tries_per_minute / 60),
        now=now,
    )


def _url(settings: Settings, port: int) -> str:
    if settings.url:
        return settings.url.rstrip("/")
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{'https' if settings.tls_certificate else 'http'}://{host}:{port}"


def _server(app: ASGIApp, settings: Settings, where: PublicUrl) -> uvicorn.Server:
    # Behind a proxy all clients come from one address, and the proxy's share is all there is.
    of_one = settings.connections if settings.behind_proxy else min(settings.connections, MOST_OF_ONE)
    room = ConnectionLimits(settings.connections, of_one, lambda peer: client_address(where, peer, None))
    http, stream = protocols(room)
    return _Http(
        uvicorn.Config(
            app,
            http=http,
            ws=stream,
            log_config=None,
            access_log=False,
            lifespan="on",
            ws_max_size=4096,
            ws_per_message_deflate=False,  # frames are small, and made once for all
            server_header=False,
            proxy_headers=False,  # whom to believe is settled in access/where.py
            timeout_graceful_shutdown=2,
            ssl_certfile=settings.tls_certificate,
            ssl_keyfile=settings.tls_key,
        )
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener
