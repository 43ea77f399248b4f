from collections.abc import AsyncIterator

import pytest

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts
from unit.kube.fake_api import FakeApi


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    await fake.start()
    yield fake
    await fake.stop()


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    quick = Backoff(first=0.005, cap=0.02)
    async with Client(
        Connection(api.url), backoff=quick, timeouts=Timeouts(connect=1, attempt=2, total=5)
    ) as connected:
        yield connected
