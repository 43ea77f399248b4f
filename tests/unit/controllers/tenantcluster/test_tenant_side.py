"""Talking to tenants: a dead one costs little, says the same every time, and keeps no other waiting."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
from butler.controllers.tenantcluster import tenant_side
from butler.controllers.tenantcluster.tenant_side import AT_ONCE, LONGEST_REASON, PATIENCE, TenantAccess
from butler.kube.errors import OutcomeUnknown, Unreachable
from butler.tenant.clusters import TenantResting
from unit.controllers.tenantcluster.management import Management, View, refusal
from unit.controllers.tenantcluster.site import NAMESPACE
from unit.controllers.tenantcluster.values import UID, cluster
from unit.kube import virtual_time

SECRET = "web-admin-kubeconfig"  # its name


class Clients:
    """The clients of tenants; `trouble` is what the next ones meet."""

    def __init__(self) -> None:
        self.trouble: list[Exception] = []

    async def client(self, *_: object) -> str:
        if self.trouble:
            raise self.trouble.pop(0)
        return "a client"

    async def forget(self, _: str) -> None: ...


class Town:
    """One tenant, seen through TenantAccess."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.management = Management()
        self.management.put("secrets", {"metadata": {"name": SECRET, "namespace": NAMESPACE}})
        self.clients = Clients()
        self.asked = 0
        self.answer: Any = 0
        kubeconfigs = View(self.management, tenant_side.SECRETS)
        self.side = TenantAccess(
            cast("Any", self.management),
            cast("Any", None),
            cast("Any", kubeconfigs),
            cast("Any", self.clients),
            KubeconfigSecrets(cast("Any", self.management)),
        )
        monkeypatch.setattr(tenant_side, "delete_load_balancers", self._answer)
        monkeypatch.setattr(tenant_side, "load_balancers", self._none)

    async def _answer(self, *_: object) -> Any:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, asyncio.Event):
            await self.answer.wait()
        return self.answer

    async def _none(self, _: object) -> list[Any]:
        return []

    async def left(self) -> str:
        return await self.side.balancers_left(cluster())


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch) -> Town:
    return Town(monkeypatch)


async def test_a_tenant_that_does_not_answer_says_the_same_while_it_rests(town: Town) -> None:
    """A reason that counts seconds would be written to the status every second."""
    town.clients.trouble = [
        Unreachable("https://10.40.0.20:6443 cannot be reached: refused"),
        TenantResting("asking again in 7 s", 7.0),
        TenantResting("asking again in 6 s", 6.0),
    ]
    said = [await town.left() for _ in range(3)]
    assert len(set(said)) == 1
    assert "refused" in said[0]
    assert await town.left() == ""


async def test_what_a_tenant_says_is_cut_to_what_a_status_can_hold(town: Town) -> None:
    town.answer = refusal(403, "Forbidden", "x" * 100_000)
    assert len(await town.side.balancers_left(cluster())) < LONGEST_REASON + 100


async def test_a_tenant_without_a_kubeconfig_has_no_load_balancers(town: Town) -> None:
    town.management.drop("secrets", NAMESPACE, SECRET)
    assert await town.side.balancers_left(cluster()) == ""
    assert town.asked == 0


def test_a_tenant_that_drags_its_answers_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        town = Town(monkeypatch)
        town.answer = asyncio.Event()
        began = virtual_time.now()
        assert "not done within" in await town.side.balancers_left(cluster())
        assert virtual_time.now() - began == pytest.approx(PATIENCE, abs=1)

    virtual_time.run(main())


async def test_dead_tenants_take_only_so_many_workers(town: Town) -> None:
    town.answer = asyncio.Event()
    slow = [asyncio.create_task(town.side.balancers_left(cluster(uid=f"{number:08}"))) for number in range(AT_ONCE)]
    for number in range(AT_ONCE):
        town.management.put("secrets", {"metadata": {"name": SECRET, "namespace": f"web-{number:08}"}})
    await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)
    assert town.asked == AT_ONCE
    assert "not been asked yet" in await town.side.balancers_left(cluster()), "and comes again"
    assert town.asked == AT_ONCE
    town.answer.set()
    await asyncio.gather(*slow)
    assert await town.side.balancers_left(cluster()) == ""


async def test_an_outcome_that_is_not_known_is_remembered_for_who_gets_no_turn(town: Town) -> None:
    town.answer = OutcomeUnknown("the answer did not come")
    await town.left()
    town.clients.trouble = [TenantResting("asking again in 1 s", 1.0)]
    assert "the answer did not come" in await town.left()
    await town.side.forget(UID)
