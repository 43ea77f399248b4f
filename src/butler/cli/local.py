"""The commands under `butleradm local`: starting the embedded control plane and telling what to do with it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import signal
import sys
import time
from pathlib import Path

import click
import uvloop

from butler import __version__
from butler.local.control_plane import ControlPlane, NotStarted

DEFAULT_DATA_DIR = Path("~/.butler/local")


def run_up(data_dir: str | None, port: int, *, quiet: bool) -> None:
    """Run until a signal says to stop; leaves with code 1 and one sentence if it cannot start."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    directory = Path(data_dir).expanduser() if data_dir else DEFAULT_DATA_DIR.expanduser()
    try:
        uvloop.run(_up(directory, port, quiet=quiet))
    except NotStarted as error:
        raise click.ClickException(str(error)) from None


async def _up(directory: Path, port: int, *, quiet: bool) -> None:
    began = time.monotonic()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    control_plane = await ControlPlane.start(directory, port=port)
    try:
        if not quiet:
            click.echo(welcome(control_plane, time.monotonic() - began, kubectl=_kubectl()))
        await stop.wait()
        if not quiet:
            click.echo("\nStopping; the data stays.")
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await control_plane.stop()


def _kubectl() -> str:
    """The machine's own where there is one, else the one that came with Butler."""
    return "kubectl" if shutil.which("kubectl") else str(Path(sys.executable).with_name("kubectl"))


def welcome(control_plane: ControlPlane, seconds: float, *, kubectl: str) -> str:
    """What to know and what to try once it is up."""
    kubeconfig = control_plane.kubeconfig
    return f"""\
Butler {__version__} is up on this machine (ready in {seconds:.1f} s).

  API server   {control_plane.url}
  kubeconfig   {kubeconfig}
  data         {control_plane.directory}

Try it in another terminal:

  export KUBECONFIG={kubeconfig}
  {kubectl} api-resources --api-group=butler.butlerlabs.dev
  {kubectl} explain networkpool.spec
  {kubectl} get networkpools,ipallocations --all-namespaces

This control plane lives on one machine and is for trying out, development and tests.
Ctrl-C stops it and keeps the data."""
