"""kubectl for the tests of this folder, in a namespace of its own, with Butler's kinds there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.terminal import Kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture(scope="module")
def definitions(control_plane: ControlPlane, request: pytest.FixtureRequest) -> None:
    """Butler's custom resource definitions: the embedded server has them, a plain Kubernetes gets them."""
    path = str(request.config.rootpath / "charts/butler/crds")
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", path)


@pytest.fixture
def kubectl(control_plane: ControlPlane, definitions: None) -> Iterator[Kubectl]:
    namespace = control_plane.fresh_namespace("kubectl")
    yield Kubectl(control_plane, namespace)
    if not control_plane.disposable:
        control_plane.request("DELETE", f"/api/v1/namespaces/{namespace}")
