"""A server for clumsy and hostile clients: each gets a clear refusal, and other clients do not notice.

After every test the server must soon answer `/readyz` and take a normal write, and it must not have logged a
traceback.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import aiohttp

from hostile.talking import CONFIGS, NOT_FROZEN, call


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[aiohttp.ClientSession]:
    """The administrator's session; afterwards the server is found well."""
    logged = len(server.log())
    async with server.session() as session:
        yield session
        began = time.monotonic()
        async with session.get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        assert time.monotonic() - began < NOT_FROZEN, "the server was busy with something"
        code, made = await call(session, "POST", CONFIGS, {"metadata": {"generateName": "well-"}})
        assert code == 201, made
    assert "Traceback" not in server.log()[logged:], server.log()[logged:][-3000:]
