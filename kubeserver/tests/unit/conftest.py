"""An open store, for every test that asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubeserver.storage.store import (
    Store,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(tmp_path)
    yield opened
    await opened.close()
