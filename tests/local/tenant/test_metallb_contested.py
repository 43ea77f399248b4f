"""Another client writes the same pool, on real API servers: a version that was not read is never written over, a drain
leaves nothing behind, and every drain makes the versions before it old."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butler.api.labels import Annotation, FieldManager
from butler.api.objects import uid_of, version_of
from butler.kube.errors import ApiError, Conflict
from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import (
    ADDRESS_POOLS,
    ADVERTISEMENT,
    ADVERTISEMENTS,
    NAMESPACE,
    ApplyOutcome,
    address_pool,
    differs,
    drift_of,
    publish,
    read,
)
from local.tenant.metallb_kinds import A, B, edit, pool, ranges

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.kube.client import Client

DRAINED_BY = Annotation.DRAINED_BY.value
NO_OBJECT = "00000000-0000-4000-8000-000000000000"


async def recreate(tenant: Client, *texts: str) -> Json:
    """Another client's pool in the place of the one that was there."""
    await tenant.delete(ADDRESS_POOLS, POOL, NAMESPACE)
    return await tenant.create(ADDRESS_POOLS, address_pool(ranges(*texts)), field_manager="kubectl-create")


def marks(live: Json) -> Json:
    return dict(live["metadata"].get("annotations") or {})


# What the API servers promise, and everything here rests on.


@pytest.mark.parametrize(("wrong", "code"), [("version", 409), ("uid", 422), ("both", 409)])
async def test_an_apply_over_another_version_or_another_object_is_refused(
    with_metallb: Client, wrong: str, code: int
) -> None:
    """No two objects share a version, so that another object is always a matter of both."""
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    stale = version_of(await pool(tenant))
    await edit(tenant, {"addresses": [B]})
    live = await pool(tenant)
    body = address_pool(ranges(A))
    body["metadata"]["resourceVersion"] = version_of(live) if wrong == "uid" else stale
    body["metadata"]["uid"] = uid_of(live) if wrong == "version" else NO_OBJECT
    with pytest.raises(ApiError) as refused:
        await tenant.apply(ADDRESS_POOLS, body, force=True, field_manager=FieldManager.IPAM)
    assert refused.value.code == code
    assert await pool(tenant) == live


async def test_an_apply_over_an_object_that_is_gone_does_not_create_it(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    gone = await pool(tenant)
    await tenant.delete(ADDRESS_POOLS, POOL, NAMESPACE)
    body = address_pool(ranges(B))
    body["metadata"] |= {"resourceVersion": version_of(gone), "uid": uid_of(gone)}
    with pytest.raises(Conflict):
        await tenant.apply(ADDRESS_POOLS, body, force=True, field_manager=FieldManager.IPAM)
    assert (await read(tenant)).pool is None


async def test_a_deletion_of_another_version_or_another_object_is_refused(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    first = await pool(tenant)
    await edit(tenant, {"addresses": [B]})
    live = await pool(tenant)
    for uid, version in ((uid_of(live), version_of(first)), (NO_OBJECT, version_of(live))):
        with pytest.raises(Conflict):
            await tenant.delete(ADDRESS_POOLS, POOL, NAMESPACE, uid=uid, resource_version=version)
    assert await pool(tenant) == live


# Publishing.


async def test_a_pool_that_was_written_since_is_not_written_over(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    slept = await read(tenant)
    await publish(tenant, await read(tenant), ranges(B))
    result = await publish(tenant, slept, ranges(A, B))
    assert (result.outcome, result.before, result.drift) == (ApplyOutcome.CONTESTED, (A,), ())
    assert (await pool(tenant))["spec"]["addresses"] == [B]
    assert (await publish(tenant, await read(tenant), ranges(A, B))).outcome is ApplyOutcome.WRITTEN, (
        "after another look"
    )


@pytest.mark.parametrize("given", [[A], [A, B], []])
async def test_a_pool_that_was_replaced_since_is_neither_written_over_nor_deleted(
    with_metallb: Client, given: list[str]
) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(B))
    slept = await read(tenant)
    theirs = await recreate(tenant, "10.40.2.0-10.40.2.7")
    assert (await publish(tenant, slept, ranges(*given))).outcome is ApplyOutcome.CONTESTED
    assert await pool(tenant) == theirs


async def test_a_pool_that_was_created_since_is_not_written_over(with_metallb: Client) -> None:
    tenant = with_metallb
    slept = await read(tenant)
    theirs = await tenant.create(ADDRESS_POOLS, address_pool(ranges(B)), field_manager="kubectl-create")
    result = await publish(tenant, slept, ranges(A))
    assert (result.outcome, result.before) == (ApplyOutcome.CONTESTED, None)
    assert await pool(tenant) == theirs
    result = await publish(tenant, await read(tenant), ranges(A))
    assert result.drift == (f"IPAddressPool default-pool: addresses was {B} (set by kubectl-create)",)


async def test_a_pool_that_was_deleted_since_does_not_come_back(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    slept = await read(tenant)
    assert (await publish(tenant, await read(tenant), [])).outcome is ApplyOutcome.WRITTEN
    assert (await publish(tenant, slept, ranges(A, B))).outcome is ApplyOutcome.CONTESTED
    assert (await read(tenant)).pool is None


async def test_a_pool_that_was_written_since_is_not_withdrawn(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    slept = await read(tenant)
    await publish(tenant, await read(tenant), ranges(A, B))
    assert (await publish(tenant, slept, [])).outcome is ApplyOutcome.CONTESTED
    assert (await pool(tenant))["spec"]["addresses"] == [A, B]


async def test_two_that_withdraw_at_the_same_time_both_see_it_withdrawn(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    first, second = await read(tenant), await read(tenant)
    for standing in (first, second):
        result = await publish(tenant, standing, [])
        assert (result.outcome, result.pool) == (ApplyOutcome.WRITTEN, None)


async def test_an_advertisement_needs_no_version(with_metallb: Client) -> None:
    """It names no address, and every one of us says the same."""
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    await tenant.delete(ADVERTISEMENTS, ADVERTISEMENT, NAMESPACE)
    slept = await read(tenant)
    await publish(tenant, await read(tenant), ranges(A))
    assert (await publish(tenant, slept, ranges(A))).is_current


# Drains.


@pytest.mark.parametrize("applied_before", [False, True], ids=["created", "applied"])
async def test_the_mark_of_a_drain_comes_and_goes_with_it(with_metallb: Client, applied_before: bool) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    if applied_before:
        await publish(tenant, await read(tenant), ranges(A, B))
    given = ranges(A, B) if applied_before else ranges(A)
    result = await publish(tenant, await read(tenant), given, auto_assign=False, drained_by="one")
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ()), "what we wrote ourselves is no drift"
    drained = await pool(tenant)
    assert result.pool == drained
    assert marks(drained) == {DRAINED_BY: "one"}
    assert drained["spec"]["autoAssign"] is False
    result = await publish(tenant, await read(tenant), ranges(A))
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ())
    after = await pool(tenant)
    assert marks(after) == {}
    assert after["spec"] == address_pool(ranges(A))["spec"]
    assert not [entry for entry in after["metadata"]["managedFields"] if DRAINED_BY in str(entry)]
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT


async def test_a_drain_that_has_to_create_the_pool_leaves_nothing_behind(with_metallb: Client) -> None:
    tenant = with_metallb
    result = await publish(tenant, await read(tenant), ranges(A), auto_assign=False, drained_by="one")
    assert (result.outcome, marks(await pool(tenant))) == (ApplyOutcome.WRITTEN, {DRAINED_BY: "one"})
    await publish(tenant, await read(tenant), ranges(A))
    assert marks(await pool(tenant)) == {}
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT


async def test_another_drain_makes_the_version_of_the_first_one_old(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A, B))
    first = await publish(tenant, await read(tenant), ranges(A, B), auto_assign=False, drained_by="one")
    frozen = await read(tenant)
    again = await publish(tenant, frozen, ranges(A, B), auto_assign=False, drained_by="one")
    assert (again.outcome, again.pool) == (ApplyOutcome.CURRENT, first.pool), "the same drain is not begun twice"
    second = await publish(tenant, await read(tenant), ranges(A, B), auto_assign=False, drained_by="two")
    assert (second.outcome, second.drift) == (ApplyOutcome.WRITTEN, ())
    assert version_of(second.pool) != version_of(first.pool)
    for given in (ranges(A), ranges(A, B)):
        assert (await publish(tenant, frozen, given)).outcome is ApplyOutcome.CONTESTED, "the first one wakes up"
    assert marks(await pool(tenant)) == {DRAINED_BY: "two"}


async def test_a_drain_that_a_user_ended_by_hand_leaves_no_mark(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    await publish(tenant, await read(tenant), ranges(A), auto_assign=False, drained_by="one")
    await edit(tenant, {"autoAssign": True})
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.WRITTEN
    assert marks(await pool(tenant)) == {}


async def test_other_annotations_are_left_alone(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    note = {"metadata": {"annotations": {"example.com/note": "mine"}}}
    await tenant.patch(ADDRESS_POOLS, POOL, note, NAMESPACE, field_manager="kubectl-annotate")
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT
    await publish(tenant, await read(tenant), ranges(A), auto_assign=False, drained_by="one")
    await publish(tenant, await read(tenant), ranges(A))
    assert marks(await pool(tenant)) == {"example.com/note": "mine"}


# Whose word a field is, as the servers tell it.


@pytest.mark.parametrize("writes", [1, 2, 3])
async def test_own_writes_are_told_from_foreign_ones_however_the_pool_came_to_be(
    with_metallb: Client, writes: int
) -> None:
    """Created once and applied over later: one name stands under two operations then."""
    tenant = with_metallb
    for number in range(writes):
        await publish(tenant, await read(tenant), ranges(*[A, B][: 1 + number % 2]))
    live = await pool(tenant)
    wanted = address_pool(ranges("10.40.3.0-10.40.3.7"), auto_assign=False)
    assert differs(wanted, live)
    assert drift_of(wanted, live) == ()
    await edit(tenant, {"addresses": ["10.0.0.0/8"]})
    assert drift_of(wanted, await pool(tenant)) == (
        "IPAddressPool default-pool: addresses was 10.0.0.0/8 (set by kubectl-edit)",
    )
    await edit(tenant, {"autoAssign": False, "avoidBuggyIPs": True})
    told = drift_of(address_pool(ranges(A)), await pool(tenant))
    assert [line.split()[2] for line in told] == ["addresses", "autoAssign", "avoidBuggyIPs"]
    await publish(tenant, await read(tenant), ranges(A))
    assert drift_of(wanted, await pool(tenant)) == (), "ours again"
