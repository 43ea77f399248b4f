"""The life of an allocation from creation to its end, on real servers, with the writes it costs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType
from butler.api.objects import Key
from butler.controllers.ipallocation.release import Releases
from butler.kube.absence import read
from butler.kube.config import Connection
from butler.kube.errors import NotFound
from butler.kube.resource import untyped
from butler.rules.allocation.release import Grounds
from fault_proxy import FaultProxy, Seeded
from local.address_management import ALLOCATIONS, OURS, POOLS, TENANTS, Estate, an_estate, eventually

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

FOREIGN = "example.com/theirs"


@pytest.fixture
async def estate(control_plane: ControlPlane, definitions: None) -> AsyncIterator[Estate]:
    async with an_estate(control_plane) as one:
        yield one


@pytest.mark.parametrize(("finalizers", "writes"), [((), 4), ((OURS,), 3)], ids=["by hand", "by Butler"])
async def test_a_life_costs_few_writes_and_leaves_nothing(
    estate: Estate, finalizers: tuple[str, ...], writes: int
) -> None:
    """The grant, the release and the end; and before them the finalizer, where the creator did not set it."""
    await estate.pool()
    await estate.tenant()
    async with estate.butler():
        await estate.request("web-lb", finalizers=finalizers)
        granted = await estate.phase("web-lb", "Allocated")
        assert OURS in granted.metadata.finalizers
        held = f"{granted.status.start_address}-{granted.status.end_address}"
        await estate.delete("web-lb")
        await estate.gone("web-lb")
        await estate.allocated_ips(0)
        assert await estate.at_rest()
        assert estate.writes["ipallocations"] == writes
        assert await estate.events("IPsReleased") == [
            f"2 IPs ({held}) of IPAllocation web-lb released: deleted by request"
        ]


async def test_kubectl_delete_returns(control_plane: ControlPlane, estate: Estate) -> None:
    await estate.pool()
    async with estate.butler():
        await estate.request("web-lb")
        await estate.phase("web-lb", "Allocated")
        command = ("delete", "ipallocation", "web-lb", "-n", estate.namespace, "--wait", "--timeout=60s")
        await asyncio.to_thread(control_plane.kubectl, *command)
        assert await estate.read("web-lb") is None


async def test_many_go_at_once_and_all_addresses_come_back(estate: Estate) -> None:
    names = [f"lb-{number}" for number in range(100)]
    await estate.pool()
    async with estate.butler():
        await asyncio.gather(*(estate.request(name, finalizers=(OURS,)) for name in names))
        await estate.allocated_ips(200)
        for name in names:
            await estate.phase(name, "Allocated")
        before = estate.writes.copy()
        await asyncio.gather(*(estate.delete(name) for name in names))
        await estate.gone(*names)
        await estate.allocated_ips(0)
        assert estate.writes["ipallocations"] - before["ipallocations"] == 200
        assert await estate.at_rest()


@pytest.mark.parametrize("pause", [0.0, 0.003, 0.01])
async def test_created_and_deleted_at_once_leaves_nothing(estate: Estate, pause: float) -> None:
    await estate.pool()
    names = [f"lb-{number}" for number in range(40)]

    async def flicker(number: int, name: str) -> None:
        await estate.request(name, finalizers=(OURS,) if number % 2 else ())
        await asyncio.sleep(pause)
        await estate.delete(name)

    async with estate.butler():
        await asyncio.gather(*(flicker(number, name) for number, name in enumerate(names)))
        await estate.gone(*names)
        await estate.allocated_ips(0)
        await eventually(estate.read_pool, lambda pool: not pool.status.intents, "nothing is promised any more")


async def test_a_successor_of_the_same_name_is_another_allocation(estate: Estate) -> None:
    await estate.pool(cidr="10.40.0.0/28")
    async with estate.butler():
        first = await estate.request("web-lb", 12)
        await estate.phase("web-lb", "Allocated")
        await estate.delete("web-lb")
        await estate.gone("web-lb")
        second = await estate.request("web-lb", 12)
        granted = await estate.phase("web-lb", "Allocated")
        assert granted.metadata.uid == second.metadata.uid != first.metadata.uid
        await estate.allocated_ips(12)


async def test_finalizers_of_others_stay_and_hold_it_while_the_addresses_are_free(estate: Estate) -> None:
    await estate.pool()
    async with estate.butler():
        await estate.request("web-lb", finalizers=(FOREIGN,))
        granted = await estate.phase("web-lb", "Allocated")
        assert set(granted.metadata.finalizers) == {FOREIGN, OURS}
        await estate.delete("web-lb")
        left = await estate.until("web-lb", lambda item: OURS not in item.metadata.finalizers, "let go by Butler")
        assert left.metadata.finalizers == (FOREIGN,)
        assert left.status.phase == "Released"
        await estate.allocated_ips(0)
        await estate.client.patch(ALLOCATIONS, "web-lb", {"metadata": {"finalizers": None}}, estate.namespace)
        await estate.gone("web-lb")


async def test_what_was_deleted_while_butler_was_away_goes_when_it_is_back(estate: Estate) -> None:
    await estate.pool()
    async with estate.butler():
        await estate.request("granted")
        await estate.phase("granted", "Allocated")
    await estate.request("waiting", finalizers=(OURS,))
    await estate.delete("granted")
    await estate.delete("waiting")
    assert await estate.read("granted") is not None
    async with estate.butler():
        await estate.gone("granted", "waiting")
        await estate.allocated_ips(0)


async def test_a_request_for_a_pool_that_never_was_can_be_deleted(estate: Estate) -> None:
    async with estate.butler():
        await estate.request("web-lb", pool="nowhere")
        await estate.phase("web-lb", "Failed")
        await estate.delete("web-lb")
        await estate.gone("web-lb")


async def test_a_pool_that_goes_takes_its_waiting_releases_along(estate: Estate) -> None:
    await estate.pool()
    async with estate.butler():
        await estate.request("web-lb")
        await estate.phase("web-lb", "Allocated")
        await estate.client.delete(POOLS, "pool", estate.namespace)
        await estate.delete("web-lb")
        await estate.gone("web-lb")
        key = Key(estate.namespace, "pool")
        await eventually(lambda: read(estate.client, POOLS, key), lambda pool: pool is None, "the pool is gone")


async def test_what_butler_releases_stays_for_audit_and_then_goes(estate: Estate) -> None:
    await estate.pool()
    async with estate.butler() as operator:
        await estate.request("web-lb-1")
        granted = await estate.phase("web-lb-1", "Allocated")
        releases = Releases(
            estate.client,
            operator.cache(POOLS, namespace=estate.namespace),
            operator.events,
            cast("Any", Ignored()),
            lambda: datetime.now(UTC),
        )
        await releases.release(granted, Grounds("none of its addresses was in use for 10 minutes", "released"))
        await estate.allocated_ips(0)
        kept = await estate.phase("web-lb-1", "Released")
        assert kept.status.addresses == granted.status.addresses
        assert kept.status.allocated_at == granted.status.allocated_at
        assert kept.metadata.deletion_timestamp is None
        ready = find_condition(kept.status.conditions, ConditionType.READY)
        assert ready is not None
        assert (ready.reason, ready.message.partition(": ")[2]) == (
            "Released",
            "none of its addresses was in use for 10 minutes",
        )
        await estate.request("other")
        successor = await estate.phase("other", "Allocated")
        assert successor.status.start_address == granted.status.start_address, "kept for audit is not kept from others"
        assert await estate.at_rest()
    async with estate.butler(retention=timedelta(seconds=0)):
        await estate.gone("web-lb-1")
        await estate.allocated_ips(2)
        assert (await estate.phase("other", "Allocated")).status == successor.status


async def test_a_tenant_that_comes_later_is_recorded_with_one_write(estate: Estate) -> None:
    await estate.pool()
    async with estate.butler():
        await estate.request("web-lb", finalizers=(OURS,))
        granted = await estate.phase("web-lb", "Allocated")
        found = find_condition(granted.status.conditions, ConditionType.TENANT_FOUND)
        assert found is not None
        assert (found.status, granted.status.tenant_cluster_uid) == ("False", None)
        tenant = await estate.tenant()
        known = await estate.until("web-lb", lambda item: item.status.tenant_cluster_uid is not None, "owned")
        assert known.status.tenant_cluster_uid == tenant.metadata.uid
        assert known.status.addresses == granted.status.addresses
        found = find_condition(known.status.conditions, ConditionType.TENANT_FOUND)
        assert found is not None
        assert found.status == "True"
        assert await estate.at_rest()
        assert estate.writes["ipallocations"] == 2


async def test_only_a_server_that_knows_the_kind_can_say_that_an_object_is_absent(estate: Estate) -> None:
    nothing = Key(estate.namespace, "nothing")
    for known in (TENANTS, POOLS):
        assert await read(estate.client, cast("Any", known), nothing) is None
    unknown = untyped("butler.butlerlabs.dev", "v1alpha1", "nosuchthings", "NoSuchThing")
    other_version = untyped("butler.butlerlabs.dev", "v9", "tenantclusters", "TenantCluster")
    for resource in (unknown, other_version):
        with pytest.raises(NotFound):
            await read(estate.client, resource, nothing)


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_bad_network_delays_the_end_and_prevents_none(
    control_plane: ControlPlane, estate: Estate, seed: int
) -> None:
    await estate.pool()
    names = [f"lb-{number}" for number in range(20)]
    faults = Seeded(seed, rate=0.3, longest_delay=0.1, only=("read", "write"))
    async with (
        FaultProxy(control_plane.url, control_plane.tls, control_plane.headers, plan=faults) as proxy,
        estate.butler(connection=Connection(proxy.url)),
    ):
        for name in names:
            await estate.request(name)
        for name in names:
            await estate.phase(name, "Allocated")
            await estate.delete(name)
        await estate.gone(*names)
        await estate.allocated_ips(0)


class Ignored:
    """Metrics that the test does not read."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None
