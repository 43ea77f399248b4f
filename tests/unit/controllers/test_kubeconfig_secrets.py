"""A Secret that two need is read once, and never in an older version than the one that is known."""

from __future__ import annotations

from typing import Any, cast

import pytest

from butler.api.objects import Key, version_of
from butler.controllers.kubeconfig_secrets import KEPT, KubeconfigSecrets
from butler.kube.errors import NotFound
from unit.controllers.tenantcluster.management import Management

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


async def test_who_comes_second_does_not_read_again() -> None:
    it = Reading()
    version = it.write()
    first = await it.secrets.read_and_keep(KEY)
    assert await it.secrets.take(KEY, version) == first
    assert it.reads == 1


async def test_it_is_kept_for_one_only() -> None:
    it = Reading()
    version = it.write()
    await it.secrets.read_and_keep(KEY)
    await it.secrets.take(KEY, version)
    await it.secrets.take(KEY, version)
    assert it.reads == 2


async def test_another_version_is_read() -> None:
    it = Reading()
    it.write()
    await it.secrets.read_and_keep(KEY)
    newer = it.write()
    assert version_of(await it.secrets.take(KEY, newer)) == newer


async def test_it_is_not_kept_for_long() -> None:
    it = Reading()
    version = it.write()
    await it.secrets.read_and_keep(KEY)
    it.now += KEPT
    await it.secrets.take(KEY, version)
    assert it.reads == 2


async def test_one_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        await Reading().secrets.take(KEY, "1")
