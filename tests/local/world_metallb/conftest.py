"""One embedded server in the test's own process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from local.world_metallb.estate import Estate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def estate(tmp_path: Path) -> AsyncIterator[Estate]:
    async with Estate.open(tmp_path / "data") as opened:
        yield opened
