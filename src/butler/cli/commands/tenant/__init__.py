"""`butleradm tenant`: the clusters of all teams."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "get": LazyCommand(f"{__name__}.get", "get", "Tell all about one cluster of a team, on one screen."),
    "list": LazyCommand(
        f"{__name__}.list", "list_", "List the clusters of all teams, what they hold and what is wrong."
    ),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def tenant() -> None:
    """The clusters of all teams."""
