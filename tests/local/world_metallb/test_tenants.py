"""Clients for tenants: one each, made when needed, and closed when the cluster is gone and the client is not in use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from butler.api.objects import Key
from butler.kube.operator import Operator
from butler.kube.resource import NODES, SECRETS
from butler.local.world.tenants import SUFFIX, NoWayIn, TenantConnections
from local.world_metallb.estate import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from local.world_metallb.estate import Estate


@pytest.fixture
async def tenants(estate: Estate) -> AsyncIterator[TenantConnections]:
    operator = Operator(estate.client, "test")
    made = TenantConnections(operator)
    running = asyncio.create_task(operator.run(handle_signals=False))
    yield made
    operator.stop()
    await running


async def test_a_tenant_is_known_by_its_secret_and_has_one_client(estate: Estate, tenants: TenantConnections) -> None:
    heard: list[Key] = []
    tenants.on_change(heard.append)
    key = (await estate.add_tenant()).key
    await until(lambda: _true(key in tenants))
    assert heard == [key]
    assert tenants.keys() == [key]
    async with tenants.borrow(key) as first, tenants.borrow(key) as second:
        assert first is second
        assert len((await first.list(NODES)).items) == 1
        assert tenants.is_current(key, first)


async def test_a_tenant_without_a_usable_secret_cannot_be_entered(estate: Estate, tenants: TenantConnections) -> None:
    with pytest.raises(NoWayIn):
        async with tenants.borrow(Key("nowhere", "unknown")):
            pass
    key = (await estate.add_tenant()).key
    await until(lambda: _true(key in tenants))
    await estate.client.patch(SECRETS, key.name + SUFFIX, {"data": {"admin.conf": "e30="}}, key.namespace)

    async def refused() -> bool:
        try:
            async with tenants.borrow(key):
                return False
        except NoWayIn:
            return True

    await until(refused)


async def test_who_has_borrowed_a_client_may_use_it_to_the_end(estate: Estate, tenants: TenantConnections) -> None:
    tenant = await estate.add_tenant()
    key = tenant.key
    await until(lambda: _true(key in tenants))
    async with tenants.borrow(key) as client:
        await estate.client.delete(SECRETS, key.name + SUFFIX, key.namespace)
        await until(lambda: _true(key not in tenants))
        assert not tenants.is_current(key, client)
        assert len((await client.list(NODES)).items) == 1
        assert client.transport._sessions
    assert not client.transport._sessions


async def test_a_cluster_made_anew_has_another_way_in(estate: Estate, tenants: TenantConnections) -> None:
    tenant = await estate.add_tenant()
    await until(lambda: _true(tenant.key in tenants))
    async with tenants.borrow(tenant.key) as old:
        pass
    await estate.remove_control_plane(tenant.key)
    await estate.add_control_plane(tenant.key)
    await until(lambda: _true(tenant.key in tenants and not tenants.is_current(tenant.key, old)))
    async with tenants.borrow(tenant.key) as new:
        assert new is not old
        assert (await new.list(NODES)).items == []


async def _true(value: bool) -> bool:
    return value
