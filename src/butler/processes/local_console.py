"""The console as part of `butleradm local up`: the server in the same process, on the port of last time if it is free.

Imported only where the console is served: the server's libraries take a good part of a second to load.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from butler.kube.client import Client
from butler.kube.errors import NotFound
from butler.kube.resource import CONFIGMAPS
from butler.local.control_plane import HOME_NAMESPACE, HOST, NotStarted
from butler.local.directory import AUDIT_FILES_KEPT
from butler.processes.local_welcome import ConsoleAddress
from butler.server.access.links import ADDRESS, GOOD_FOR
from butler.server.access.records import NAMESPACE
from butler.server.audit import attach_file, lines
from butler.server.process import Running, Settings, running
from butler.server.static import find_console

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from butler.kube.config import Connection


@contextlib.asynccontextmanager
async def serving(connection: Connection, port: int, record: Path, *, world: bool) -> AsyncIterator[ConsoleAddress]:
    """Serve the console until the block ends; NotStarted when the port that was asked for cannot be had.

    What people do is recorded in the file `record`, and not on the terminal, which tells of the demo.
    """
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(_recording(record))
        up = await _begin(stack, connection, port, world=world)
        link = await up.one_time_link()
        minutes = int(GOOD_FOR.total_seconds() // 60)
        yield ConsoleAddress(up.url, link, minutes, built=(find_console() / "index.html").exists())


@contextlib.contextmanager
def _recording(file: Path) -> Iterator[None]:
    handler = attach_file(file, kept=AUDIT_FILES_KEPT)
    lines.propagate = False
    try:
        yield
    finally:
        lines.propagate = True
        lines.removeHandler(handler)
        handler.close()


async def _begin(stack: contextlib.AsyncExitStack, connection: Connection, port: int, *, world: bool) -> Running:
    for candidate in (port,) if port else (await _last_port(connection), 0):
        settings = Settings(home=HOME_NAMESPACE, host=HOST, port=candidate, world=world, local=True)
        try:
            return await stack.enter_async_context(running(connection, settings))
        except OSError as error:
            why = error.strerror
    raise NotStarted(
        f"port {port} on {HOST} cannot be had for the console ({why}):"
        " give another with --console-port, or leave it out"
    )


async def _last_port(connection: Connection) -> int:
    """The port that an earlier run used, so that a page that is open finds it again; 0: unknown."""
    async with Client(connection) as client:
        try:
            found = await client.get(CONFIGMAPS, ADDRESS, NAMESPACE)
        except NotFound:
            return 0
    try:
        return urlsplit((found.get("data") or {}).get("url") or "").port or 0
    except ValueError:
        return 0
