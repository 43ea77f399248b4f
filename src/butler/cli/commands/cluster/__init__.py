"""`butlerctl cluster`: a team's clusters, from the first to the last day."""

from __future__ import annotations

import click

from butler.cli.frame.lazy import CONTEXT, Elsewhere, LazyGroup

PARTS = {
    "list": Elsewhere(f"{__name__}.looking", "list_", "List clusters, where they stand and what they hold."),
    "get": Elsewhere(f"{__name__}.looking", "get", "Tell all about one cluster, on one screen."),
    "create": Elsewhere(f"{__name__}.creating", "create", "Make a cluster, and show the addresses it would get."),
    "scale": Elsewhere(f"{__name__}.changing", "scale", "Change how many workers a cluster has."),
    "upgrade": Elsewhere(f"{__name__}.changing", "upgrade", "Bring a cluster to another version of Kubernetes."),
    "delete": Elsewhere(f"{__name__}.deleting", "delete", "Delete a cluster with everything on it."),
    "kubeconfig": Elsewhere(f"{__name__}.kubeconfig", "kubeconfig", "Get the administrator's kubeconfig of a cluster."),
    "events": Elsewhere(f"{__name__}.events", "events", "Show what happened to a cluster lately."),
    "addresses": Elsewhere(f"{__name__}.addresses", "addresses", "Show every address of a cluster and who has it."),
}


@click.group(cls=LazyGroup, parts=PARTS, context_settings=CONTEXT)
def cluster() -> None:
    """Your clusters: make, change, use and delete them."""
