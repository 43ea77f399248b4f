"""Pages of pools: kept while nothing changes, shown for a moment while a pool changes, and never older than what they
who ask have heard of."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from butler.api.meta import ObjectMeta
from butler.api.networkpool import NetworkPool, NetworkPoolSpec
from butler.api.objects import Change, key_of
from butler.reports.pool.summary import Summary, summary_of
from butler.server.cache import background_work, pool_summaries, read_your_writes
from butler.server.cache.cluster_state import ClusterState
from butler.server.cursor import encode_cursor
from butler.server.json_body import json_body

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Key
    from butler.kube.operator import Operator
    from butler.reports.pool.segments import PoolSegments

pytestmark = pytest.mark.asyncio
HOME = "butler-system"
NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


class Cached:
    """A cache that follows no API server."""

    def __init__(self) -> None:
        self.found: dict[Key, Any] = {}
        self.tell: Callable[[Change[Any]], None] = lambda _: None
        self.position: str | None = None

    def on_change(self, listener: Callable[[Change[Any]], None]) -> None:
        self.tell = listener

    def get(self, key: Key) -> Any:
        return self.found.get(key)

    def put(self, obj: NetworkPool) -> None:
        old = self.found.get(key_of(obj))
        self.found[key_of(obj)] = obj
        self.position = obj.metadata.resource_version
        self.tell(Change(key_of(obj), old, obj))

    def values(self) -> list[Any]:
        return list(self.found.values())


class Caches:
    def cache(self, *_: object, **__: object) -> Cached:
        return Cached()


def pool(version: int, cidr: str) -> NetworkPool:
    meta = ObjectMeta(name="lab", namespace=HOME, uid="u", resource_version=str(version))
    return NetworkPool(metadata=meta, spec=NetworkPoolSpec(cidr=cidr))


class Counting:
    """Counts as summary_of does, when it is let, and says how often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.times = 0
        monkeypatch.setattr(background_work, "FEW", -1)  # every pool is a large one
        monkeypatch.setattr(pool_summaries, "summary_of", self)

    def __call__(self, pool: NetworkPool, allocations: list[IPAllocation]) -> Summary:
        self.times += 1
        assert self.go_on.wait(10)
        return summary_of(pool, allocations)


def network(found: Summary) -> str:
    return found.segments.cidr


def a_state(*pools: NetworkPool) -> tuple[ClusterState, Cached]:
    state = ClusterState(cast("Operator", Caches()), HOME)
    cached = cast("Cached", state.pools)
    for item in pools:
        cached.put(item)
    return state, cached


OLD, NEW, NEWEST = pool(1, "10.0.0.0/24"), pool(2, "10.0.0.0/23"), pool(3, "10.0.0.0/22")


async def test_what_waits_for_its_turn_is_made_of_the_pool_as_it_is_then(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)
    counting.go_on.clear()
    state, pools = a_state(OLD)
    asked = [asyncio.create_task(pool_summaries.summary(state, OLD))]
    await asyncio.sleep(0.05)  # it is under way, and the next one waits behind it
    asked.append(asyncio.create_task(pool_summaries.summary(state, OLD)))
    await asyncio.sleep(0)
    pools.put(NEW)
    counting.go_on.set()
    await asyncio.gather(*asked)
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/23"


async def test_nothing_is_counted_twice_while_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)
    state, _ = a_state(OLD)
    found = await asyncio.gather(*(pool_summaries.segments(state, OLD) for _ in range(10)))
    assert {msgspec.json.decode(body.body)["cidr"] for body in found} == {"10.0.0.0/24"}
    assert len({id(body) for body in found}) == 1
    assert counting.times == 1


async def test_a_pool_that_changes_fast_is_shown_as_it_was_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)
    state, pools = a_state(OLD)
    await pool_summaries.summary(state, OLD)
    await asyncio.sleep(0.1)  # counting rests in between
    counting.go_on.clear()
    pools.put(NEW)
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/24", "no request waits"
    await asyncio.sleep(0.05)
    assert counting.times == 2, "but it is counted again"
    exact = asyncio.create_task(pool_summaries.snapshot(state, NEW, exactly=True))
    await asyncio.sleep(0.05)
    assert not exact.done()
    counting.go_on.set()
    assert network((await exact).summary) == "10.0.0.0/23"
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/23"


async def test_what_is_older_than_a_moment_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    monkeypatch.setattr(pool_summaries, "LATELY", 0.0)
    state, pools = a_state(OLD)
    await pool_summaries.summary(state, OLD)
    pools.put(NEW)
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/23"


async def test_no_user_is_shown_less_than_they_have_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    state, pools = a_state(OLD)
    await pool_summaries.summary(state, OLD)
    pools.put(NEW)
    await read_your_writes.catch_up(state, encode_cursor({"pool": 2}))
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/23"
    pools.put(NEWEST)
    assert network(await pool_summaries.summary(state, NEW)) == "10.0.0.0/23", "of the third they have not heard"


@pytest.mark.parametrize("said", [None, "", "rubbish", encode_cursor({"pool": "2"}), encode_cursor([1])])
async def test_who_says_nothing_sensible_has_heard_of_nothing(said: str | None) -> None:
    state, _ = a_state(OLD)
    await read_your_writes.catch_up(state, said)
    assert read_your_writes.by_the_client() == {}


async def test_a_page_that_cannot_be_made_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    state, _ = a_state(OLD)

    def fail(_: PoolSegments) -> str:
        raise ValueError("not today")

    with monkeypatch.context() as broken:
        broken.setattr(pool_summaries, "columns_of", fail)
        with pytest.raises(ValueError, match="not today"):
            await pool_summaries.segments(state, OLD)
    assert b"10.0.0.0/24" in (await pool_summaries.segments(state, OLD)).body


async def test_a_pool_that_is_gone_leaves_nothing_behind() -> None:
    state, pools = a_state(OLD)
    await pool_summaries.summary(state, OLD)
    assert state.beside("lab")
    del pools.found[key_of(OLD)]
    pools.tell(Change(key_of(OLD), OLD, None))
    assert not state.beside("lab")


async def test_dated_pages_are_made_anew_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    state, _ = a_state(OLD)

    monkeypatch.setattr(pool_summaries, "pool_history", lambda *given: given[-1])
    assert await pool_summaries.history(state, OLD, NOON) == json_body(NOON)
    assert await pool_summaries.history(state, OLD, NOON.replace(second=59)) == json_body(NOON)
    later = NOON.replace(minute=1)
    assert await pool_summaries.history(state, OLD, later) == json_body(later)


async def test_who_waits_for_a_page_gets_it_though_the_next_minute_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    Counting(monkeypatch)
    state, _ = a_state(OLD)
    go_on = threading.Event()

    def told(*given: object) -> object:
        assert go_on.wait(10)
        return given[-1]

    monkeypatch.setattr(pool_summaries, "pool_history", told)
    await pool_summaries.summary(state, OLD)
    later = NOON.replace(minute=1)
    asked = [asyncio.create_task(pool_summaries.history(state, OLD, moment)) for moment in (NOON, later, NOON)]
    await asyncio.sleep(0.05)
    go_on.set()
    assert await asyncio.gather(*asked) == [json_body(NOON), json_body(later), json_body(NOON)]
