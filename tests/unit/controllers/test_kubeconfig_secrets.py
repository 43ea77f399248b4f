"""A Secret that two need is read once or not at all, and never in an older version than the one that is known."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.objects import Key, version_of
from butler.controllers.kubeconfig_secrets import KEPT, KubeconfigSecrets
from butler.kube.errors import NotFound
from unit.controllers.tenantcluster.management import Management

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = Key("team-a", "web-admin-kubeconfig")


class Reading:
    def __init__(self) -> None:
        self.management = Management()
        self.now = 100.0
        self.secrets = KubeconfigSecrets(cast("Any", self.management), lambda: self.now)
        self.reads = 0
        self.management.before = self._count

    def _count(self, verb: str, plural: str) -> None:
        self.reads += (verb, plural) == ("get", "secrets")

    def write(self) -> str:
        body = {"metadata": {"name": KEY.name, "namespace": KEY.namespace}}
        return version_of(self.management.put("secrets", body))

    def shown(self) -> str:
        """Write it, and let the watch tell of it."""
        version = self.write()
        self.secrets.saw(self.management.objects["secrets"][KEY])
        return version

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        leads = asyncio.create_task(self.secrets.while_leading())
        await asyncio.sleep(0)
        yield
        leads.cancel()
        await asyncio.gather(leads, return_exceptions=True)


async def test_who_comes_second_does_not_read_again() -> None:
    it = Reading()
    version = it.write()
    first = await it.secrets.look(KEY, version)
    assert await it.secrets.take(KEY, version) == first
    assert it.reads == 1


async def test_it_is_kept_for_one_only() -> None:
    it = Reading()
    version = it.write()
    await it.secrets.look(KEY, version)
    await it.secrets.take(KEY, version)
    await it.secrets.take(KEY, version)
    assert it.reads == 2


async def test_another_version_is_read() -> None:
    it = Reading()
    await it.secrets.look(KEY, it.write())
    newer = it.write()
    assert version_of(await it.secrets.take(KEY, newer)) == newer


async def test_it_is_not_kept_for_long() -> None:
    it = Reading()
    version = it.write()
    await it.secrets.look(KEY, version)
    it.now += KEPT
    await it.secrets.take(KEY, version)
    assert it.reads == 2


async def test_one_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        await Reading().secrets.take(KEY, "1")


async def test_what_the_watch_brought_is_not_read() -> None:
    it = Reading()
    async with it.leading():
        version = it.shown()
        assert version_of(await it.secrets.look(KEY, version)) == version
        assert version_of(await it.secrets.take(KEY, version)) == version
    assert it.reads == 0


async def test_what_the_watch_brought_counts_only_in_the_version_that_is_asked_for() -> None:
    it = Reading()
    async with it.leading():
        it.shown()
        newer = it.write()
        assert version_of(await it.secrets.look(KEY, newer)) == newer
    assert it.reads == 1


async def test_a_process_that_does_not_lead_keeps_nothing() -> None:
    it = Reading()
    version = it.shown()
    await it.secrets.take(KEY, version)
    async with it.leading():
        it.shown()
    await it.secrets.take(KEY, version)
    assert it.reads == 2
