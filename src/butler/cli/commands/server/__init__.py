"""`butleradm server`: the console and its API, against any Kubernetes API server."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

RECORDS = "butler-console"
IN_RECORDS = f"Namespace in which the console keeps its sessions.  [default: {RECORDS}]"
PARTS = {
    "link": LazyCommand(f"{__name__}.link", "link", "Make a link that opens the console on this machine once."),
    "password": LazyCommand(
        f"{__name__}.password", "password", "Give the console's local administrator a new password."
    ),
    "run": LazyCommand(f"{__name__}.run", "run", "Serve the console in the foreground."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def server() -> None:
    """The console and its API, against any Kubernetes API server."""
