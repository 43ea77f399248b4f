"""A Kubernetes API server in pure Python: what kubectl, helm and controllers need of Kubernetes, over SQLite.

The door of the package:

    from kubeserver import ControlPlane, in_process
    server = await ControlPlane.start(directory, definitions=[...])   # HTTPS on 127.0.0.1; server.kubeconfig
    kubeconfig = await server.add_cluster("team", "one")              # a logical cluster beside the root
    async with in_process(definitions=[...]) as client: ...           # the same without a socket, for tests

`kubeserver.wire.selectors` and `kubeserver.views.jsonpath` can be used by themselves.

A request passes these folders, top to bottom:

    wire/          HTTP at the edge; bodies in, answers out; refusals in the words of Kubernetes
    server.py      which logical cluster, who is asking (access/), may they
    verbs/         get, list, watch, create, replace, patch, delete: what each does, in which order
      schemas/     the shape of a kind: validation, pruning, defaults; cel/ runs its rules
      builtin/     what built-in kinds do beyond their shape
      patching/    patches, server-side apply, who owns which field
      webhooks/    admission webhooks, really called
    storage/       one revision counter, compare-and-swap, group commit, watches
    views/         tables, discovery, OpenAPI: how clients see it

`definitions/` turns CustomResourceDefinitions into resources, `background/` does what goes on without a request, and
`hosted_cluster.py` puts one logical cluster together. All decisions run on one event loop; only the disk has a thread.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kubeserver.version import __version__

if TYPE_CHECKING:
    from kubeserver.control_plane import ControlPlane, NotStarted
    from kubeserver.in_process_client import InProcessClient, administrator_of, in_process

__all__ = ["ControlPlane", "InProcessClient", "NotStarted", "__version__", "administrator_of", "in_process"]

_HOMES = {
    "ControlPlane": "kubeserver.control_plane",
    "NotStarted": "kubeserver.control_plane",
    "InProcessClient": "kubeserver.in_process_client",
    "administrator_of": "kubeserver.in_process_client",
    "in_process": "kubeserver.in_process_client",
}


def __getattr__(name: str) -> Any:
    """Load the server when it is asked for: a command that only needs jsonpath starts in milliseconds."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
