"""One management cluster, one world and one controller for all stories of this folder, which run side by side.

What is long is short by options: an idle range goes back after two seconds, a drain settles in a fifth of one, and
what users did to MetalLB's configuration is looked for every two.
"""

from __future__ import annotations

from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from elastic.butler_process import Butler
from elastic.estate import GRACE, SETTLE, Elastic
from elastic.record import Record
from elastic.sides import both_sides
from ipam import invariants
from tenants.estate import HOME, phase_of
from tenants.flows.alongside import Alongside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane

ELASTIC = ("--shrink-after", str(GRACE), "--drain-settle", str(SETTLE), "--check-tenants-every", "1")
OPTIONS = (*ELASTIC, "--clean-up-limit", "20", "--sweep-every", "2", "--sighting-gap", "2")


@pytest.fixture(scope="package", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A management cluster for this folder alone, and its world."""
    directory = tmp_path_factory.mktemp(f"elastic-{request.param}")
    with both_sides(request.param, directory, request.config.rootpath) as plane:
        yield plane


@pytest.fixture(scope="package")
def estate(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elastic]:
    """An estate with all processes running."""
    directory = tmp_path_factory.mktemp("estate")
    one_store = control_plane.name == "embedded"
    with (
        Record(control_plane, one_store=one_store) as record,
        Butler(control_plane.kubeconfig, directory, OPTIONS) as butler,
    ):
        with closing(Elastic(control_plane, record, butler, directory)) as found, _left_clean(found):
            yield found
        history = record.history()
        invariants.insist(invariants.check(history, views_in_order=False), history)
        invariants.insist(invariants.at_rest(history), history)
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]


@contextmanager
def _left_clean(estate: Elastic) -> Iterator[None]:
    """Whatever the stories left standing is deleted by Butler, which gives every address back."""
    yield
    witness = estate.witness
    estate.kubectl("delete", "tenantclusters", "--all", "--all-namespaces", "--wait=false")
    witness.until(
        lambda: not witness.list("tenantclusters"),
        lambda: f"all clusters are gone: {[obj['status'] for obj in witness.list('tenantclusters')]}",
    )
    held = [obj for obj in witness.list("ipallocations", HOME) if phase_of(obj) != "Released"]
    tenants = [obj for obj in held if obj["metadata"].get("labels", {}).get("butler.butlerlabs.dev/tenant-uid")]
    assert not tenants, f"addresses are left behind: {tenants}"


@pytest.fixture(scope="package")
def alongside(request: pytest.FixtureRequest, estate: Elastic) -> Iterator[Alongside]:
    folder = Path(__file__).parent
    running = Alongside([item for item in request.session.items if item.path.is_relative_to(folder)], estate)
    yield running
    running.close()
