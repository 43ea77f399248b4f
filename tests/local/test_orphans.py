"""The orphan sweep on real servers: what it gives back, and what it must leave alone."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.kube.client import Client, Listed
from butler.kube.errors import Unreachable
from local.address_management import OURS, PATIENCE, TENANTS, Estate, an_estate, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.kube.resource import Resource
    from control_planes import ControlPlane

OFTEN: dict[str, Any] = {"sweep_every": 0.1, "sighting_gap": 0.5}


@pytest.fixture
async def estate(control_plane: ControlPlane, definitions: None) -> AsyncIterator[Estate]:
    async with an_estate(control_plane) as one:
        yield one


async def delete_tenant(estate: Estate, name: str = "web") -> None:
    await estate.client.delete(TENANTS, name, estate.namespace)


async def test_the_addresses_of_a_tenant_that_is_gone_come_back(estate: Estate) -> None:
    await estate.pool()
    tenant = await estate.tenant()
    async with estate.butler(**OFTEN):
        await estate.request("web-lb", finalizers=(OURS,))
        granted = await estate.phase("web-lb", "Allocated")
        assert granted.status.tenant_cluster_uid == tenant.metadata.uid
        await delete_tenant(estate)
        released = await estate.phase("web-lb", "Released")
        assert released.metadata.deletion_timestamp is None, "it stays for audit"
        assert released.status.addresses == granted.status.addresses
        gone = f"TenantCluster {estate.namespace}/web (uid {tenant.metadata.uid}) no longer exists"
        for kind in (ConditionType.READY, ConditionType.TENANT_FOUND):
            condition = find_condition(released.status.conditions, kind)
            assert condition is not None
            assert condition.status == "False"
            assert condition.message.endswith(gone)
        (told,) = await estate.events("OrphanedAllocationGC")
        held = f"{granted.status.start_address}-{granted.status.end_address}"
        assert told == f"2 IPs ({held}) of IPAllocation web-lb released: {gone}"
        await estate.allocated_ips(0)
        assert await estate.at_rest()
        assert estate.writes["ipallocations"] == 2, "the grant and the release"


async def test_requests_that_still_wait_are_collected_too(estate: Estate) -> None:
    tenant = await estate.tenant()
    async with estate.butler(**OFTEN):
        await estate.request("labelled", pool="nowhere", owner=tenant.metadata.uid, finalizers=(OURS,))
        await estate.request("seen", pool="nowhere")
        await estate.phase("labelled", "Failed")
        await estate.until("seen", lambda item: item.status.tenant_cluster_uid is not None, "owned")
        await delete_tenant(estate)
        await estate.phase("labelled", "Released")
        await estate.phase("seen", "Released")


async def test_a_tenant_made_anew_keeps_its_own_and_inherits_nothing(estate: Estate) -> None:
    await estate.pool()
    first = await estate.tenant()
    async with estate.butler(**OFTEN):
        await estate.request("old-lb", owner=first.metadata.uid)
        await estate.phase("old-lb", "Allocated")
        await delete_tenant(estate)
        second = await estate.tenant()
        await estate.request("new-lb", owner=second.metadata.uid)
        await estate.phase("old-lb", "Released")
        new = await estate.phase("new-lb", "Allocated")
        assert new.status.tenant_cluster_uid == second.metadata.uid
        await estate.allocated_ips(2)


async def test_an_allocation_made_ahead_of_its_tenant_is_no_orphan(estate: Estate) -> None:
    await estate.pool()
    await estate.tenant("other")
    async with estate.butler(**OFTEN):
        await estate.request("early")
        await estate.request("orphan", tenant="other")
        await estate.phase("early", "Allocated")
        orphan = await estate.phase("orphan", "Allocated")
        assert orphan.status.tenant_cluster_uid
        await delete_tenant(estate, "other")
        await estate.phase("orphan", "Released")
        assert (await estate.phase("early", "Allocated")).status.tenant_cluster_uid is None
        await estate.allocated_ips(2)


class SeesNoTenants(Client):
    """A server that answers lists of tenants with nothing, as one with a broken filter does."""

    async def list(self, resource: Resource[Any], *arguments: Any, **options: Any) -> Listed[Any]:
        listed = await super().list(resource, *arguments, **options)
        # The sweep's own lists are meant: those of the caches say which page size they want.
        return Listed([], listed.resource_version) if _is_a_sweep(resource, options) else listed


class CannotListTenants(Client):
    async def list(self, resource: Resource[Any], *arguments: Any, **options: Any) -> Listed[Any]:
        if _is_a_sweep(resource, options):
            raise Unreachable("the test says so")
        return await super().list(resource, *arguments, **options)


class CannotGetTenants(SeesNoTenants):
    async def get(self, resource: Resource[Any], *arguments: Any, **options: Any) -> Any:
        if resource.plural == TENANTS.plural:
            raise Unreachable("the test says so")
        return await super().get(resource, *arguments, **options)


def _is_a_sweep(resource: Resource[Any], options: dict[str, Any]) -> bool:
    return resource.plural == TENANTS.plural and "on_undecodable" not in options


async def test_lists_that_show_nothing_cost_no_tenant_anything(estate: Estate) -> None:
    await estate.pool()
    await estate.tenant("living")
    await estate.tenant("dying")
    async with estate.butler(client=SeesNoTenants, **OFTEN):
        await estate.request("kept", tenant="living")
        await estate.request("orphan", tenant="dying")
        await estate.phase("kept", "Allocated")
        await estate.phase("orphan", "Allocated")
        await delete_tenant(estate, "dying")
        await estate.phase("orphan", "Released")
        await asyncio.sleep(1)
        await estate.phase("kept", "Allocated")
        await estate.allocated_ips(2)


@pytest.mark.parametrize("client", [CannotListTenants, CannotGetTenants])
async def test_a_server_that_does_not_answer_costs_no_tenant_anything(estate: Estate, client: type[Client]) -> None:
    await estate.pool()
    await estate.tenant()
    async with estate.butler(client=client, **OFTEN) as operator:
        await estate.request("web-lb")
        await estate.phase("web-lb", "Allocated")
        await delete_tenant(estate)

        async def skipped() -> float:
            count = operator.metrics.registry.get_sample_value(
                "butler_ipam_orphan_sweeps_total", {"outcome": "skipped"}
            )
            return count or 0.0

        await eventually(skipped, lambda count: count >= 10, "ten sweeps that learned nothing")
        await estate.phase("web-lb", "Allocated")
    async with estate.butler(**OFTEN):
        await estate.phase("web-lb", "Released")


class ReleasesSlowly(Client):
    """A server that takes all the time in the world to release an orphan."""

    may_go_on: asyncio.Event
    asked: asyncio.Event

    async def patch(self, resource: Resource[Any], name: str, patch: Any, *arguments: Any, **options: Any) -> Any:
        if patch.get("status", {}).get("phase") == "Released":
            self.asked.set()
            await self.may_go_on.wait()
        return await super().patch(resource, name, patch, *arguments, **options)


async def test_many_orphans_hold_up_no_other(estate: Estate) -> None:
    await estate.pool(cidr="10.40.0.0/22")
    await estate.tenant("living")
    tenants = [await estate.tenant(f"dying-{number}") for number in range(12)]
    names = [f"orphan-{number}" for number in range(120)]
    owners = dict(zip(names, tenants * 10, strict=True))
    ReleasesSlowly.may_go_on, ReleasesSlowly.asked = asyncio.Event(), asyncio.Event()
    async with estate.butler(client=ReleasesSlowly, **OFTEN):
        for name, owner in owners.items():
            await estate.request(name, tenant=owner.metadata.name, owner=owner.metadata.uid, finalizers=(OURS,))
        for name in names:
            await estate.phase(name, "Allocated")
        for tenant in tenants:
            await delete_tenant(estate, tenant.metadata.name)
        await asyncio.wait_for(ReleasesSlowly.asked.wait(), PATIENCE)
        await estate.request("prompt", tenant="living")
        await estate.phase("prompt", "Allocated")
        ReleasesSlowly.may_go_on.set()
        for name in names:
            await estate.phase(name, "Released")
        await estate.allocated_ips(2)
