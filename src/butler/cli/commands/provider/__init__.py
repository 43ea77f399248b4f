"""`butleradm provider`: where clusters are put."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "list": LazyCommand(f"{__name__}.list", "list_", "List providers, and how many tenants they have room for."),
    "get": LazyCommand(f"{__name__}.get", "get", "Tell all about one provider, on one screen."),
    "create": LazyCommand(f"{__name__}.create", "create", "Make a provider from a file, or print one to start from."),
    "validate": LazyCommand(f"{__name__}.validate", "validate", "Say everything that is wrong with a provider."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def provider() -> None:
    """Where clusters are put: providers and their pools."""
