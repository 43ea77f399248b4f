"""`api_servers`: an API server in the process of the tests. A module that makes an `ApiServer` has
`pytestmark = pytest.mark.usefixtures("api_servers")`, and its tests share one event loop with the server.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from api_server import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def api_servers() -> AsyncIterator[None]:
    async with serving():
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        function = getattr(item, "function", None)
        if "api_servers" in getattr(item, "fixturenames", ()) and inspect.iscoroutinefunction(function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
