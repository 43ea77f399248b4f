"""What the IPAllocation controller makes of answers: conflicts, a view that lags, a pool that may not exist."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.objects import key_of
from butler.api.tenantcluster import TenantClusterPhase, TenantClusterStatus
from butler.controllers.ipallocation.controller import LOOK_AGAIN, IPAllocationController
from butler.controllers.networkpool.metrics import IpamMetrics
from butler.kube.errors import Conflict, KubeError, NotFound, OutcomeUnknown
from unit.controllers.fake_server import FakeCache, FakeServer, Notebook, not_found, not_served
from unit.controllers.lives import DAY, NOW, allocation, pool, tenant

if TYPE_CHECKING:
    from butler.kube.controller import After

POOL = key_of(pool())


class Bench:
    """One controller, its server and its view."""

    def __init__(self, subject: IPAllocation, *, pools: Any = (), tenants: Any = ()) -> None:
        self.server = FakeServer(subject)
        self.view = self.server.view()
        self.pools = FakeCache(*pools)
        self.events = Notebook()
        self.metrics = CollectorRegistry()
        self.key = key_of(subject)
        self.controller = IPAllocationController(
            cast("Any", self.server),
            cast("Any", self.view),
            cast("Any", self.pools),
            cast("Any", FakeCache(*tenants)),
            cast("Any", self.events),
            retention=DAY,
            clock=lambda: NOW,
            metrics=IpamMetrics(self.metrics),
        )

    async def look(self) -> After | None:
        return await self.controller.reconcile(self.key)

    def catch_up(self) -> None:
        self.view.objects = dict(self.server.allocations)

    @property
    def writes(self) -> int:
        return self.server.counts["patch"] + self.server.counts["delete"]

    @property
    def now(self) -> IPAllocation | None:
        return self.server.allocations.get(self.key)


async def test_a_deletion_is_two_writes_with_the_pool_in_between() -> None:
    bench = Bench(allocation("Allocated", deleting=True, found=True), pools=[pool("50")])
    await bench.look()
    assert bench.now is not None
    assert bench.now.status.phase is IPAllocationPhase.RELEASED
    assert bench.now.status.addresses, "the record stays whole"
    assert bench.events.notes == [
        (
            "NetworkPool vlan40",
            "IPsReleased",
            "2 IPs (10.40.1.10-10.40.1.11) of IPAllocation web-nodes released: deleted by request",
        )
    ]
    bench.catch_up()
    assert await bench.look() is None
    assert bench.now is not None, "the pool has not taken note"
    bench.pools.objects[POOL] = pool(bench.now.metadata.resource_version)
    await bench.look()
    assert bench.now is None
    bench.catch_up()
    assert await bench.look() is None
    assert bench.writes == 2
    assert len(bench.events.notes) == 1


async def test_nothing_is_written_twice_while_the_view_lags() -> None:
    bench = Bench(allocation(finalizers=()))
    for _ in range(3):
        await bench.look()
    assert bench.writes == 1
    bench.catch_up()
    await bench.look()
    assert bench.writes == 1


async def test_a_write_that_failed_is_made_again() -> None:
    bench = Bench(allocation("Allocated", deleting=True), pools=[pool()])
    bench.server.trouble = [OutcomeUnknown("no answer")]
    with pytest.raises(OutcomeUnknown):
        await bench.look()
    assert not bench.events.notes
    await bench.look()
    assert bench.now is not None
    assert bench.now.status.phase is IPAllocationPhase.RELEASED
    labels = {"pool": "vlan40", "namespace": "butler-system", "step": "release"}
    assert bench.metrics.get_sample_value("butler_ipam_unknown_outcomes_total", labels) == 1


async def test_a_view_of_an_earlier_object_of_the_name_changes_nothing() -> None:
    bench = Bench(allocation("Allocated", deleting=True, uid="old"), pools=[pool()])
    bench.server.allocations[bench.key] = allocation("Allocated", uid="new")
    with pytest.raises(Conflict):
        await bench.look()
    assert bench.now is not None
    assert bench.now.status.phase is IPAllocationPhase.ALLOCATED


async def test_an_object_that_went_before_its_finalizer_came_is_no_error() -> None:
    bench = Bench(allocation(finalizers=()))
    bench.server.allocations.clear()
    assert await bench.look() == LOOK_AGAIN
    bench.catch_up()
    assert await bench.look() is None


async def test_without_its_pool_a_released_allocation_goes() -> None:
    bench = Bench(allocation("Released", deleting=True, released_at=NOW))
    await bench.look()
    assert bench.now is None
    assert bench.server.counts["get"] == 1, "the view is not enough to call a pool missing"


@pytest.mark.parametrize(
    "answer",
    [
        not_served(),
        not_found("vlan40", "tenantclusters"),
        not_found("vlan41", "networkpools"),
        not_found("vlan40", "networkpools", group=""),
        OutcomeUnknown("no answer"),
    ],
    ids=str,
)
async def test_a_pool_is_missing_only_when_the_server_says_so_of_this_very_pool(answer: KubeError) -> None:
    bench = Bench(allocation("Released", deleting=True, released_at=NOW))
    bench.server.answers[POOL] = answer
    with pytest.raises((NotFound, OutcomeUnknown)):
        await bench.look()
    assert bench.now is not None
    assert bench.writes == 0


async def test_a_pool_that_the_view_does_not_show_yet_is_waited_for() -> None:
    bench = Bench(allocation("Released", deleting=True, released_at=NOW))
    bench.server.pools[POOL] = pool("50")
    assert await bench.look() == LOOK_AGAIN
    bench.server.pools[POOL] = pool("100")
    await bench.look()
    assert bench.now is None


async def test_retention_ends_in_one_delete() -> None:
    bench = Bench(allocation("Released", released_at=NOW - DAY), pools=[pool()])
    await bench.look()
    await bench.look()
    assert bench.writes == bench.server.counts["delete"] == 1
    assert bench.now is None


async def test_the_delete_after_retention_hits_no_other_object_of_the_name() -> None:
    bench = Bench(allocation("Released", released_at=NOW - DAY, uid="old"))
    bench.server.allocations[bench.key] = allocation("Allocated", uid="new")
    with pytest.raises(Conflict):
        await bench.look()
    assert bench.now is not None


async def test_an_owner_costs_one_write() -> None:
    bench = Bench(allocation("Allocated"), tenants=[tenant("t1")])
    await bench.look()
    bench.catch_up()
    await bench.look()
    assert bench.writes == 1
    assert bench.now is not None
    assert bench.now.status.tenant_cluster_uid == "t1"
    assert bench.now.status.addresses


async def test_a_release_without_a_grant_is_not_told_on_the_pool() -> None:
    bench = Bench(allocation(deleting=True), pools=[pool()])
    await bench.look()
    assert bench.now is not None
    assert bench.now.status.phase is IPAllocationPhase.RELEASED
    assert not bench.events.notes


def granted_for(seconds: float) -> IPAllocation:
    subject = allocation("Allocated", found=True, noted="")
    status = msgspec.structs.replace(subject.status, allocated_at=NOW - timedelta(seconds=seconds))
    return msgspec.structs.replace(subject, status=status)


@pytest.mark.parametrize(("age", "others", "written"), [(4, (), 1), (4, ("Failed",), 1), (4, ("Pending",), 0)])
async def test_the_record_of_a_grant_waits_for_those_who_wait_for_addresses(
    age: float, others: tuple[str, ...], written: int
) -> None:
    bench = Bench(granted_for(age))
    for number, phase in enumerate(others):
        other = allocation(phase, name=f"other-{number}", uid=f"b{number}")
        bench.view.objects[key_of(other)] = other
    after = await bench.look()
    assert bench.writes == written
    assert (after is not None and after.seconds <= 3.0) == (not written), "and is looked at again soon"


async def test_but_not_for_ever() -> None:
    bench = Bench(granted_for(15))
    other = allocation(name="other", uid="b")
    bench.view.objects[key_of(other)] = other
    await bench.look()
    assert bench.writes == 1


@pytest.mark.parametrize(("phase", "writes"), [("Pending", 0), ("Ready", 1)])
async def test_the_grant_of_a_cluster_that_is_being_built_is_recorded_by_those_who_build_it(
    phase: str, writes: int
) -> None:
    ready = TenantClusterStatus(phase=TenantClusterPhase(phase))
    granted = allocation("Allocated", found=True, noted="")
    then = msgspec.structs.replace(granted.status, allocated_at=NOW - timedelta(minutes=5))
    bench = Bench(
        msgspec.structs.replace(granted, status=then), tenants=[msgspec.structs.replace(tenant(), status=ready)]
    )
    again = await bench.look()
    assert bench.writes == writes
    assert (again is not None) is not bool(writes)


async def test_nor_is_it_left_to_them_for_ever() -> None:
    granted = allocation("Allocated", found=True, noted="")
    then = msgspec.structs.replace(granted.status, allocated_at=NOW - timedelta(minutes=10))
    bench = Bench(msgspec.structs.replace(granted, status=then), tenants=[tenant()])
    await bench.look()
    assert bench.writes == 1
