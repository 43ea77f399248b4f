"""Logical clusters from outside: three requests to the root cluster.

    GET    /clusters                      which there are
    PUT    /clusters/<namespace>/<name>   make sure there is one; the answer is its administrator's kubeconfig
    DELETE /clusters/<namespace>/<name>   remove it with everything in it

They are ordinary requests to paths that are no resources: the root cluster authenticates them, and its RBAC decides by
`nonResourceURLs`, so they are open to members of system:masters and to users with a role for it. Every other request
below `/clusters/<namespace>/<name>` belongs to the logical cluster itself, and the root's credentials are not valid
there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from kubeserver.views.documents import not_a_page
from kubeserver.wire.messages import YAML, Response, respond
from kubeserver.wire.names import dns_label
from kubeserver.wire.paths import ROOT, split_cluster
from kubeserver.wire.status import ApiError, FieldError, invalid, not_found

if TYPE_CHECKING:
    from pathlib import Path

_PATH: Final = "/clusters"
_CHANGES: Final = frozenset({"PUT", "DELETE"})


class Clusters(Protocol):
    """Who keeps the logical clusters."""

    def cluster_url(self, cluster: str) -> str: ...

    def cluster_names(self) -> list[str]:
        """`<namespace>/<name>` of each, sorted."""
        ...

    async def add_cluster(self, namespace: str, name: str) -> Path:
        """Make sure there is one; the path of its kubeconfig."""
        ...

    async def remove_cluster(self, namespace: str, name: str) -> None: ...


def is_about_clusters(method: str, path: str) -> bool:
    """Whether a request is for the root cluster and about a logical one, and not for the logical one."""
    cluster, rest = split_cluster(path)
    if cluster == ROOT:
        return path.rstrip("/") == _PATH
    return method in _CHANGES and rest == "/"


async def answer(clusters: Clusters, method: str, path: str) -> Response:
    """Answer a request that is about logical clusters and allowed."""
    cluster, _ = split_cluster(path)
    if cluster == ROOT:
        return _listed(clusters) if method in ("GET", "HEAD") else not_a_page()
    namespace, _, name = cluster.partition("/")
    exists = cluster in clusters.cluster_names()
    if method == "DELETE":
        if not exists:
            raise not_found("", "clusters", cluster)
        await clusters.remove_cluster(namespace, name)
        details = {"name": cluster, "kind": "clusters"}
        return respond(
            200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )
    if refusal := _misnamed(namespace, name):
        raise refusal
    kubeconfig = await clusters.add_cluster(namespace, name)
    return Response(200 if exists else 201, kubeconfig.read_bytes(), YAML)


def _listed(clusters: Clusters) -> Response:
    items = [
        {"namespace": namespace, "name": name, "server": clusters.cluster_url(f"{namespace}/{name}")}
        for namespace, _, name in (cluster_name.partition("/") for cluster_name in clusters.cluster_names())
    ]
    return respond(200, {"kind": "ClusterList", "apiVersion": "kubeserver/v1", "items": items})


def _misnamed(namespace: str, name: str) -> ApiError | None:
    """Both become parts of a URL and of a path on disk."""
    problems = [
        FieldError("FieldValueInvalid", field, why, value)
        for field, value in (("namespace", namespace), ("name", name))
        for why in dns_label(value)
    ]
    return invalid("", "Cluster", f"{namespace}/{name}", problems) if problems else None
