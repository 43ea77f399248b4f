"""Pages of pools: kept while nothing changes, and never made of an older pool than was asked for."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.meta import ObjectMeta
from butler.api.networkpool import NetworkPool, NetworkPoolSpec
from butler.kube.objects import key_of
from butler.kube.store import Change
from butler.server.keeping import pool_pages, working
from butler.server.keeping.feed import Feed

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.ipallocation import IPAllocation
    from butler.kube.operator import Operator
    from butler.kube.resource import Key

pytestmark = pytest.mark.asyncio
HOME = "butler-system"
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


class Cached:
    """A cache that follows nobody."""

    def __init__(self) -> None:
        self.found: dict[Key, Any] = {}
        self.tell: Callable[[Change[Any]], None] = lambda _: None

    def on_change(self, listener: Callable[[Change[Any]], None]) -> None:
        self.tell = listener

    def get(self, key: Key) -> Any:
        return self.found.get(key)

    def put(self, obj: NetworkPool) -> None:
        old = self.found.get(key_of(obj))
        self.found[key_of(obj)] = obj
        self.tell(Change(key_of(obj), old, obj))

    def values(self) -> list[Any]:
        return list(self.found.values())


class Caches:
    def cache(self, *_: object, **__: object) -> Cached:
        return Cached()


def pool(version: int, cidr: str) -> NetworkPool:
    meta = ObjectMeta(name="lab", namespace=HOME, uid="u", resource_version=str(version))
    return NetworkPool(metadata=meta, spec=NetworkPoolSpec(cidr=cidr))


async def test_what_waits_for_its_turn_is_made_of_the_pool_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(working, "FEW", -1)  # every pool is a large one
    go_on = threading.Event()

    def compute(found: NetworkPool, _: list[IPAllocation], __: datetime) -> str:
        go_on.wait(10)
        return found.spec.cidr

    feed = Feed(cast("Operator", Caches()), HOME)
    pools, old, new = cast("Cached", feed.pools), pool(1, "10.0.0.0/24"), pool(2, "10.0.0.0/23")
    pools.put(old)
    asked = [asyncio.create_task(pool_pages.dated(feed, old, "page", compute, NOON))]
    await asyncio.sleep(0.05)  # it is under way, and the next one waits behind it
    asked.append(asyncio.create_task(pool_pages.dated(feed, old, "page", compute, NOON)))
    await asyncio.sleep(0)
    pools.put(new)
    go_on.set()
    await asyncio.gather(*asked)
    assert await pool_pages.dated(feed, new, "page", compute, NOON) == "10.0.0.0/23"
