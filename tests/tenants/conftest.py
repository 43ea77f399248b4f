"""Whole tenant clusters: one world and one controller, as processes, for all tests of a file.

The management cluster is one of its own, embedded or real: Butler looks after all namespaces here, and what tests of
other folders left behind is none of its business. On the real one, the objects of clusters are judged by Cluster
API's own definitions, and by those of the providers; the embedded one has the loose ones of the world.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from build_kubernetes import UnavailableError

import cluster_api_crds
import control_planes
from controller_process import ControllerProcess
from tenants.alongside import Alongside
from tenants.estate import HOME, Estate
from tenants.witness import CLUSTER_API, OWN, Witness
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

QUICK = {"machine_seconds": 0.0, "machine_deletion_seconds": 0.0, "control_plane_seconds": 0.0, "addon_seconds": 0.0}
FRUITLESS = ("conflict", "Conflict")


@pytest.fixture(scope="package", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A management cluster for this folder alone, with Butler's definitions and its namespace."""
    data_dir = tmp_path_factory.mktemp(f"tenants-{request.param}")
    start = control_planes.embedded if request.param == "embedded" else control_planes.kubernetes
    with start(data_dir) as server:
        path = str(request.config.rootpath / "charts/butler/crds")
        server.kubectl("apply", "--server-side", "--force-conflicts", "-f", path)
        server.kubectl("wait", "--for=condition=Established", "--timeout=60s", "-f", path)
        server.request("POST", "/api/v1/namespaces", {"metadata": {"name": HOME}})
        yield server


@pytest.fixture(scope="package")
def cluster_api(control_plane: ControlPlane) -> None:
    """The real definitions on a real Kubernetes; the world brings loose ones to the embedded server."""
    if control_plane.name == "embedded":
        return
    try:
        cluster_api_crds.install(control_plane)
    except UnavailableError as error:
        pytest.skip(f"NO CLUSTER API DEFINITIONS: {error}. Install Go, or make its modules reachable.")


@pytest.fixture(scope="module")
def estate(
    control_plane: ControlPlane,
    cluster_api: None,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Estate]:
    """Everybody at work. A module may set WORLD and CONTROLLER, the options of the two processes."""
    directory = tmp_path_factory.mktemp("estate")
    world = QUICK | getattr(request.module, "WORLD", {})
    options = getattr(request.module, "CONTROLLER", ())
    with (
        WorldProcess(control_plane.kubeconfig, directory, **world) as others,
        ControllerProcess(control_plane.kubeconfig, directory, options) as butler,
        Witness(control_plane, OWN | CLUSTER_API) as witness,
    ):
        found = Estate(control_plane, witness, directory)
        with _left_clean(found):
            yield found
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]
        assert "Traceback" not in others.log(), others.log()[-6000:]


@contextmanager
def _left_clean(estate: Estate) -> Iterator[None]:
    """Whatever the tests left standing is deleted by Butler, which gives every address back."""
    yield
    witness = estate.witness
    estate.kubectl("delete", "tenantclusters", "--all", "--all-namespaces", "--wait=false")
    witness.until(
        lambda: not witness.list("tenantclusters"),
        lambda: f"all clusters are gone: {[each['status'] for each in witness.list('tenantclusters')]}",
    )
    held = [each for each in witness.list("ipallocations", HOME) if each["status"]["phase"] != "Released"]
    assert not held, f"addresses are left behind: {held}"
    assert not witness.list("machines")
    assert not witness.list("clusters")
    estate.kubectl("delete", "providerconfigs", "--all", "-n", HOME, "--wait=false")


@pytest.fixture(scope="module")
def alongside(request: pytest.FixtureRequest, estate: Estate) -> Iterator[Alongside]:
    running = Alongside(request, estate)
    yield running
    running.close()
