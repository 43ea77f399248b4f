"""`butlerctl context`: which API server and namespace commands talk to."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "list": LazyCommand(f"{__name__}.list", "list_", "List the contexts of the kubeconfig."),
    "namespace": LazyCommand(f"{__name__}.namespace", "namespace", "Show or set the namespace of a context."),
    "use": LazyCommand(f"{__name__}.use", "use", "Make a context the current one."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def context() -> None:
    """Which API server and namespace commands talk to."""
