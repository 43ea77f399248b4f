"""Publishing a tenant's ranges on real API servers: ownership, drift, withdrawal, and MetalLB not being there yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from butler.api.labels import FieldManager
from butler.api.objects import version_of
from butler.kube.errors import NotFound
from butler.kube.resource import NAMESPACES
from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import (
    ADDRESS_POOLS,
    ADVERTISEMENT,
    ADVERTISEMENTS,
    NAMESPACE,
    ApplyOutcome,
    address_pool,
    publish,
    read,
)
from local.tenant.metallb_kinds import A, B, edit, install_metallb_kinds, pool, ranges

if TYPE_CHECKING:
    from butler.kube.client import Client


async def test_metallb_that_comes_in_pieces_is_waited_for(without_metallb: Client) -> None:
    tenant = without_metallb
    for given in (ranges(A), []):
        assert (await publish(tenant, await read(tenant), given)).outcome is ApplyOutcome.NOT_INSTALLED
    await install_metallb_kinds(tenant)
    result = await publish(tenant, await read(tenant), ranges(A))
    assert (result.outcome, result.before) == (ApplyOutcome.NOT_INSTALLED, None), "the namespace is missing"
    assert NAMESPACE in result.message
    await tenant.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    result = await publish(tenant, await read(tenant), ranges(A))
    assert (result.outcome, result.before, result.drift) == (ApplyOutcome.WRITTEN, None, ())


async def test_ranges_come_and_go_and_nothing_is_written_at_rest(with_metallb: Client) -> None:
    tenant = with_metallb
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.WRITTEN
    first = await pool(tenant)
    assert first["spec"] == {"addresses": [A], "autoAssign": True, "avoidBuggyIPs": False}
    announced = await tenant.get(ADVERTISEMENTS, ADVERTISEMENT, NAMESPACE)
    assert announced["spec"] == {"ipAddressPools": [POOL]}
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT
    assert version_of(await pool(tenant)) == version_of(first)
    result = await publish(tenant, await read(tenant), ranges(B, A))
    assert (result.outcome, result.before, result.drift) == (ApplyOutcome.WRITTEN, (A,), ()), (
        "our own change is no drift"
    )
    assert (await pool(tenant))["spec"]["addresses"] == [A, B]
    assert (await publish(tenant, await read(tenant), [])).outcome is ApplyOutcome.WRITTEN
    with pytest.raises(NotFound):
        await pool(tenant)
    assert (await publish(tenant, await read(tenant), [])).outcome is ApplyOutcome.CURRENT
    assert (await publish(tenant, await read(tenant), ranges(B))).outcome is ApplyOutcome.WRITTEN


async def test_what_another_program_writes_is_put_right_and_told(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    await edit(tenant, {"addresses": [A, "10.0.0.0/8"], "avoidBuggyIPs": True, "serviceAllocation": {"priority": 7}})
    result = await publish(tenant, await read(tenant), ranges(A))
    assert (result.outcome, result.before) == (ApplyOutcome.WRITTEN, (A, "10.0.0.0/8"))
    assert result.drift == (
        f"IPAddressPool default-pool: addresses was {A}, 10.0.0.0/8 (set by kubectl-edit)",
        "IPAddressPool default-pool: avoidBuggyIPs was true (set by kubectl-edit)",
    )
    spec = (await pool(tenant))["spec"]
    assert spec == {"addresses": [A], "autoAssign": True, "avoidBuggyIPs": False, "serviceAllocation": {"priority": 7}}
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT


async def test_a_pool_and_an_advertisement_that_were_deleted_come_back(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    await tenant.delete(ADDRESS_POOLS, POOL, NAMESPACE)
    await tenant.delete(ADVERTISEMENTS, ADVERTISEMENT, NAMESPACE)
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.WRITTEN
    assert (await publish(tenant, await read(tenant), ranges(A))).outcome is ApplyOutcome.CURRENT


async def test_a_changed_advertisement_is_put_right_and_told(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    theirs = {"spec": {"ipAddressPools": ["mine"], "interfaces": ["eth1"]}}
    await tenant.patch(ADVERTISEMENTS, ADVERTISEMENT, theirs, NAMESPACE, field_manager="kubectl-edit")
    result = await publish(tenant, await read(tenant), ranges(A))
    assert result.drift == ("L2Advertisement default: ipAddressPools was mine (set by kubectl-edit)",)
    announced = await tenant.get(ADVERTISEMENTS, ADVERTISEMENT, NAMESPACE)
    assert announced["spec"] == {"ipAddressPools": [POOL], "interfaces": ["eth1"]}


async def test_auto_assign_is_always_ours_to_say(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    await edit(tenant, {"autoAssign": False})
    result = await publish(tenant, await read(tenant), ranges(A))
    assert result.drift == ("IPAddressPool default-pool: autoAssign was false (set by kubectl-edit)",)
    assert (await pool(tenant))["spec"]["autoAssign"] is True
    result = await publish(tenant, await read(tenant), ranges(A), auto_assign=False)
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ())
    assert (await pool(tenant))["spec"] == address_pool(ranges(A), auto_assign=False)["spec"]
    assert (await publish(tenant, await read(tenant), ranges(A), auto_assign=False)).outcome is ApplyOutcome.CURRENT
    result = await publish(tenant, await read(tenant), ranges(A))
    assert (result.outcome, result.drift) == (ApplyOutcome.WRITTEN, ()), "our own word, taken back"
    assert (await pool(tenant))["spec"] == address_pool(ranges(A))["spec"]


async def test_a_pool_of_an_earlier_version_is_completed_without_a_story_of_drift(with_metallb: Client) -> None:
    tenant = with_metallb
    earlier = address_pool(ranges(A))
    earlier["spec"] = {"addresses": [A]}
    await tenant.apply(ADDRESS_POOLS, earlier, field_manager=FieldManager.IPAM)
    result = await publish(tenant, await read(tenant), ranges(A, B))
    assert (result.outcome, result.before, result.drift) == (ApplyOutcome.WRITTEN, (A,), ())
    assert (await pool(tenant))["spec"] == address_pool(ranges(A, B))["spec"]


async def test_a_refusal_is_an_outcome_and_changes_nothing(with_metallb: Client) -> None:
    tenant = with_metallb
    await publish(tenant, await read(tenant), ranges(A))
    result = await publish(tenant, await read(tenant), ranges("10.99.0.0-10.99.0.7"))
    assert (result.outcome, result.before) == (ApplyOutcome.REFUSED, (A,))
    assert "overlaps with another pool" in result.message
    assert (await pool(tenant))["spec"]["addresses"] == [A]
