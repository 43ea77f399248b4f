"""The world, as a process of its own, for all tests of a file: a management cluster has room for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.world.estate import Tenant
from world_process import WorldProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from control_planes import ControlPlane


@pytest.fixture(scope="module")
def world(
    control_plane: ControlPlane, definitions: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WorldProcess]:
    directory = tmp_path_factory.mktemp("world")
    with WorldProcess(
        control_plane.kubeconfig,
        directory,
        machine_seconds=0.2,
        machine_deletion_seconds=0.2,
        control_plane_seconds=0.2,
    ) as process:
        yield process
        complaints = [line for line in process.log().splitlines() if "Traceback" in line]
        assert not complaints, process.log()[-4000:]


@pytest.fixture
def tenant(world: WorldProcess, control_plane: ControlPlane) -> Iterator[Callable[..., Tenant]]:
    """Makes tenants, and takes them away with all that belongs to them."""
    made: list[Tenant] = []

    def make(name: str = "web", provider: str = "Proxmox") -> Tenant:
        made.append(Tenant(control_plane, name, provider=provider))
        return made[-1]

    yield make
    for item in made:
        if item.get("clusters", item.name) is not None:
            item.delete("clusters", item.name)
    for item in made:
        item.gone()
