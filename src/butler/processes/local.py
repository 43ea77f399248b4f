"""The commands under `butleradm local`: starting the embedded control plane and telling what to do with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
import time
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from butler.kube import config
from butler.kube.client import Client
from butler.kube.metrics import Metrics
from butler.local.control_plane import ControlPlane, NotStarted, start
from butler.local.directory import AUDIT_FILE
from butler.local.world.settings import WorldSettings
from butler.processes.controller import NAME, Process, build
from butler.processes.garbage import keep_collections_short
from butler.processes.local_welcome import WelcomeFacts, kubectl, welcome
from butler.processes.open_files import allow_many_connections
from butler.processes.world import running_world
from butler.rules.loadbalancer.settings import LoadBalancerSettings
from butler.rules.pool.settings import IpamSettings
from butler.rules.tenant.settings import TenantSettings
from butler.webhooks import registration
from butler.webhooks.service import AdmissionSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DEFAULT_DATA_DIR = Path("~/.butler/local")
GRACE_SECONDS = 600.0
DEMO_GRACE_SECONDS = 45.0
"""Added addresses go back soon enough for a user who watches."""


@dataclass(frozen=True, slots=True)
class Up:
    """What is started."""

    directory: Path
    port: int = 0
    controllers: bool = True
    world: bool = True
    console: bool = True
    console_port: int = 0
    demo: bool = False
    shrink_after: float | None = None
    """None: as long as suits, with the demo and without."""
    quiet: bool = False

    @property
    def grace(self) -> float:
        usual = DEMO_GRACE_SECONDS if self.demo else GRACE_SECONDS
        return usual if self.shrink_after is None else self.shrink_after


def data_dir(given: str | None) -> Path:
    return Path(given).expanduser() if given else DEFAULT_DATA_DIR.expanduser()


def run_up(wanted: Up) -> None:
    """Run until a signal says to stop; leaves with code 1 and one sentence if it cannot start."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    allow_many_connections()
    try:
        uvloop.run(_up(wanted))
    except NotStarted as error:
        raise click.ClickException(str(error)) from None


async def _up(wanted: Up) -> None:
    began = time.monotonic()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    control_plane = await start(wanted.directory, port=wanted.port)
    try:
        async with contextlib.AsyncExitStack() as parts:
            await _start(wanted, control_plane, parts, stop, began)
            keep_collections_short()
            await stop.wait()
            if not wanted.quiet:
                click.echo("\nStopping; the data stays.")
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await control_plane.stop()


async def _start(
    wanted: Up, control_plane: ControlPlane, parts: contextlib.AsyncExitStack, stop: asyncio.Event, began: float
) -> None:
    """Everything beside the API server, each part before those that lean on it; what is last ends first."""
    connection = config.load(control_plane.kubeconfig)
    if wanted.world:
        await parts.enter_async_context(running_world(connection, control_plane, WorldSettings(), stop))
    working = _controllers(control_plane, _tenants(wanted), stop) if wanted.controllers else _without(control_plane)
    await parts.enter_async_context(working)
    console = None
    if wanted.console and not stop.is_set():
        # In a thread: the server's libraries take a while to load, and no client should have to wait for that.
        local_console = await asyncio.to_thread(import_module, "butler.processes.local_console")
        record = control_plane.directory / AUDIT_FILE
        serving = local_console.serving(connection, wanted.console_port, record, world=wanted.world)
        console = await parts.enter_async_context(serving)
    if not wanted.quiet:
        shown = WelcomeFacts(
            kubectl(), wanted.controllers, wanted.world, console, wanted.grace if wanted.demo else None
        )
        click.echo(welcome(control_plane, time.monotonic() - began, shown))
    if wanted.demo and not stop.is_set():
        from butler.local.demo.demo import DemoSettings, running_demo

        await parts.enter_async_context(running_demo(connection, DemoSettings(), _teller(wanted)))


def _teller(wanted: Up) -> Callable[[str], None]:
    def tell(sentence: str) -> None:
        if not wanted.quiet:
            click.echo(f"{time.strftime('%H:%M:%S')}  {sentence}")

    return tell


def _tenants(wanted: Up) -> TenantSettings:
    return TenantSettings(load_balancers=LoadBalancerSettings(grace=timedelta(seconds=wanted.grace)))


@contextlib.asynccontextmanager
async def _controllers(
    control_plane: ControlPlane, tenants: TenantSettings, stop: asyncio.Event
) -> AsyncIterator[None]:
    """Butler's controllers and admission in this process, ready before anything else happens.

    No lease: on one data directory there is one process. Should they end by themselves, all of it stops: a control
    plane that looks alive and grants nothing is worse than none.
    """
    metrics = Metrics()
    connection = config.load(control_plane.kubeconfig)
    process = Process(connection, IpamSettings(), AdmissionSettings(), lease_seconds=None, tenants=tenants)
    async with Client(connection, field_manager=NAME, observe=metrics.observe_request) as client:
        operator = build(process, client, metrics)
        running = asyncio.create_task(operator.run(handle_signals=False))
        running.add_done_callback(lambda _: stop.set())
        try:
            while not stop.is_set() and operator.why_unready():  # noqa: ASYNC110  # a state of many parts, once
                await asyncio.sleep(0.01)
            yield
        finally:
            operator.stop()
            await running


@contextlib.asynccontextmanager
async def _without(control_plane: ControlPlane) -> AsyncIterator[None]:
    """Remove the registration of webhooks that a killed run left: without a webhook it would refuse everything."""
    async with Client(config.load(control_plane.kubeconfig)) as client:
        await registration.remove(client)
    yield
