"""A tenant cluster from `kubectl apply` to Ready, and from `kubectl delete` to nothing, on every provider."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tenants.estate import CLOUDS, HOME, ON_PREMISES, VERSION, Estate, phase_of
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenants.estate import Site, Tenant
    from tenants.witness import Json, Sighting

STAGES = ["LoadBalancers", "Addons", "ClusterAPI", "Machines", "Namespace", "Addresses"]
LABEL = "butler.butlerlabs.dev"


@pytest.mark.parametrize("provider", [*ON_PREMISES, *CLOUDS])
@alongside
def test_a_cluster_comes_and_goes_on_every_provider(estate: Estate, provider: str) -> None:
    site = estate.site(provider)
    shop = site.cluster(f"shop-{provider}", replicas=2)
    shop.ready()
    if provider in CLOUDS:
        assert shop.allocations() == []
        assert shop.message("NetworkReady") == "no addresses from pools are needed"
        assert "metallb" not in shop.addons()
        assert len(set(shop.machine_addresses())) == 2
    else:
        assert (len(shop.addresses("nodes")), len(shop.addresses("loadbalancer"))) == (2, 2)
        if provider != "nutanix":  # whose subnet hands addresses out itself; the pool keeps the books
            assert shop.machine_addresses() == sorted(shop.addresses("nodes"))
    shop.delete()
    shop.gone()
    assert site.held() == 0


@alongside
def test_everything_that_a_user_looks_at_is_there(estate: Estate) -> None:
    """The flow of the seeds: apply, look, use, delete."""
    site = estate.bare_site("harvester")
    estate.kubectl_apply(*site.describe(size=8), site.describe_cluster("web", replicas=2))
    web = site.tenant("web")
    web.ready()
    web.until(lambda: web.condition("LoadBalancersReady"), "MetalLB has its addresses")
    _kubectl_shows_the_cluster(estate, web)
    _it_has_its_addresses(site, web)
    _its_kubeconfig_opens_it(estate, web)
    pool = estate.witness.get("networkpools", HOME, site.pool)
    assert pool is not None
    assert (pool["status"]["allocatedIPs"], pool["status"]["availableIPs"]) == (4, 4)
    estate.until(lambda: _capacity(estate, site.provider) == {"availableIPs": 4, "estimatedTenants": 1}, "room for one")
    estate.kubectl("delete", "tenantcluster", "web", "-n", web.namespace)
    web.gone()
    estate.until(lambda: _capacity(estate, site.provider) == {"availableIPs": 8, "estimatedTenants": 2}, "room for two")


def _kubectl_shows_the_cluster(estate: Estate, web: Tenant) -> None:
    found = web.get()
    endpoint = found["status"]["controlPlaneEndpoint"]
    assert re.fullmatch(r"https://127\.0\.0\.1:\d+", endpoint)
    head, row = estate.kubectl("get", "tc", "-n", web.namespace).splitlines()
    assert re.split(r" {2,}", head.strip()) == ["NAME", "PHASE", "K8S VERSION", "WORKERS", "ENDPOINT", "AGE"]
    assert re.split(r" {2,}", row.strip())[:5] == ["web", "Ready", VERSION, "2", endpoint]
    status = found["status"]
    assert status["tenantNamespace"] == web.home
    assert status["kubeconfigSecretRef"] == {"name": "web-admin-kubeconfig"}
    assert (status["workerNodesDesired"], status["workerNodesReady"]) == (2, 2)
    machines = sorted(machine["metadata"]["name"] for machine in web.machines())
    assert status["observedState"]["workers"] == {"desired": 2, "ready": 2, "nodes": machines}
    assert status["observedState"]["kubernetesVersion"] == VERSION
    assert {addon["name"]: addon["status"] for addon in status["observedState"]["addons"]} == dict.fromkeys(
        ("cert-manager", "cilium", "longhorn", "metallb", "traefik"), "Healthy"
    )
    assert {condition["type"]: (condition["status"], condition["message"]) for condition in status["conditions"]} == {
        "ProviderAccessGranted": ("True", "the provider can be used"),
        "QuotaSatisfied": ("True", "within all limits"),
        "NetworkReady": ("True", "2 node addresses and 2 load-balancer addresses allocated"),
        "InfrastructureReady": ("True", "the provider has what the machines need"),
        "ControlPlaneReady": ("True", f"runs {VERSION}"),
        "WorkersReady": ("True", "2 of 2 workers are ready"),
        "AddonsReady": ("True", "5 addons are installed"),
        "LoadBalancersReady": ("True", "MetalLB has exactly the tenant's addresses, and no Service waits"),
        "Ready": ("True", "the cluster can be used"),
    }
    estate.until(lambda: web.events("ClusterReady"), "an event tells of it")


def _it_has_its_addresses(site: Site, web: Tenant) -> None:
    status = web.get()["status"]
    nodes, balancers = _allocation(web, "nodes"), _allocation(web, "loadbalancer")
    assert status["ipAllocationRef"]["name"] == nodes["metadata"]["name"]
    assert status["lbAllocationRef"]["name"] == balancers["metadata"]["name"]
    for kind, allocation in (("nodes", nodes), ("loadbalancer", balancers)):
        assert allocation["metadata"]["labels"] == {
            f"{LABEL}/network-pool": site.pool,
            f"{LABEL}/tenant": "web",
            f"{LABEL}/tenant-uid": web.uid,
            f"{LABEL}/allocation-type": kind,
            f"{LABEL}/allocation-role": "initial",
        }
        said = {condition["type"]: condition["message"] for condition in allocation["status"]["conditions"]}
        assert said == {
            "Ready": f"2 IPs allocated from {site.pool}",
            "TenantFound": f"TenantCluster {web.namespace}/web exists",
        }
    assert sorted(web.addresses("nodes") + web.addresses("loadbalancer")) == site.addresses(16, 19)


def _its_kubeconfig_opens_it(estate: Estate, web: Tenant) -> None:
    inside = json.loads(web.kubectl("get", "nodes", "-o", "json"))["items"]
    told = [
        address["address"]
        for node in inside
        for address in node["status"]["addresses"]
        if address["type"] == "InternalIP"
    ]
    assert sorted(told) == sorted(web.addresses("nodes"))
    assert sorted(item["metadata"]["name"] for item in inside) == sorted(
        machine["metadata"]["name"] for machine in web.machines()
    )
    services = web.kubectl("get", "services", "-A", "--field-selector", "spec.type=LoadBalancer").splitlines()
    assert len(services) == 2
    namespace, name, kind, _, external, *_ = services[1].split()
    first = web.addresses("loadbalancer")[0]
    assert (namespace, name, kind, external) == ("traefik", "traefik", "LoadBalancer", first)
    ranges = web.kubectl(
        "get", "ipaddresspool", "-n", "metallb-system", "default-pool", "-o", "jsonpath={.spec.addresses}"
    )
    balancers = _allocation(web, "loadbalancer")
    start, end = balancers["status"]["startAddress"], balancers["status"]["endAddress"]
    assert json.loads(ranges) == [f"{start}-{end}"]
    for_cluster_api = estate.find(f"/api/v1/namespaces/{web.home}/secrets/web-kubeconfig")
    assert for_cluster_api is not None
    assert for_cluster_api["type"] == "cluster.x-k8s.io/secret"
    assert for_cluster_api["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "web"


def _allocation(web: Tenant, kind: str) -> Json:
    (found,) = web.allocations(kind)
    return found


def _capacity(estate: Estate, provider: str) -> Json:
    found = estate.witness.get("providerconfigs", HOME, provider) or {}
    return dict((found.get("status") or {}).get("capacity") or {})


@alongside
def test_the_allocations_are_named_after_the_cluster(estate: Estate) -> None:
    site = estate.site()
    named = site.cluster("n" + site.pool, replicas=1)
    named.ready()
    assert [allocation["metadata"]["name"] for allocation in named.allocations("nodes")] == [f"{named.name}-nodes"]
    assert [allocation["metadata"]["name"] for allocation in named.allocations("loadbalancer")] == [f"{named.name}-lb"]


@alongside
def test_addresses_go_back_last_of_all(estate: Estate) -> None:
    """A witness tells the order from what the API server recorded."""
    site = estate.site()
    web = site.cluster(replicas=3)
    web.ready()
    held = {allocation["metadata"]["name"] for allocation in web.allocations()}
    assert len(held) == 2
    web.delete()
    web.gone()

    seen = estate.witness.history(
        "tenantclusters", "tenantaddons", "clusters", "machines", "namespaces", "ipallocations", "stewardcontrolplanes"
    )
    released = [
        item.version
        for item in seen
        if item.plural == "ipallocations" and item.name in held and phase_of(item.obj) == "Released"
    ]
    addons = _deleted(seen, "tenantaddons", web.namespace)
    machines = _deleted(seen, "machines", web.home)
    clusters = _deleted(seen, "clusters", web.home)
    control_planes = _deleted(seen, "stewardcontrolplanes", web.home)
    namespaces = [sighting.version for sighting in _of_type(seen, "namespaces", "DELETED") if sighting.name == web.home]
    ends = _deleted(seen, "tenantclusters", web.namespace)
    assert (len(addons), len(machines), len(clusters), len(control_planes)) == (5, 3, 1, 1)
    assert len(namespaces) == len(ends) == 1
    assert len(released) >= 2

    going = next(item.version for item in seen if item.plural == "clusters" and _is_going(item, web.home))
    assert max(addons) < going, "Cluster API was told to delete before the addons were gone"
    assert max(machines) < min(clusters) < namespaces[0] < min(released)
    assert max(control_planes) < namespaces[0]
    assert max(released) < ends[0]
    stages = [
        item.obj["status"]["deletion"]["stage"]
        for item in seen
        if item.plural == "tenantclusters" and item.namespace == web.namespace and "deletion" in item.obj["status"]
    ]
    assert stages == sorted(stages, key=STAGES.index)


@alongside
def test_load_balancers_go_before_anything_else(estate: Estate) -> None:
    """While a Service of the tenant is there, the addons that serve it stay, and so does everything behind them."""
    site = estate.site()
    web = site.cluster()
    web.ready()
    where = "/api/v1/namespaces/traefik/services/traefik"
    patch = ("patch", "service", "-n", "traefik", "traefik", "--type=merge", "-p")
    web.kubectl(*patch, json.dumps({"metadata": {"finalizers": ["example.com/hold"]}}))
    web.delete()
    assert web.says("Deleting", "True", "Waiting") == "LoadBalancers: waits for 1 load balancer (traefik/traefik)"
    assert web.phase == "Deleting"
    assert web.status["deletion"]["stage"] == "LoadBalancers"
    code, service = web.inside().request("GET", where)
    assert code == 200
    assert "deletionTimestamp" in service["metadata"]
    assert web.addons() == dict.fromkeys(("cert-manager", "cilium", "longhorn", "metallb", "traefik"), "Installed")
    assert len(web.machines()) == 1
    assert {phase_of(allocation) for allocation in web.allocations()} == {"Allocated"}
    web.kubectl(*patch, json.dumps({"metadata": {"finalizers": None}}))
    web.gone()


def _of_type(seen: Sequence[Sighting], plural: str, kind: str) -> list[Sighting]:
    return [sighting for sighting in seen if sighting.plural == plural and sighting.type == kind]


def _deleted(seen: Sequence[Sighting], plural: str, namespace: str) -> list[int]:
    return [sighting.version for sighting in _of_type(seen, plural, "DELETED") if sighting.namespace == namespace]


def _is_going(each: Sighting, namespace: str) -> bool:
    return each.namespace == namespace and "deletionTimestamp" in each.obj["metadata"]
