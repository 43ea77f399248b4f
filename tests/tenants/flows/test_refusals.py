"""What cannot be: a clear word in a condition or from the API server, and nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenants.estate import HOME, Tenant
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate, Json, Site


NOT_READY = "is not ready: its own conditions say why, to those who may read it"
"""The conditions name Secrets, and who may read a cluster need not be allowed to read its provider."""


def _refuses(tenant: Tenant, condition: str, reason: str) -> str:
    """Wait for the refusal; it is Failed, Ready says the same, nothing was made. The message."""
    tenant.until(lambda: tenant.phase == "Failed", "it is refused, not only waited for")
    said = tenant.says(condition, "False", reason)
    ready = tenant.condition("Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("False", reason, said)
    tenant.until(lambda: tenant.events("ClusterFailed"), "an event tells of it")
    return said


def _leaves_nothing(tenant: Tenant) -> None:
    assert tenant.allocations() == []
    assert tenant.witness.get("namespaces", "", tenant.home) is None
    tenant.delete()
    tenant.gone()


# The provider.


@alongside
def test_an_unknown_provider(estate: Estate) -> None:
    site = estate.bare_site()
    web = site.cluster()
    said = _refuses(web, "ProviderAccessGranted", "ProviderAccessDenied")
    assert said.startswith(f"ProviderConfig {HOME}/{site.provider} is not found or not usable from namespace")
    _leaves_nothing(web)


@alongside
def test_a_provider_that_comes_later_is_noticed(estate: Estate) -> None:
    site = estate.bare_site()
    web = site.cluster()
    _refuses(web, "ProviderAccessGranted", "ProviderAccessDenied")
    estate.apply(*site.describe())
    web.ready()


@alongside
def test_no_provider_at_all(estate: Estate) -> None:
    site = estate.bare_site()
    wanted = site.describe_cluster("web")
    del wanted["spec"]["providerConfigRef"]
    estate.apply(wanted)
    web = site.tenant("web")
    said = web.says("ProviderAccessGranted", "False", "ProviderNotFound")
    assert said.startswith(
        "the cluster names no ProviderConfig and there is no default one: set spec.providerConfigRef"
    )
    _leaves_nothing(web)


@alongside
def test_a_missing_secret(estate: Estate) -> None:
    site = estate.bare_site()
    _, *others = site.describe()
    estate.apply(*others)
    web = site.cluster()
    web.until(lambda: "is not ready" in web.message("ProviderAccessGranted"), "its provider was looked at")
    said = _refuses(web, "ProviderAccessGranted", "ProviderNotReady")
    assert said == f"ProviderConfig {HOME}/{site.provider} {NOT_READY}"
    assert web.allocations() == []
    estate.apply(site.login())
    web.ready()


@alongside
def test_a_secret_with_a_wrong_key(estate: Estate) -> None:
    site = estate.site()
    estate.apply(site.login(username=None, user=b"butler@pve!capi"))  # before the cluster, or there is nothing to see
    estate.until(lambda: not _provider(site)["status"].get("ready", True), "the provider is not ready")
    web = site.cluster()
    said = _refuses(web, "ProviderAccessGranted", "ProviderNotReady")
    assert said == f"ProviderConfig {HOME}/{site.provider} {NOT_READY}"
    _leaves_nothing(web)


def _provider(site: Site) -> Json:
    found = site.estate.witness.get("providerconfigs", HOME, site.provider) or {}
    return {"status": {}, **found}


# Limits.


@alongside
def test_too_many_clusters(estate: Estate) -> None:
    site = estate.site(spec={"limits": {"maxClustersPerTeam": 1}})
    first = site.cluster("first")
    first.ready()
    second = site.cluster("second")
    said = _refuses(second, "QuotaSatisfied", "QuotaExceeded")
    assert said == (
        f"namespace {site.namespace} has 1 clusters on ProviderConfig {HOME}/{site.provider},"
        " and may have 1 (limits.maxClustersPerTeam)"
    )
    assert second.allocations() == []
    first.delete()
    second.ready()
    first.gone()


@alongside
def test_too_many_workers(estate: Estate) -> None:
    site = estate.site(spec={"limits": {"maxNodesPerTeam": 3}})
    first = site.cluster("first", replicas=2)
    first.ready()
    second = site.cluster("second", replicas=2)
    said = _refuses(second, "QuotaSatisfied", "QuotaExceeded")
    assert said == (
        f"namespace {site.namespace} has 2 other workers on ProviderConfig {HOME}/{site.provider};"
        " 2 more would exceed 3 (limits.maxNodesPerTeam)"
    )
    assert second.allocations() == []
    second.edit({"workers": {"replicas": 1}})
    second.ready(1)
    first.edit({"workers": {"replicas": 3}})
    first.says("QuotaSatisfied", "False", "QuotaExceeded")
    assert first.condition("Ready")["status"] == "True"
    assert len(first.machines()) == 2


@alongside
def test_too_many_node_addresses(estate: Estate) -> None:
    site = estate.site(network={"quotaPerTenant": {"maxNodeIPs": 2}})
    web = site.cluster(replicas=3)
    said = _refuses(web, "QuotaSatisfied", "QuotaExceeded")
    assert said == "spec.workers.replicas: 3 node addresses are needed, and one tenant may hold 2 (quotaPerTenant)"
    _leaves_nothing(web)


@alongside
def test_too_many_load_balancer_addresses(estate: Estate) -> None:
    site = estate.site(network={"quotaPerTenant": {"maxLoadBalancerIPs": 3}})
    web = site.cluster(networking={"lbPoolSize": 4})
    said = _refuses(web, "QuotaSatisfied", "QuotaExceeded")
    enough = "load-balancer addresses are needed, and one tenant may hold 3 (quotaPerTenant)"
    assert said == f"spec.networking.lbPoolSize: 4 {enough}"
    picked = {"start": f"{site.network}.16", "end": f"{site.network}.19"}
    other = site.cluster("other", networking={"loadBalancerPool": picked})
    said = _refuses(other, "QuotaSatisfied", "QuotaExceeded")
    assert said == f"spec.networking.loadBalancerPool: 4 {enough}"
    _leaves_nothing(web)
    _leaves_nothing(other)


@alongside
def test_hand_picked_addresses_of_no_pool(estate: Estate) -> None:
    site = estate.site()
    picked = {"start": "192.0.2.1", "end": "192.0.2.2"}
    web = site.cluster(networking={"loadBalancerPool": picked})
    said = _refuses(web, "NetworkReady", "InvalidConfiguration")
    assert said == (
        f"spec.networking.loadBalancerPool: 192.0.2.1-192.0.2.2 lies in no pool ({site.pool} {site.network}.0/24)"
    )
    _leaves_nothing(web)


@alongside
def test_pools_mean_nothing_in_a_cloud(estate: Estate) -> None:
    site = estate.site("gcp")
    web = site.cluster(f"a{site.network.replace('.', '-')}", networking={"lbPoolSize": 4})
    said = _refuses(web, "NetworkReady", "InvalidConfiguration")
    assert said == "spec.networking.lbPoolSize: the provider is in cloud mode, which has no pools"
    _leaves_nothing(web)


# Names.


@alongside
def test_two_clusters_of_one_name(estate: Estate) -> None:
    """In two namespaces, on one provider and one pool: both work, and share nothing."""
    site = estate.site()
    other = estate.bare_site()
    here = site.cluster("twin")
    wanted = site.describe_cluster("twin")
    wanted["metadata"]["namespace"] = other.namespace
    estate.apply(wanted)
    there = Tenant(other, "twin")
    here.ready()
    there.ready()
    mine, theirs = (
        {address for kind in ("nodes", "loadbalancer") for address in tenant.addresses(kind)}
        for tenant in (here, there)
    )
    assert len(mine) == len(theirs) == 4
    assert not mine & theirs
    assert not set(here.machine_addresses()) & set(there.machine_addresses())
    names = [allocation["metadata"]["name"] for allocation in (*here.allocations(), *there.allocations())]
    assert len(set(names)) == 4
    assert here.home != there.home
    assert here.kubectl("get", "nodes", "-o", "name") != there.kubectl("get", "nodes", "-o", "name")
    here.delete()
    here.gone()
    assert there.phase == "Ready"
    assert {allocation["status"]["phase"] for allocation in there.allocations()} == {"Allocated"}
    there.delete()
    there.gone()


@alongside
def test_two_clusters_of_one_name_on_a_cloud(estate: Estate) -> None:
    """Clouds know clusters by name alone: the second one would take the machines of the first for its own."""
    site = estate.site("aws")
    other = estate.bare_site("aws")
    name = f"b{site.network.replace('.', '-')}"
    here = site.cluster(name)
    here.ready()
    wanted = site.describe_cluster(name)
    wanted["metadata"]["namespace"] = other.namespace
    estate.apply(wanted)
    there = Tenant(other, name)
    said = _refuses(there, "ProviderAccessGranted", "NameTaken")
    assert said == (
        "another TenantCluster of this platform has the same name, and aws knows clusters by their name alone:"
        " choose another name"
    )
    _leaves_nothing(there)


@alongside
def test_the_longest_name_works(estate: Estate) -> None:
    site = estate.site()
    name = "a" + "bcdefghijk" * 5 + "xyz"
    assert len(name) == 54
    long = site.cluster(name, replicas=2)
    long.ready()
    assert long.machine_addresses() == sorted(long.addresses("nodes"))
    long.delete()
    long.gone()


NAME = (
    "the name becomes that of a namespace and of machines: it must start with a lower-case letter, hold only lower-case"
    " letters, digits and hyphens, and have at most 54 characters"
)
BAD: dict[str, tuple[Json, str]] = {
    "a name of 60 characters": ({"name": "a" * 60}, NAME),
    "a name that starts with a digit": ({"name": "1web"}, NAME),
    "a version without a patch": ({"kubernetesVersion": "1.33"}, "spec.kubernetesVersion"),
    "a version that is a word": ({"kubernetesVersion": "latest"}, "spec.kubernetesVersion"),
    "fewer workers than none": ({"replicas": -1}, "spec.workers.replicas"),
    "no workers": ({"replicas": 0}, "spec.workers.replicas"),
    "a field that does not exist": ({"flavour": "sweet"}, "flavour"),
    "two numbers of load-balancer addresses": (
        {"networking": {"lbPoolSize": 2, "loadBalancerPool": {"start": "10.0.0.1", "end": "10.0.0.2"}}},
        "give one of the two",
    ),
    "an operating system that cannot be bootstrapped": (
        {"workers": {"machineTemplate": {"os": {"type": "kairos"}}}},
        "Butler cannot bootstrap this operating system yet: use rocky, flatcar or talos",
    ),
}


@pytest.mark.parametrize("what", BAD)
@alongside
def test_the_server_takes_no(estate: Estate, what: str) -> None:
    given, said = BAD[what]
    site = estate.bare_site()
    spec = {"name": "web", **given}
    refusal = estate.refused(site.describe_cluster(spec.pop("name"), **spec))
    assert said in refusal
    assert estate.witness.list("tenantclusters", site.namespace) == []
