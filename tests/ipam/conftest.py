"""What the fault tests share: the definitions on each control plane, a nursery of processes, and an estate."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ipam.estate import Estate, Scale
from ipam.history import GROUP
from ipam.processes import Nursery

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from control_planes import ControlPlane

CRDS = Path(__file__).parents[2] / "charts" / "butler" / "crds"


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with Nursery() as started:
        yield started


@pytest.fixture(scope="session")
def ready_plane(control_plane: ControlPlane) -> ControlPlane:
    """A control plane that serves Butler's kinds."""
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(CRDS))
    names = [path.stem.replace("butler.butlerlabs.dev_", "") for path in CRDS.glob("*.yaml")]
    for name in names:
        definition = f"crd/{name}.butler.butlerlabs.dev"
        control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", definition)
    for name in names:
        # Established is not yet served: the storage behind it starts a moment later.
        deadline = time.monotonic() + 60
        while control_plane.request("GET", f"{GROUP}/{name}")[0] != 200:
            assert time.monotonic() < deadline, f"{name} are not served"
            time.sleep(0.1)
    return control_plane


@pytest.fixture
async def estate(ready_plane: ControlPlane, nursery: Nursery, tmp_path: Path, scale: Scale) -> AsyncIterator[Estate]:
    async with Estate(ready_plane, nursery, tmp_path, scale) as built:
        yield built
