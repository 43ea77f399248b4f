"""The commands under `butleradm local`: starting the embedded control plane and telling what to do with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click
import uvloop

from butler import __version__
from butler.cli.controller import NAME, Process, build
from butler.cli.open_files import allow_many_connections
from butler.cli.world import running_world
from butler.controllers.loadbalancers.settings import LoadBalancerSettings
from butler.controllers.settings import IpamSettings
from butler.controllers.tenantcluster.settings import TenantSettings
from butler.kube import config
from butler.kube.client import Client
from butler.kube.metrics import Metrics
from butler.local.control_plane import ControlPlane, NotStarted
from butler.local.world.settings import WorldSettings
from butler.webhooks import registration
from butler.webhooks.admission import AdmissionSettings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEFAULT_DATA_DIR = Path("~/.butler/local")


def run_up(
    data_dir: str | None, port: int, *, controllers: bool, world: bool, shrink_after: float, quiet: bool
) -> None:
    """Run until a signal says to stop; leaves with code 1 and one sentence if it cannot start."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    allow_many_connections()
    directory = Path(data_dir).expanduser() if data_dir else DEFAULT_DATA_DIR.expanduser()
    tenants = TenantSettings(load_balancers=LoadBalancerSettings(grace=timedelta(seconds=shrink_after)))
    try:
        uvloop.run(_up(directory, port, controllers=controllers, world=world, tenants=tenants, quiet=quiet))
    except NotStarted as error:
        raise click.ClickException(str(error)) from None


async def _up(
    directory: Path, port: int, *, controllers: bool, world: bool, tenants: TenantSettings, quiet: bool
) -> None:
    began = time.monotonic()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    control_plane = await ControlPlane.start(directory, port=port)
    try:
        async with contextlib.AsyncExitStack() as parts:
            if world:
                connection = config.load(control_plane.kubeconfig)
                await parts.enter_async_context(running_world(connection, control_plane, WorldSettings(), stop))
            working = _controllers(control_plane, tenants, stop) if controllers else _without_controllers(control_plane)
            await parts.enter_async_context(working)
            if not quiet:
                seconds = time.monotonic() - began
                told = welcome(control_plane, seconds, kubectl=_kubectl(), controllers=controllers, world=world)
                click.echo(told)
            await stop.wait()
            if not quiet:
                click.echo("\nStopping; the data stays.")
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await control_plane.stop()


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
async def _without_controllers(control_plane: ControlPlane) -> AsyncIterator[None]:
    """Nobody answers for admission here: what an earlier run that was killed has registered would refuse everything."""
    async with Client(config.load(control_plane.kubeconfig)) as client:
        await registration.remove(client)
    yield


def _kubectl() -> str:
    """The machine's own where there is one, else the one that came with Butler."""
    return "kubectl" if shutil.which("kubectl") else str(Path(sys.executable).with_name("kubectl"))


def welcome(
    control_plane: ControlPlane, seconds: float, *, kubectl: str, controllers: bool = True, world: bool = True
) -> str:
    """What to know and what to try once it is up."""
    kubeconfig = control_plane.kubeconfig
    working = (
        "addresses, providers and tenant clusters" if controllers else "none (butleradm controller run starts them)"
    )
    around = "stand-ins for Cluster API, Steward, machines, MetalLB and addons" if world else "none"
    return f"""\
Butler {__version__} is up on this machine (ready in {seconds:.1f} s).

  API server   {control_plane.url}
  kubeconfig   {kubeconfig}
  data         {control_plane.directory}
  controllers  {working}
  world        {around}

Try it in another terminal:

  export KUBECONFIG={kubeconfig}
{_first_steps(kubectl, tenants=controllers and world)}

This control plane lives on one machine and is for trying out, development and tests.
Ctrl-C stops it and keeps the data."""


def _first_steps(kubectl: str, *, tenants: bool) -> str:
    """Eight clusters where there is somebody to build them, else a look around."""
    build = ("apply -f examples/eight-tenants", "get tenantclusters,networkpools --all-namespaces")
    look = ("api-resources --api-group=butler.butlerlabs.dev", "explain networkpool.spec")
    return "\n".join(f"  {kubectl} {line}" for line in (build if tenants else look))
