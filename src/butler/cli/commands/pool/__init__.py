"""`butleradm pool`: networks whose addresses Butler hands out; a module for each thing that people do with them."""

from __future__ import annotations

import click

from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "list": LazyCommand(f"{__name__}.list", "list_", "List pools and how full they are."),
    "get": LazyCommand(f"{__name__}.get", "get", "Tell all about one pool on one screen."),
    "map": LazyCommand(f"{__name__}.map", "map_", "Draw a pool: who holds which addresses, in true positions."),
    "free": LazyCommand(f"{__name__}.free", "free", "Find free blocks, and the one that a request would get."),
    "overlaps": LazyCommand(
        f"{__name__}.overlaps", "overlaps", "Look for addresses that two have, and for pools that overlap."
    ),
    "create": LazyCommand(f"{__name__}.create", "create", "Make a pool."),
    "edit": LazyCommand(f"{__name__}.edit", "edit", "Edit a pool as YAML, in your editor."),
    "grow": LazyCommand(f"{__name__}.grow", "grow", "Hand out more addresses."),
    "reserve": LazyCommand(f"{__name__}.reserve", "reserve", "Keep addresses back, or hand them out again."),
    "delete": LazyCommand(f"{__name__}.delete", "delete", "Delete a pool of which no tenant holds addresses."),
}

pool_name = click.argument("name", shell_complete=names_of("networkpools"))


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def pool() -> None:
    """Networks whose addresses Butler hands out."""
