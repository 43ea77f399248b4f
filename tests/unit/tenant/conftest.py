from collections.abc import AsyncIterator

import pytest

from unit.kube.fake_api import FakeApi


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    fake = FakeApi()
    await fake.start()
    yield fake
    await fake.stop()
