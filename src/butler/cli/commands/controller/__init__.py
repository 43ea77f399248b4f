"""`butleradm controller`: Butler's controllers, against any Kubernetes API server."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "run": LazyCommand(f"{__name__}.run", "run", "Run the controllers in the foreground."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def controller() -> None:
    """Butler's controllers, against any Kubernetes API server."""
