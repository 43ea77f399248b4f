"""MetalLB's own definitions, as it publishes them: they take what Butler writes, and what they add is no drift."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from build_kubernetes import UnavailableError

import metallb_controller
from butler.api.objects import version_of
from butler.kube.errors import AlreadyExists
from butler.kube.resource import NAMESPACES
from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import (
    ADDRESS_POOLS,
    ADVERTISEMENTS,
    NAMESPACE,
    ApplyOutcome,
    address_pool,
    advertisement,
    drift_of,
    publish,
    read,
)
from local.tenant.metallb_kinds import DEFINITIONS, A, B, edit, install_metallb_kinds, pool, ranges, remove_kinds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from butler.api.objects import Json
    from butler.kube.client import Client

USED = {definition["metadata"]["name"] for definition in DEFINITIONS}


@pytest.fixture(scope="module")
def real_definitions() -> list[Json]:
    try:
        return [definition for definition in metallb_controller.definitions() if definition["metadata"]["name"] in USED]
    except UnavailableError as error:
        pytest.skip(f"MetalLB's definitions cannot be had: {error}")


@pytest.fixture
async def metallb(tenant: Client, nothing_left: None, real_definitions: list[Json]) -> AsyncIterator[Client]:
    """The kinds as MetalLB defines them, in the place of those that other tests use."""
    await remove_kinds(tenant)
    await install_metallb_kinds(tenant, real_definitions)
    with contextlib.suppress(AlreadyExists):
        await tenant.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    yield tenant
    await remove_kinds(tenant)


async def test_everything_that_is_written_is_in_the_schema(metallb: Client) -> None:
    pools = (address_pool(ranges(A)), address_pool(ranges(A, B), auto_assign=False, drained_by="one"))
    for resource, body in [*((ADDRESS_POOLS, obj) for obj in pools), (ADVERTISEMENTS, advertisement())]:
        taken = await metallb.create(resource, body, dry_run=True, field_validation="Strict")
        assert taken["spec"] == body["spec"], "nothing pruned, nothing added"


async def test_ranges_come_and_go_and_nothing_is_written_at_rest(metallb: Client) -> None:
    assert (await publish(metallb, await read(metallb), ranges(A))).outcome is ApplyOutcome.WRITTEN
    written = await read(metallb)
    assert written.addresses == (A,)
    assert (await publish(metallb, written, ranges(A))).outcome is ApplyOutcome.CURRENT
    walk: list[tuple[list[str], dict[str, Any]]] = [
        ([A, B], {}),
        ([A, B], {"auto_assign": False, "drained_by": "one"}),
        ([A, B], {"auto_assign": False, "drained_by": "two"}),
        ([A], {}),
        ([], {}),
    ]
    for given, options in walk:
        result = await publish(metallb, await read(metallb), ranges(*given), **options)
        assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ()), (given, options)
        again = await publish(metallb, await read(metallb), ranges(*given), **options)
        assert again.outcome is ApplyOutcome.CURRENT, (given, options)
        wanted = address_pool(ranges(*given), **options)["spec"] if given else None
        assert (again.pool and again.pool["spec"]) == wanted, (given, options)


async def test_what_the_definition_fills_in_is_no_drift(metallb: Client) -> None:
    bare: Json = {"metadata": {"name": POOL, "namespace": NAMESPACE}, "spec": {"addresses": [A]}}
    await metallb.create(ADDRESS_POOLS, bare, field_manager="kubectl-create")
    live = await pool(metallb)
    assert live["spec"] == {"addresses": [A], "autoAssign": True, "avoidBuggyIPs": False}
    assert drift_of(address_pool(ranges(A)), live) == ()
    result = await publish(metallb, await read(metallb), ranges(A))
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ()), "the label was missing"


async def test_metallbs_own_count_makes_a_version_old_and_is_no_drift(metallb: Client) -> None:
    """The count follows the addresses that Services get: what was decided before is worth another look."""
    await publish(metallb, await read(metallb), ranges(A))
    slept = await read(metallb)
    count = {"status": {"assignedIPv4": 1, "assignedIPv6": 0, "availableIPv4": 7, "availableIPv6": 0}}
    await metallb.patch(ADDRESS_POOLS, POOL, count, NAMESPACE, subresource="status", field_manager="controller")
    counted = await pool(metallb)
    assert version_of(counted) != version_of(slept.pool)
    assert (await publish(metallb, slept, ranges(A, B))).outcome is ApplyOutcome.CONTESTED
    assert (await publish(metallb, slept, [])).outcome is ApplyOutcome.CONTESTED
    assert await pool(metallb) == counted
    assert (await publish(metallb, await read(metallb), ranges(A))).outcome is ApplyOutcome.CURRENT
    result = await publish(metallb, await read(metallb), ranges(A, B))
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ())
    assert (await pool(metallb))["status"] == count["status"]


async def test_of_many_that_publish_at_the_same_time_one_is_heard(metallb: Client) -> None:
    await publish(metallb, await read(metallb), ranges(A))
    standing = await read(metallb)
    wanted = [[A, f"10.40.{number}.0-10.40.{number}.7"] for number in range(2, 10)]
    results = await asyncio.gather(*(publish(metallb, standing, ranges(*row)) for row in wanted))
    written = [each for each, result in zip(wanted, results, strict=True) if result.is_current]
    assert len(written) == 1
    assert {result.outcome for result in results} == {ApplyOutcome.WRITTEN, ApplyOutcome.CONTESTED}
    assert (await pool(metallb))["spec"]["addresses"] == written[0]


async def test_a_field_that_is_not_ours_survives(metallb: Client) -> None:
    await publish(metallb, await read(metallb), ranges(A))
    theirs = {"serviceAllocation": {"priority": 7, "namespaces": ["payments"]}}
    await edit(metallb, theirs)
    assert (await publish(metallb, await read(metallb), ranges(A))).outcome is ApplyOutcome.CURRENT
    await publish(metallb, await read(metallb), ranges(A, B), auto_assign=False, drained_by="one")
    await publish(metallb, await read(metallb), ranges(A, B))
    assert (await pool(metallb))["spec"] == address_pool(ranges(A, B))["spec"] | theirs
