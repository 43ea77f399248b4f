"""One management cluster, one world and one controller, as processes, for all tests of this folder.

They run side by side (see `alongside`), so that starting everything is paid for once. What is long here is short by
options: machines take no time, and a dead tenant or a missing one is waited for some seconds instead of minutes.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from controller_process import ControllerProcess
from tenants.estate import HOME, Estate
from tenants.flows.alongside import Alongside
from tenants.management import install_cluster_api, management_cluster
from tenants.witness import CLUSTER_API, OWN, Witness
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
OPTIONS = ("--clean-up-limit", "20", "--sweep-every", "2", "--sighting-gap", "2")


@pytest.fixture(scope="package", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A management cluster for this folder alone: it has room for one world."""
    directory = tmp_path_factory.mktemp(f"flows-{request.param}")
    with management_cluster(request.param, directory, request.config.rootpath) as server:
        yield server


@pytest.fixture(scope="package")
def estate(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """An estate with all processes running."""
    install_cluster_api(control_plane)
    directory = tmp_path_factory.mktemp("estate")
    with (
        WorldProcess(control_plane.kubeconfig, directory, **QUICK) as world,
        ControllerProcess(control_plane.kubeconfig, directory, OPTIONS) as butler,
        Witness(control_plane, OWN | CLUSTER_API) as witness,
    ):
        with closing(Estate(control_plane, witness, directory)) as found, _left_clean(found):
            yield found
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]
        assert "Traceback" not in world.log(), world.log()[-6000:]


@contextmanager
def _left_clean(estate: Estate) -> Iterator[None]:
    """Whatever the tests left standing is deleted by Butler, which gives every address back."""
    yield
    witness = estate.witness
    estate.kubectl("delete", "tenantclusters", "--all", "--all-namespaces", "--wait=false")
    witness.until(
        lambda: not witness.list("tenantclusters"),
        lambda: f"all clusters are gone: {[obj['status'] for obj in witness.list('tenantclusters')]}",
    )
    held = [obj for obj in witness.list("ipallocations", HOME) if obj["status"]["phase"] != "Released"]
    assert not held, f"addresses are left behind: {held}"
    assert not witness.list("machines")
    assert not witness.list("clusters")


@pytest.fixture(scope="package")
def alongside(request: pytest.FixtureRequest, estate: Estate) -> Iterator[Alongside]:
    folder = Path(__file__).parent  # others tell such stories on an estate of their own
    running = Alongside([item for item in request.session.items if item.path.is_relative_to(folder)], estate)
    yield running
    running.close()
