"""A pool that runs full half-way: the rest waits with an explanation, and goes on by itself when there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenants.estate import HOME
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from butler.api.objects import Json
    from tenants.estate import Estate, Site, Tenant

FIT = 2
"""How many clusters of two node and two load-balancer addresses the pools of this file hold."""


def _explains(tenant: Tenant) -> bool:
    return "addresses: pool" in tenant.message("NetworkReady")


def _none_shares(*tenants: Tenant) -> None:
    held = [address for tenant in tenants for kind in ("nodes", "loadbalancer") for address in tenant.addresses(kind)]
    assert len(held) == len(set(held))
    machines = [address for tenant in tenants for address in tenant.machine_addresses()]
    assert len(machines) == len(set(machines))
    assert set(machines) <= set(held)


def _one_waits(estate: Estate) -> tuple[Site, list[Tenant], Tenant]:
    site = estate.site(size=4 * FIT)
    first = [site.cluster(f"shop-{number}") for number in range(FIT)]
    for tenant in first:
        tenant.ready()
    late = site.cluster("late")
    said = late.says("NetworkReady", "False", "PoolExhausted")
    assert late.phase == "Pending"
    assert said.startswith(f"no node addresses: pool {site.pool}: ")
    assert late.condition("Ready")["message"] == said
    estate.until(lambda: late.events("ClusterPending"), "an event tells of it")
    assert late.witness.get("namespaces", "", late.home) is None, "something was built before the addresses are there"
    assert site.held() == 4 * FIT
    return site, first, late


@alongside
def test_it_goes_on_when_a_second_pool_is_added(estate: Estate) -> None:
    """Machines have addresses by DHCP here, so any pool will do."""
    site = estate.bare_site("harvester")
    network: Json = {"gateway": None, "dnsServers": None, "poolRefs": [{"name": site.pool, "types": ["loadbalancer"]}]}
    estate.apply(site.login(), site.describe_pool(size=2), site.describe_provider(network))
    first = site.cluster("first")
    first.ready()
    late = site.cluster("late")
    said = late.says("NetworkReady", "False", "PoolExhausted")
    assert said.startswith(f"no load-balancer addresses: pool {site.pool}: ")
    assert late.phase == "Pending"
    estate.apply(site.describe_other_pool(size=2))
    network["poolRefs"] = [
        {"name": site.other_pool, "types": ["loadbalancer"], "priority": 2},
        {"name": site.pool, "types": ["loadbalancer"], "priority": 1},
    ]
    site.edit_provider(network)
    late.ready()
    assert late.addresses("loadbalancer") == [f"{site.other_network}.16", f"{site.other_network}.17"]
    third = site.cluster("third")
    said = third.says("NetworkReady", "False", "PoolExhausted")
    assert said.startswith(f"no load-balancer addresses: pool {site.pool}: ")
    assert said.endswith(f"; pool {site.other_pool} has no run of free addresses longer than 0")
    first.delete()
    third.ready()
    assert third.addresses("loadbalancer") == site.addresses(16, 17)


@alongside
def test_machines_go_to_a_second_network_when_the_first_is_full(estate: Estate) -> None:
    site, first, late = _one_waits(estate)
    estate.apply(site.describe_other_pool(size=8))
    assert late.phase == "Pending"
    second = {"name": site.other_pool, "priority": 2, "gateway": f"{site.other_network}.1"}
    site.edit_provider({"poolRefs": [{"name": site.pool, "priority": 1}, second]})
    late.ready()
    assert late.machine_addresses() == sorted(late.addresses("nodes"))[:1]
    assert all(address.startswith(f"{site.other_network}.") for address in late.machine_addresses())
    for tenant in first:
        tenant.ready()
    _none_shares(*first, late)


@alongside
def test_it_goes_on_when_the_pool_is_grown(estate: Estate) -> None:
    site, first, late = _one_waits(estate)
    estate.apply(site.describe_pool(size=4 * FIT + 4))
    late.ready()
    _none_shares(*first, late)
    assert site.held() == 4 * FIT + 4


@alongside
def test_it_goes_on_when_the_network_is_grown(estate: Estate) -> None:
    site = estate.site()
    pool = site.describe_pool()
    pool["spec"]["cidr"] = f"{site.network}.0/29"
    pool["spec"]["tenantAllocation"] = {"defaults": pool["spec"]["tenantAllocation"]["defaults"]}
    estate.kubectl("delete", "networkpool", site.pool, "-n", HOME)
    estate.apply(pool)
    first = site.cluster("first")
    first.ready()
    late = site.cluster("late")
    late.says("NetworkReady", "False", "PoolExhausted")
    pool["spec"]["cidr"] = f"{site.network}.0/28"
    estate.apply(pool)
    late.ready()
    _none_shares(first, late)


@alongside
def test_it_goes_on_when_another_cluster_goes(estate: Estate) -> None:
    _, first, late = _one_waits(estate)
    taken = set(first[0].addresses("nodes") + first[0].addresses("loadbalancer"))
    first[0].delete()
    late.ready()
    first[0].gone()
    assert set(late.addresses("nodes") + late.addresses("loadbalancer")) == taken
    _none_shares(first[1], late)


@alongside
def test_workers_that_have_no_address_wait(estate: Estate) -> None:
    """A running cluster that wants more than there is stays as it is, and says so."""
    site = estate.site(size=4)
    web = site.cluster(replicas=2)
    web.ready()
    web.edit({"workers": {"replicas": 4}})
    said = web.says("NetworkReady", "False", "PoolExhausted")
    assert said.startswith(f"no node addresses: pool {site.pool}: ")
    assert web.phase == "Updating"
    assert web.condition("Ready")["status"] == "True"
    assert web.deployment()["spec"]["replicas"] == 2
    estate.apply(site.describe_pool(size=6))
    web.ready(4)
    assert web.machine_addresses() == sorted(web.addresses("nodes"))


@alongside
def test_of_a_crowd_as_many_come_in_as_fit(estate: Estate) -> None:
    """Those that were promised one half of their addresses must not keep others from their second half for ever."""
    site = estate.site(size=4 * FIT)
    names = [f"shop-{number}" for number in range(FIT + 2)]
    estate.apply(*(site.describe_cluster(name) for name in names))
    tenants = [site.tenant(name) for name in names]
    estate.until(
        lambda: all(tenant.phase == "Ready" or (tenant.phase == "Pending" and _explains(tenant)) for tenant in tenants),
        "all are Ready or say why not",
    )
    estate.apply(site.describe_pool(size=4 * (FIT + 2)))
    for tenant in tenants:
        tenant.ready()
    _none_shares(*tenants)
    assert site.held() == 4 * (FIT + 2)
