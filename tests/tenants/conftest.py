"""Whole tenant clusters on a management cluster of their own, embedded or real.

Butler looks after all namespaces here, and what tests of other folders left behind is none of its business. On the
real one, the objects of clusters are judged by Cluster API's own definitions, and by those of the providers; the
embedded one has the loose ones of the world.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenants.management import install_cluster_api, management_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture(scope="package", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A management cluster for this folder alone."""
    directory = tmp_path_factory.mktemp(f"tenants-{request.param}")
    with management_cluster(request.param, directory, request.config.rootpath) as server:
        yield server


@pytest.fixture(scope="package")
def cluster_api(control_plane: ControlPlane) -> None:
    install_cluster_api(control_plane)
