"""`butleradm provider`: where clusters are put."""

from __future__ import annotations

import click

from butler.cli.frame.lazy import CONTEXT, Elsewhere, LazyGroup

PARTS = {
    "list": Elsewhere(f"{__name__}.looking", "list_", "List providers, and how many tenants they have room for."),
    "get": Elsewhere(f"{__name__}.looking", "get", "Tell all about one provider, on one screen."),
    "create": Elsewhere(f"{__name__}.creating", "create", "Make a provider from a file, or print one to start from."),
    "validate": Elsewhere(f"{__name__}.validating", "validate", "Say everything that is wrong with a provider."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def provider() -> None:
    """Where clusters are put: providers and their pools."""
