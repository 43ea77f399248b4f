"""A management cluster of one's own, embedded or real, with Butler's definitions, its namespace, and Cluster API's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from build_kubernetes import UnavailableError

import cluster_api_crds
import control_planes
from tenants.estate import HOME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane


@contextmanager
def management_cluster(kind: str, data_dir: Path, root: Path) -> Iterator[ControlPlane]:
    """Of kind `embedded` or `kubernetes`; `root` is that of the checkout."""
    start = control_planes.embedded if kind == "embedded" else control_planes.kubernetes
    with start(data_dir) as server:
        path = str(root / "charts/butler/crds")
        server.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
        server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", path)
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
        yield server


def install_cluster_api(control_plane: ControlPlane) -> None:
    """The real definitions on a real Kubernetes; the world brings loose ones to the embedded server."""
    if control_plane.name == "embedded":
        return
    try:
        cluster_api_crds.install(control_plane)
    except UnavailableError as error:
        pytest.skip(f"NO CLUSTER API DEFINITIONS: {error}. Install Go, or make its modules reachable.")
