"""The server as part of a process: caches that follow Kubernetes, and an HTTP listener on top of them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

import uvicorn

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.metrics import Metrics
from butler.kube.operator import Operator
from butler.server.access.middleware import Who, knowing
from butler.server.acting import Acting
from butler.server.app import build
from butler.server.audit import Trail
from butler.server.feed import Feed
from butler.server.parts import Parts
from butler.server.shelves import Shelves
from butler.server.sight import Sight

NAME = "butler-server"


@dataclass(frozen=True, slots=True)
class Settings:
    """How it is served."""

    home: str = "butler-system"
    host: str = "127.0.0.1"
    port: int = 0
    world: bool = False


@dataclass(frozen=True, slots=True)
class Running:
    """A server that answers."""

    url: str
    operator: Operator
    parts: Parts


@contextlib.asynccontextmanager
async def running(connection: Connection, settings: Settings, who: Who) -> AsyncIterator[Running]:
    """Serve until the block ends; begins when everything has been read."""
    metrics = Metrics()
    async with Client(connection, field_manager=NAME, observe=metrics.observe_request) as client:
        operator = Operator(client, NAME, metrics=metrics)
        feed = Feed(operator, settings.home)
        acting = Acting(connection, Trail(client), feed)
        parts = Parts(feed, Sight(client, settings.home), acting, settings.home, Shelves(feed), world=settings.world)
        app = build(parts, middleware=[knowing(who)])
        listener = _listen(settings.host, settings.port)
        http = uvicorn.Server(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="on",
                ws_max_size=4096,
                server_header=False,
                timeout_graceful_shutdown=2,
            )
        )
        following = asyncio.create_task(operator.run(handle_signals=False))
        serving = asyncio.create_task(http.serve(sockets=[listener]))
        try:
            while not http.started or operator.why_unready():
                for task in (following, serving):
                    if task.done():
                        await task
                        raise RuntimeError("the server ended while it was starting")
                await asyncio.sleep(0.01)
            yield Running(f"http://{settings.host}:{listener.getsockname()[1]}", operator, parts)
        finally:
            http.should_exit = True
            operator.stop()
            await asyncio.gather(serving, following, return_exceptions=True)
            await acting.close()
            listener.close()


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
