"""`butleradm local status|down|reset`: the control plane of this machine, from another terminal."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from butler.cli.local import data_directory
from butler.cli.toolkit.exit_codes import Exit
from butler.cli.toolkit.output import age, structured
from butler.cli.toolkit.screen import facts
from butler.cli.toolkit.session import Failure
from butler.cli.toolkit.terminal import confirm, say

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from butler.cli.local.data_directory import Server
    from butler.cli.toolkit.output import Output

PATIENCE: Final = 3.0
"""Seconds for an answer of a control plane on the same machine."""
STATES: Final = {
    "up": Exit.OK,
    "starting": Exit.NOT_FOUND,
    "not answering": Exit.UNREACHABLE,
    "down": Exit.NOT_FOUND,
    "nothing there": Exit.NOT_FOUND,
}
"""What can be said of a data directory, and with which exit code."""
NAMES: Final = {
    "networkpools": "pools",
    "ipallocations": "allocations",
    "providerconfigs": "providers",
    "tenantclusters": "tenant clusters",
}
"""What people call the kinds, which JSON has under the names that the API has for them."""


@dataclass(frozen=True, slots=True)
class LocalStatus:
    """What is known of a data directory."""

    directory: Path
    state: str
    server: Server | None = None
    url: str = ""
    bytes: int = 0
    contents: Mapping[str, int] | None = None
    controllers: bool | None = None

    @property
    def exit_code(self) -> Exit:
        return STATES[self.state]


def look(given: str | None) -> LocalStatus:
    directory = data_directory.data_directory(given)
    server = data_directory.serving(directory)
    stored = data_directory.size(directory)
    if server is None:
        state = "down" if data_directory.is_data_directory(directory) else "nothing there"
        return LocalStatus(directory, state, bytes=stored)
    kubeconfig = directory / "kubeconfig"
    if not kubeconfig.exists():
        return LocalStatus(directory, "starting", server, bytes=stored)
    from butler.kube import config
    from butler.kube.errors import KubeError

    try:
        connection = config.load(kubeconfig)
        contents, controllers = asyncio.run(_ask(connection))
    except (KubeError, TimeoutError):
        return LocalStatus(directory, "not answering", server, bytes=stored)
    return LocalStatus(directory, "up", server, connection.server, stored, contents, controllers)


async def _ask(connection: Any) -> tuple[dict[str, int], bool]:
    from butler.api import GROUP
    from butler.cli.toolkit.objects import as_json
    from butler.kube.client import Client
    from butler.kube.errors import NotFound
    from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
    from butler.kube.resource import VALIDATING_WEBHOOK_CONFIGURATIONS

    async with asyncio.timeout(PATIENCE), Client(connection, attempts=1) as client:
        kinds = [as_json(POOLS), as_json(ALLOCATIONS), as_json(PROVIDERS), as_json(CLUSTERS)]
        listed = await asyncio.gather(*map(client.list, kinds))
        try:
            await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, GROUP)
            controllers = True
        except NotFound:
            controllers = False
    return {kind.plural: len(found.items) for kind, found in zip(kinds, listed, strict=True)}, controllers


def show(status: LocalStatus, output: Output) -> None:
    if output.format == "table":
        click.echo(facts(_told(status)))
        if status.exit_code is not Exit.OK:
            say(_next_step(status))
    else:
        structured(_json(status), output)


def _told(status: LocalStatus) -> list[tuple[str, object]]:
    told: list[tuple[str, object]] = [("State", status.state), ("Data", _data(status))]
    if status.server is not None:
        since = status.server.since
        told += [
            ("Process", status.server.pid),
            ("Since", f"{since.astimezone():%Y-%m-%d %H:%M:%S} ({age(since, datetime.now(UTC))})"),
        ]
    if status.url:
        told += [("API server", status.url), ("Kubeconfig", status.directory / "kubeconfig")]
    if status.contents is not None:
        told += [
            ("Controllers", "running" if status.controllers else "none, or not ready yet"),
            ("Inside", ", ".join(_counted(count, plural) for plural, count in status.contents.items())),
        ]
    return told


def _counted(count: int, plural: str) -> str:
    return f"{count} {NAMES.get(plural, plural).removesuffix('s' if count == 1 else '')}"


def _data(status: LocalStatus) -> str:
    return f"{status.directory} ({_bytes(status.bytes)})" if status.bytes else str(status.directory)


def _next_step(status: LocalStatus) -> str:
    if status.state == "starting":
        return "It is not ready yet: look again in a moment."
    if status.state == "not answering":
        return "It runs and does not answer: `butleradm local down` stops it."
    return "`butleradm local up` starts it, with the same --data-dir if it has one."


def _json(status: LocalStatus) -> dict[str, Any]:
    server = status.server
    return {
        "state": status.state,
        "dataDir": str(status.directory),
        "bytes": status.bytes,
        "pid": server.pid if server else None,
        "since": server.since if server else None,
        "server": status.url or None,
        "kubeconfig": str(status.directory / "kubeconfig") if status.url else None,
        "controllers": status.controllers,
        "objects": dict(status.contents) if status.contents is not None else None,
    }


def _bytes(count: int) -> str:
    amount, units = float(count), ["B", "kB", "MB", "GB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.0f} {units[0]}" if units[0] == "B" or amount >= 10 else f"{amount:.1f} {units[0]}"


def take_down(given: str | None, timeout: float) -> None:
    """Stop it and wait."""
    directory = data_directory.data_directory(given)
    server = data_directory.serving(directory)
    if server is None:
        say(f"Nothing runs on {directory}.")
        return
    if not server.pid:
        raise Failure(f"{directory} is in use by a process that does not say which: stop it where it was started")
    try:
        stopped = data_directory.stop(directory, server, timeout)
    except ProcessLookupError:
        stopped = True  # it went by itself in this very moment
    except PermissionError:
        raise Failure(
            f"process {server.pid}, which serves {directory}, belongs to another user: stop it as that user",
            Exit.FORBIDDEN,
        ) from None
    if not stopped:
        raise Failure(
            f"process {server.pid} has not stopped within {timeout:g} s: wait for it, or see where it was started",
            Exit.TIMED_OUT,
        )
    click.echo(f"Stopped (process {server.pid}). The data stays in {directory}.")


def take_away(given: str | None, *, yes: bool) -> None:
    """Delete everything, after asking."""
    directory = data_directory.data_directory(given)
    try:
        data_directory.insist_on_ours(directory)
        server = data_directory.serving(directory)
        if server is not None:
            raise Failure(
                f"it runs (process {server.pid}): stop it first with `butleradm local down`, and the same --data-dir",
                Exit.CONFLICT,
            )
        stored = _bytes(data_directory.size(directory))
        confirm(f"Delete {directory} ({stored}), with every pool, cluster and key in it?", yes=yes)
        data_directory.delete(directory)
    except data_directory.NotOurs as error:
        code = Exit.FAILED if directory.is_dir() else Exit.NOT_FOUND
        raise Failure(f"{error}; nothing was deleted", code) from None
    except OSError as error:
        raise Failure(f"{directory} cannot be deleted ({error.strerror}): see to its permissions") from None
    click.echo(f"Deleted {directory}. `butleradm local up` begins anew.")
