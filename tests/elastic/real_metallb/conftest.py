"""One real Kubernetes with the real MetalLB as the tenant, and a management cluster with Butler beside it."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import control_planes
from butler.kube import config
from butler.kube.client import Client
from elastic.butler_process import Butler
from elastic.real_metallb.real_tenant import RealEstate, RealRecord
from ipam import invariants
from metallb_controller import MetallbController, install
from tenants.management import management_cluster

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from control_planes import ControlPlane

MOST = 200
"""Lines of what happened that are shown."""
GRACE, SETTLE = 2.0, 0.5
OPTIONS = (
    "--shrink-after",
    str(GRACE),
    "--drain-settle",
    str(SETTLE),
    "--check-tenants-every",
    "1",
    "--sweep-every",
    "2",
    "--sighting-gap",
    "2",
)


@pytest.fixture(scope="package", params=("kubernetes",))
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The tenant's."""
    with control_planes.kubernetes(tmp_path_factory.mktemp("tenant")) as server:
        yield server


@pytest.fixture(scope="package")
def metallb(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MetallbController]:
    controller = MetallbController(control_plane.kubeconfig, tmp_path_factory.mktemp("metallb"))

    async def begin() -> None:
        async with Client(config.load(control_plane.kubeconfig), field_manager="test") as client:
            await install(client)
        await controller.start()

    asyncio.run(begin())
    yield controller
    asyncio.run(controller.stop())
    assert not controller.panics(), controller.panics()[:3]


@pytest.fixture(scope="package")
def estate(
    request: pytest.FixtureRequest,
    control_plane: ControlPlane,
    metallb: MetallbController,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RealEstate]:
    """An estate with all processes running."""
    directory = tmp_path_factory.mktemp("management")
    with (
        management_cluster("embedded", directory, request.config.rootpath) as plane,
        RealRecord(plane) as record,
        Butler(plane.kubeconfig, directory, OPTIONS) as butler,
        closing(RealEstate(plane, record, butler, directory, control_plane, metallb)) as found,
    ):
        yield found
        history = record.history()
        invariants.insist([*invariants.check(history), *invariants.at_rest(history)], history)
        assert not butler.complaints(), "\n".join(butler.complaints()[:5]) + butler.log()[-6000:]


@pytest.fixture
def real(estate: RealEstate) -> Iterator[RealEstate]:
    """The estate as one test has it, and leaves it."""
    part = RealEstate(
        estate.plane, estate.record, estate.butler, estate.directory, estate.kubernetes, estate.metallb, estate._desk
    )
    yield part
    part.leave_empty()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails tells what happened on both sides."""
    report = yield
    real = getattr(item, "funcargs", {}).get("real")
    if call.excinfo is not None and isinstance(real, RealEstate):
        report.sections.append(("what happened", "\n".join(real.timeline()[-MOST:])))
    return report
