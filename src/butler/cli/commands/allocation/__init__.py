"""`butleradm allocation`: addresses that were asked for and granted; a module for each thing that people do."""

from __future__ import annotations

import click

from butler.cli.frame.lazy import CONTEXT, Elsewhere, LazyGroup
from butler.cli.frame.names import names_of

HERE = "butler.cli.commands.allocation"
PARTS = {
    "list": Elsewhere(f"{HERE}.listing", "list_", "List allocations: who holds which addresses."),
    "get": Elsewhere(f"{HERE}.getting", "get", "Tell all about one allocation on one screen."),
    "create": Elsewhere(f"{HERE}.asking", "create", "Ask a pool for addresses, for a tenant."),
    "pin": Elsewhere(f"{HERE}.asking", "pin", "Ask for exactly these addresses, for a tenant that uses them."),
    "release": Elsewhere(f"{HERE}.releasing", "release", "Give addresses back to their pool."),
}

allocation_name = click.argument("name", shell_complete=names_of("ipallocations"))


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def allocation() -> None:
    """Addresses that were asked for and granted."""
