"""Both sides for the fault tests alone, with tenants that were brought up once. Controllers come with the tests."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from elastic.butler_process import Butler
from elastic.estate import Elastic
from elastic.faults.drill import Drill, Ward
from elastic.faults.lines import Switchboard
from elastic.record import Record
from elastic.sides import both_sides
from ipam import invariants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from control_planes import ControlPlane


@pytest.fixture(scope="package", params=("embedded", "kubernetes"))
def control_plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    directory = tmp_path_factory.mktemp(f"elastic-faults-{request.param}")
    with both_sides(request.param, directory, request.config.rootpath) as plane:
        yield plane


@pytest.fixture(scope="package")
def drill(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    directory = tmp_path_factory.mktemp("drill")
    with (
        Record(control_plane, one_store=control_plane.name == "embedded") as record,
        Ward() as nursery,
        Switchboard() as board,
    ):
        # No test freezes this controller: tests start their own.
        estate = Elastic(control_plane, record, Butler(control_plane.kubeconfig, directory), directory)
        with closing(estate):
            yield Drill(estate, estate.place(initial=1, size=120, counted=False), nursery, board)
        history = record.history()
        invariants.insist(invariants.check(history, views_in_order=False), history)
