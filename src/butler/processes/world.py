"""`butleradm local world`: the stand-ins as a process of their own, against any management cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from butler.kube import config
from butler.kube.client import Client
from butler.kube.errors import ConfigError, KubeError
from butler.kube.metrics import Metrics
from butler.local.control_plane import ControlPlane, NotStarted, start
from butler.local.world.world import NAME, LocalWorld
from butler.processes.open_files import allow_many_connections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.kube.config import Connection
    from butler.local.world.settings import WorldSettings

DEFAULT_DATA_DIR = Path("~/.butler/world")
CONNECTIONS = 32
PATIENCE = 5.0
GRACE = 3.0
"""Seconds to end in good order; a management cluster that does not answer must not keep the process from ending."""

log = logging.getLogger(__name__)


def run_world(
    kubeconfig: str | None,
    context: str | None,
    data_dir: str | None,
    port: int,
    settings: WorldSettings,
    *,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run until a signal says to stop; leaves with code 1 and one sentence if it cannot start."""
    level = logging.INFO if verbose else logging.WARNING
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    allow_many_connections()
    directory = Path(data_dir).expanduser() if data_dir else DEFAULT_DATA_DIR.expanduser()
    try:
        connection = config.load(kubeconfig, context)
        uvloop.run(_run(connection, directory, port, settings, quiet=quiet))
    except (ConfigError, NotStarted) as error:
        raise click.ClickException(str(error)) from None
    except KubeError as error:
        raise click.ClickException(f"the management cluster cannot be used: {error}") from None


async def _run(connection: Connection, directory: Path, port: int, settings: WorldSettings, *, quiet: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    tenants = await start(directory, port=port)
    try:
        async with running_world(connection, tenants, settings, stop):
            if not quiet and not stop.is_set():
                click.echo(_welcome(connection, tenants))
            await stop.wait()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await tenants.stop()


@contextlib.asynccontextmanager
async def running_world(
    connection: Connection, tenants: ControlPlane, settings: WorldSettings, stop: asyncio.Event
) -> AsyncIterator[None]:
    """The stand-ins in this process, ready before anything else happens; should they end by themselves, all stops."""
    metrics = Metrics()
    async with Client(
        connection, field_manager=NAME, user_agent=NAME, pool=CONNECTIONS, observe=metrics.observe_request
    ) as client:
        world = LocalWorld(client, tenants, settings, metrics=metrics)
        running = asyncio.create_task(world.run())
        running.add_done_callback(lambda _: stop.set())
        try:
            await _until_ready(world, stop)
            yield
        finally:
            world.stop()
            if not (await asyncio.wait({running}, timeout=GRACE))[0]:
                running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


async def _until_ready(world: LocalWorld, stop: asyncio.Event) -> None:
    """Wait, and say what for when it takes long: without Butler's own definitions, for one, nothing will come."""
    began = asyncio.get_running_loop().time()
    told = False
    while not stop.is_set() and not world.is_ready:
        await asyncio.sleep(0.01)
        if not told and asyncio.get_running_loop().time() - began > PATIENCE:
            told = True
            log.warning("still waiting for the management cluster: %s", "; ".join(world.why_unready()))


def _welcome(connection: Connection, tenants: ControlPlane) -> str:
    return f"""\
The world is up: stand-ins for Cluster API, Steward, machines, MetalLB and addons.

  management   {connection.server}
  tenants      {tenants.url}
  data         {tenants.directory}

Nothing here is real but the API: no machine is started anywhere. Ctrl-C stops it and keeps the data."""
