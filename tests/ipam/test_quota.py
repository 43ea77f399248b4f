"""A tenant's quota binds allocations that are made by hand, as it binds those of Butler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipam.estate import named, scales

if TYPE_CHECKING:
    from ipam.estate import Estate


async def provider(estate: Estate, most: int) -> None:
    network = {"mode": "ipam", "poolRefs": [{"name": estate.namespace}], "quotaPerTenant": {"maxLoadBalancerIPs": most}}
    made = named(
        "ProviderConfig", {"name": "lab", "namespace": estate.namespace}, {"provider": "local", "network": network}
    )
    await estate.api.create("providerconfigs", made)


async def ask(estate: Estate, name: str, count: int, pool: str) -> None:
    """As a person does it: no labels, no finalizer."""
    spec = {
        "poolRef": {"name": pool},
        "tenantClusterRef": {"name": "web", "namespace": estate.namespace},
        "type": "loadbalancer",
        "count": count,
    }
    await estate.api.create("ipallocations", named("IPAllocation", {"name": name, "namespace": estate.namespace}, spec))


async def answered(estate: Estate, name: str, phase: str) -> None:
    await estate.until(lambda: estate.phases().get(name) == phase, lambda: f"{name} is {phase}: {estate.phases()}")


@scales()
async def test_allocations_made_by_hand_count_and_are_bound(estate: Estate) -> None:
    await estate.butler("one")
    await provider(estate, 10)
    for name, network in ((estate.namespace, "10.40.0.0/24"), ("spare", "10.41.0.0/24")):
        await estate.pool(name, network)
    await estate.tenant("web")
    await estate.until(lambda: bool(estate.pool_status("spare").get("totalIPs")), "the pools are there")
    await ask(estate, "first", 8, estate.namespace)
    await answered(estate, "first", "Allocated")
    await ask(estate, "greedy", 50, estate.namespace)
    await answered(estate, "greedy", "Failed")
    assert estate.reason("greedy") == "QuotaExceeded"
    await ask(estate, "modest", 2, "spare")
    await answered(estate, "modest", "Allocated")
    await ask(estate, "one-more", 1, estate.namespace)
    await answered(estate, "one-more", "Failed")
    assert estate.reason("one-more") == "QuotaExceeded"
    await estate.api.delete("ipallocations", "modest")
    await answered(estate, "one-more", "Allocated")
    quota = {"spec": {"network": {"quotaPerTenant": {"maxLoadBalancerIPs": 100}}}}
    await estate.api.patch("providerconfigs", "lab", quota)
    await answered(estate, "greedy", "Allocated")
