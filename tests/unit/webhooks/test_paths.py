"""The secret in the path: shared by replicas, changed without a gap, and good for no longer than it must be."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from butler.kube.client import Client
from butler.kube.config import Connection
from butler.webhooks.secret_path import CHANGE_AFTER, LAST_GOOD, PREFIX, OwnPaths, Paths, SharedPaths
from unit.kube.fake_api import FakeApi

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SECRET = "/api/v1/namespaces/home/secrets/path"


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2027, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def passes(self, by: timedelta) -> None:
        self.now += by


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    server = FakeApi()
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with Client(Connection(api.url)) as connected:
        yield connected


def test_only_the_whole_path_is_known() -> None:
    clock = Clock()
    paths = Paths.anew(clock())
    assert paths.knows(paths.path, clock())
    assert paths.knows(f"{PREFIX}/{paths.coming}", clock())
    for stranger in ("", "/", PREFIX, f"{PREFIX}/", paths.path[:-1], paths.path + "0", paths.path.upper(), "/é\udcff"):
        assert not paths.knows(stranger, clock())


def test_a_changed_path_is_known_before_and_the_last_one_only_for_a_moment() -> None:
    clock = Clock()
    before = Paths.anew(clock())
    after = before.changed(clock())
    assert before.knows(after.path, clock()), "by a replica that has not heard of the change"
    assert after.knows(before.path, clock()), "from an API server that has not heard of the change"
    clock.passes(LAST_GOOD)
    assert not after.knows(before.path, clock()), "a reader of the error has nothing"


def test_nothing_of_it_is_shown() -> None:
    paths = Paths.anew(Clock()())
    assert paths.current not in repr(paths)


async def test_a_process_of_its_own_changes_its_path_every_hour() -> None:
    clock = Clock()
    source = OwnPaths(clock)
    first = await source.fetch()
    assert await source.fetch() is first
    clock.passes(CHANGE_AFTER)
    assert (await source.fetch()).current == first.coming


async def test_replicas_agree_and_change_together(client: Client, api: FakeApi) -> None:
    clock = Clock()
    one, other = (SharedPaths(client, "home", "path", clock) for _ in range(2))
    first = await one.fetch()
    assert await other.fetch() == first, "a replica that starts at the same time changes nothing"
    assert len(api.objects[SECRET]["data"]) == 4
    clock.passes(CHANGE_AFTER)
    changed = await other.fetch()
    assert changed.current == first.coming
    assert await one.fetch() == changed


async def test_a_restart_changes_the_path(client: Client) -> None:
    """An API server that could not reach us may have disclosed it."""
    clock = Clock()
    first = await SharedPaths(client, "home", "path", clock).fetch()
    clock.passes(timedelta(minutes=10))
    second = await SharedPaths(client, "home", "path", clock).fetch()
    assert second.current == first.coming


@pytest.mark.parametrize("current", ["", "short", "../../x", "%%%", "0" * 63 + "G"])
async def test_a_secret_that_was_spoiled_is_made_anew(client: Client, api: FakeApi, current: str) -> None:
    clock = Clock()
    source = SharedPaths(client, "home", "path", clock)
    first = await source.fetch()
    api.objects[SECRET]["data"]["current"] = base64.b64encode(current.encode()).decode()
    second = await source.fetch()
    assert second.current not in (first.current, current)
    assert await source.fetch() == second
