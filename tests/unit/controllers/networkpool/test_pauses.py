"""How long a pool rests after trouble: hardly at all while someone waits for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from butler.controllers.networkpool.controller import LONGEST_PAUSE, NetworkPoolController
from unit.controllers.networkpool.values import POOL, intent, pool


@pytest.mark.parametrize(
    ("intents", "waiting", "pause"),
    [((), 0, None), ((), 1, LONGEST_PAUSE), ((intent("a", "10.0.0.1-10.0.0.2"),), 0, LONGEST_PAUSE)],
)
def test_a_pool_with_requests_or_promises_is_looked_at_again_within_a_second(
    intents: Any, waiting: int, pause: float | None
) -> None:
    """A request whose writes were refused for a while is granted within about a second after they work again."""
    controller = SimpleNamespace(
        _pools={POOL: pool(intents=intents)}, _allocations=SimpleNamespace(count=lambda _index, _key: waiting)
    )
    assert NetworkPoolController._longest_pause(cast("Any", controller), POOL) == pause
    assert LONGEST_PAUSE <= 1.0
