"""`butleradm pool`: networks whose addresses Butler hands out; a module for each thing that people do with them."""

from __future__ import annotations

import click

from butler.cli.frame.lazy import CONTEXT, Elsewhere, LazyGroup
from butler.cli.frame.names import names_of

HERE = "butler.cli.commands.pool"
PARTS = {
    "list": Elsewhere(f"{HERE}.listing", "list_", "List pools and how full they are."),
    "get": Elsewhere(f"{HERE}.get", "get", "Tell all about one pool on one screen."),
    "map": Elsewhere(f"{HERE}.map", "map_", "Draw a pool: who holds which addresses, in true positions."),
    "free": Elsewhere(f"{HERE}.free", "free", "Find free blocks, and the one that a request would get."),
    "overlaps": Elsewhere(
        f"{HERE}.overlaps", "overlaps", "Look for addresses that two have, and for pools that overlap."
    ),
    "create": Elsewhere(f"{HERE}.create", "create", "Make a pool."),
    "edit": Elsewhere(f"{HERE}.edit", "edit", "Edit a pool as YAML, in your editor."),
    "grow": Elsewhere(f"{HERE}.grow", "grow", "Hand out more addresses."),
    "reserve": Elsewhere(f"{HERE}.reserve", "reserve", "Keep addresses back, or hand them out again."),
    "delete": Elsewhere(f"{HERE}.delete", "delete", "Delete a pool that nobody holds addresses of."),
}

pool_name = click.argument("name", shell_complete=names_of("networkpools"))


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def pool() -> None:
    """Networks whose addresses Butler hands out."""
