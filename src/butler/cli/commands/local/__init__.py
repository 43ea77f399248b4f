"""`butleradm local`: Butler on this one machine, without a Kubernetes cluster."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "down": LazyCommand(f"{__name__}.down", "down", "Stop it, from another terminal; the data stays."),
    "reset": LazyCommand(f"{__name__}.reset", "reset", "Delete all its data, to begin anew."),
    "status": LazyCommand(
        f"{__name__}.status", "status", "Tell whether it is up, where, since when, and what is in it."
    ),
    "up": LazyCommand(f"{__name__}.up", "up", "Start Butler on this machine, in the foreground."),
    "world": LazyCommand(
        f"{__name__}.world", "world", "Stand in for Cluster API, Steward and machines, on any management cluster."
    ),
}

data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False),
    metavar="DIR",
    envvar="BUTLER_DATA_DIR",
    help="Where everything is kept.  [default: $BUTLER_DATA_DIR, else ~/.butler/local]",
)


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def local() -> None:
    """Butler on this one machine, without a Kubernetes cluster."""
