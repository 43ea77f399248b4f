"""A management cluster without Cluster API: what a cluster says there, and that it goes on once it is installed.

It has a server of its own, since definitions, once installed, are there for all tests.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from controller_process import ControllerProcess
from tenants.estate import Estate
from tenants.management import install_cluster_api, management_cluster
from tenants.witness import CLUSTER_API, OWN, Witness
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from control_planes import ControlPlane

QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}


@pytest.fixture(scope="module", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp(f"bare-{request.param}")
    with management_cluster(request.param, directory, request.config.rootpath) as server:
        yield server


@pytest.fixture
def estate(control_plane: ControlPlane, tmp_path: Path) -> Iterator[Estate]:
    """Only Butler runs."""
    with (
        ControllerProcess(control_plane.kubeconfig, tmp_path) as butler,
        Witness(control_plane, OWN) as witness,
        closing(Estate(control_plane, witness, tmp_path)) as found,
    ):
        yield found
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]


def test_a_cluster_says_that_cluster_api_is_missing_and_leaves_nothing_behind(estate: Estate) -> None:
    web = estate.site().cluster()
    said = web.says("InfrastructureReady", "False", "ClusterAPIMissing")
    assert web.phase == "Failed"
    assert said.startswith("the API server has no ")
    assert said.endswith(": install Cluster API, Steward and the infrastructure provider on the management cluster")
    assert web.condition("Ready")["message"] == said
    assert web.condition("NetworkReady")["status"] == "True"
    assert estate.witness.get("namespaces", "", web.home) is None
    web.delete()
    web.gone()


@pytest.mark.slow
def test_a_cluster_goes_on_when_cluster_api_comes(estate: Estate, control_plane: ControlPlane, tmp_path: Path) -> None:
    web = estate.site().cluster()
    web.says("InfrastructureReady", "False", "ClusterAPIMissing")
    install_cluster_api(control_plane)
    with WorldProcess(control_plane.kubeconfig, tmp_path, **QUICK) as world:
        estate.witness.follow(CLUSTER_API)
        web.ready()
        web.delete()
        web.gone()
        assert "Traceback" not in world.log()
