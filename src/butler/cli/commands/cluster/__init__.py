"""`butlerctl cluster`: a team's clusters, from the first to the last day."""

from __future__ import annotations

import click

from butler.cli.toolkit.lazy_commands import CONTEXT, LazyCommand, LazyGroup

PARTS = {
    "list": LazyCommand(f"{__name__}.list", "list_", "List clusters, where they stand and what they hold."),
    "get": LazyCommand(f"{__name__}.get", "get", "Tell all about one cluster, on one screen."),
    "create": LazyCommand(f"{__name__}.create", "create", "Make a cluster, and show the addresses it would get."),
    "scale": LazyCommand(f"{__name__}.scale", "scale", "Change how many workers a cluster has."),
    "upgrade": LazyCommand(f"{__name__}.upgrade", "upgrade", "Bring a cluster to another version of Kubernetes."),
    "delete": LazyCommand(f"{__name__}.delete", "delete", "Delete a cluster with everything on it."),
    "kubeconfig": LazyCommand(
        f"{__name__}.kubeconfig", "kubeconfig", "Get the administrator's kubeconfig of a cluster."
    ),
    "events": LazyCommand(f"{__name__}.events", "events", "Show what happened to a cluster lately."),
    "addresses": LazyCommand(f"{__name__}.addresses", "addresses", "Show every address of a cluster and who has it."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def cluster() -> None:
    """Your clusters: make, change, use and delete them."""
