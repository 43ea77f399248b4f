"""A management cluster with stand-ins in the test's own process, or a server with one MetalLB, real or not, at work."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.world_metallb.estate import Estate
from local.world_metallb.served import KINDS, Served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from control_planes import ControlPlane


@pytest.fixture
async def estate(tmp_path: Path) -> AsyncIterator[Estate]:
    async with Estate.open(tmp_path / "data") as opened:
        yield opened


@pytest.fixture(params=KINDS)
async def served(request: pytest.FixtureRequest, control_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Served]:
    async with Served.open(request.param, control_plane, tmp_path) as opened:
        yield opened
