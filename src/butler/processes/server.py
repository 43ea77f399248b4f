"""`butleradm server run`: the console's server as a process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from typing import TYPE_CHECKING

import click
import uvloop

from butler.kube import config
from butler.kube.errors import ConfigError, KubeError
from butler.processes.open_files import allow_many_connections
from butler.server import audit
from butler.server.access.links import GOOD_FOR
from butler.server.process import Settings, Unsafe, running, why_unsafe
from butler.server.static import find_console

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from butler.kube.config import Connection

log = logging.getLogger(__name__)


def run_server(
    kubeconfig: str | None,
    context: str | None,
    settings: Settings,
    *,
    explain: Callable[[KubeError, Connection], click.ClickException],
    audit_file: Path | None,
    verbose: bool,
) -> None:
    """Run until a signal says to stop; exits with code 1 and one sentence if it cannot start.

    `explain` words what the API server or the network says.
    """
    if not (settings.local or settings.local_admin or settings.oidc):
        raise click.UsageError(
            "there is no way to log in: give --oidc-issuer, --local-admin, or --local on one machine"
        )
    if why := why_unsafe(settings):
        raise click.UsageError(why)
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    try:
        connection = config.load(kubeconfig, context)
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
    allow_many_connections()
    try:
        if audit_file is not None:
            audit.attach_file(audit_file)
        with contextlib.suppress(KeyboardInterrupt):
            uvloop.run(_serve(connection, settings))
    except KubeError as error:
        raise explain(error, connection) from None
    except Unsafe as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot serve: {error.strerror or error}") from None


async def _serve(connection: Connection, settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    told = asyncio.create_task(stop.wait())
    async with contextlib.AsyncExitStack() as ends:
        serving = asyncio.create_task(ends.enter_async_context(running(connection, settings)))
        await asyncio.wait({serving, told}, return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():  # before it was up
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
            return
        up = serving.result()
        log.info("the console is at %s", up.url)
        if not (settings.console or find_console()).joinpath("index.html").exists():
            log.warning("its pages are not built yet: `make console` does it; the API is served all the same")
        passwords = up.services.logins.passwords
        if passwords is not None and not await passwords.is_set():
            log.warning(
                "no local administrator is known in namespace %s: `butleradm server password` makes one."
                " A password that an earlier Butler kept in %s is not read any more",
                settings.records,
                settings.home,
            )
        if settings.oidc is not None and not settings.oidc.claims.groups_prefix:
            log.warning(
                "--oidc-prefix is empty: who names groups at %s decides who is in every group of this cluster",
                settings.oidc.issuer,
            )
        if settings.local:
            minutes = int(GOOD_FOR.total_seconds() // 60)
            click.echo(f"Open this once, within {minutes} minutes:\n\n  {await up.one_time_link()}\n")
        ended = asyncio.create_task(up.over.wait())
        await asyncio.wait({told, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not stop.is_set():
            raise click.ClickException("the server ended by itself: its log says why")
