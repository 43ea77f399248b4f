"""`butleradm allocation`: addresses that were asked for and granted; a module for each thing that people do."""

from __future__ import annotations

import click

from butler.cli.toolkit.completion_names import names_of
from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "list": LazyCommand(f"{__name__}.list", "list_", "List allocations: who holds which addresses."),
    "get": LazyCommand(f"{__name__}.get", "get", "Tell all about one allocation on one screen."),
    "create": LazyCommand(f"{__name__}.create", "create", "Ask a pool for addresses, for a tenant."),
    "pin": LazyCommand(f"{__name__}.pin", "pin", "Ask for exactly these addresses, for a tenant that uses them."),
    "release": LazyCommand(f"{__name__}.release", "release", "Give addresses back to their pool."),
}

allocation_name = click.argument("name", shell_complete=names_of("ipallocations"))


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def allocation() -> None:
    """Addresses that were asked for and granted."""
