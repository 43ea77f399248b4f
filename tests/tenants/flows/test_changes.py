"""What is asked of a cluster that runs: more workers and fewer, another Kubernetes, other machines, a pause."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tenants.estate import HOME, VERSION, phase_of
from tenants.flows.alongside import alongside

if TYPE_CHECKING:
    from tenants.estate import Estate, Site, Tenant
    from tenants.witness import Json

NEXT, BEYOND, BEFORE = "v1.33.2", "v1.34.1", "v1.31.9"


# How many.


@alongside
def test_workers_are_added_within_the_addresses_and_beyond(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=1)
    web.ready()
    first = web.addresses("nodes")
    assert len(first) == 2
    estate.kubectl("scale", "tenantcluster", "web", "-n", web.namespace, "--replicas=2")
    web.ready(2)
    assert web.addresses("nodes") == first
    assert web.machine_addresses() == sorted(first)

    estate.kubectl("scale", "tenantcluster", "web", "-n", web.namespace, "--replicas=5")
    web.ready(5)
    old, new = web.allocations("nodes")
    assert old["status"]["addresses"] == first
    assert re.fullmatch(r"web-nodes-\d+", new["metadata"]["name"]), "the next number that is free"
    assert new["metadata"]["labels"]["butler.butlerlabs.dev/allocation-role"] == "growth"
    assert (new["spec"]["count"], new["status"]["allocatedCount"]) == (3, 3)
    assert web.machine_addresses() == sorted(web.addresses("nodes"))
    assert web.message("NetworkReady") == "5 node addresses and 2 load-balancer addresses allocated"
    assert web.status["ipAllocationRef"]["name"] == old["metadata"]["name"]

    estate.kubectl("scale", "tenantcluster", "web", "-n", web.namespace, "--replicas=1")
    web.ready(1)
    assert len(web.addresses("nodes")) == 5, "addresses of a running cluster were given back"
    web.delete()
    web.gone()
    assert site.held() == 0


@alongside
def test_the_first_workers_get_one_block(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=4)
    web.ready()
    (nodes,) = web.allocations("nodes")
    assert nodes["spec"]["count"] == 4
    assert web.machine_addresses() == sorted(nodes["status"]["addresses"])


# How many load-balancer addresses.


def _balancers(estate: Estate, network: Json, **spec: Any) -> tuple[Site, Tenant]:
    site = estate.site(network=network)
    web = site.cluster(**spec)
    web.ready()
    return site, web


@alongside
def test_static_clusters_start_with_the_providers_number(estate: Estate) -> None:
    _, web = _balancers(estate, {"loadBalancer": {"allocationMode": "static", "defaultPoolSize": 5}})
    assert [allocation["spec"]["count"] for allocation in web.allocations("loadbalancer")] == [5]


@alongside
def test_elastic_clusters_start_small(estate: Estate) -> None:
    sizes = {"allocationMode": "elastic", "initialPoolSize": 1, "defaultPoolSize": 9}
    _, web = _balancers(estate, {"loadBalancer": sizes})
    assert [allocation["spec"]["count"] for allocation in web.allocations("loadbalancer")] == [1]


@alongside
def test_elastic_clusters_may_start_with_nothing(estate: Estate) -> None:
    site = estate.site(network={"loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 0}})
    web = site.cluster(addons={"ingress": {"enabled": False}})
    web.ready()
    assert web.allocations("loadbalancer") == []
    assert web.message("NetworkReady") == "2 node addresses allocated"
    assert "lbAllocationRef" not in web.status


@alongside
def test_a_cluster_may_name_its_number_and_raise_it(estate: Estate) -> None:
    _, web = _balancers(estate, {"loadBalancer": {"defaultPoolSize": 5}}, networking={"lbPoolSize": 3})
    assert [allocation["spec"]["count"] for allocation in web.allocations("loadbalancer")] == [3]
    web.edit({"networking": {"lbPoolSize": 4}})
    estate.until(lambda: len(web.addresses("loadbalancer")) == 4, "a further address")
    assert [allocation["spec"]["count"] for allocation in web.allocations("loadbalancer")] == [3, 1]
    web.ready()
    published = ("get", "ipaddresspool", "-n", "metallb-system", "default-pool", "-o", "json")
    web.until(lambda: _published(web.kubectl(*published)) == 4, "MetalLB knows all of them")


def _published(pool: str) -> int:
    found = 0
    for address in json.loads(pool)["spec"]["addresses"]:
        start, end = (int(part.rsplit(".", 1)[1]) for part in address.split("-"))
        found += end - start + 1
    return found


@alongside
def test_hand_picked_addresses_are_the_ones(estate: Estate) -> None:
    site = estate.site()
    picked = site.addresses(30, 32)
    web = site.cluster(networking={"loadBalancerPool": {"start": picked[0], "end": picked[-1]}})
    web.ready()
    assert web.addresses("loadbalancer") == picked

    def shown() -> list[dict[str, str]]:
        service = json.loads(web.kubectl("get", "services", "-n", "traefik", "traefik", "-o", "json"))
        return service["status"]["loadBalancer"].get("ingress", [])  # type: ignore[no-any-return]

    web.until(lambda: bool(shown()), "Traefik has an address")
    assert shown()[0]["ip"] == picked[0]


# Which Kubernetes.


@alongside
def test_an_upgrade_takes_the_control_plane_first(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    before = {machine["metadata"]["name"] for machine in web.machines()}
    web.edit({"kubernetesVersion": NEXT})
    web.until(lambda: web.status["observedState"].get("kubernetesVersion") == NEXT and web.phase == "Ready", "upgraded")
    web.ready(2)
    assert not before & {machine["metadata"]["name"] for machine in web.machines()}
    assert {machine["spec"]["version"] for machine in web.machines()} == {NEXT}
    assert web.machine_addresses() == sorted(web.addresses("nodes")), "the new machines have the old addresses"
    nodes = json.loads(web.kubectl("get", "nodes", "-o", "json"))["items"]
    assert {node["status"]["nodeInfo"]["kubeletVersion"] for node in nodes} == {NEXT}

    seen = estate.witness.history("stewardcontrolplanes", "machinedeployments", "tenantclusters")
    mine = [item for item in seen if item.namespace in (web.home, web.namespace)]
    told = next(e.version for e in mine if e.plural == "stewardcontrolplanes" and e.obj["spec"]["version"] == NEXT)
    arrived = next(
        e.version for e in mine if e.plural == "stewardcontrolplanes" and e.obj.get("status", {}).get("version") == NEXT
    )
    workers = next(
        e.version
        for e in mine
        if e.plural == "machinedeployments" and e.obj["spec"]["template"]["spec"]["version"] == NEXT
    )
    assert told < arrived < workers
    phases = [phase_of(e.obj) for e in mine if e.plural == "tenantclusters" and e.version > told]
    assert phases[0] in ("Ready", "Updating")
    assert "Updating" in phases
    assert set(phases) == {"Ready", "Updating"}


@alongside
def test_versions_that_cannot_be_reached_are_refused_and_forgiven(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster()
    web.ready()
    machines = {machine["metadata"]["uid"] for machine in web.machines()}
    web.edit({"kubernetesVersion": BEFORE})
    assert web.says("ControlPlaneReady", "False", "VersionNotAllowed") == (
        f"spec.kubernetesVersion: the control plane runs {VERSION} and cannot go back to {BEFORE}"
    )
    assert web.phase == "Failed"
    web.edit({"kubernetesVersion": BEYOND})
    web.until(lambda: BEYOND in web.message("ControlPlaneReady"), "it says why not")
    assert web.message("ControlPlaneReady") == (
        f"spec.kubernetesVersion: the control plane runs {VERSION} and can go up one minor version at a time,"
        f" to v1.33.x first, not to {BEYOND} at once"
    )
    assert web.condition("Ready")["status"] == "True", "a cluster that works is no worse for a wish that cannot be met"
    assert web.control_plane()["spec"]["version"] == VERSION
    web.edit({"kubernetesVersion": VERSION})
    web.ready()
    assert {machine["metadata"]["uid"] for machine in web.machines()} == machines


# Which machines.


@alongside
def test_another_shape_replaces_the_machines_and_the_template(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    (before,) = _templates(web)
    machines = {machine["metadata"]["uid"] for machine in web.machines()}
    web.edit({"workers": {"machineTemplate": {"cpu": 8}}})

    def replaced() -> bool:
        found = {machine["metadata"]["uid"] for machine in web.machines()}
        return len(found) == 2 and not found & machines and web.phase == "Ready" and len(_templates(web)) == 1

    web.until(replaced, "other machines, and one template")
    (after,) = _templates(web)
    assert after["metadata"]["name"] != before["metadata"]["name"]
    assert after["spec"]["template"]["spec"]["numCores"] == 8
    web.ready(2)
    assert web.machine_addresses() == sorted(web.addresses("nodes"))
    nodes = json.loads(web.kubectl("get", "nodes", "-o", "json"))["items"]
    assert {node["status"]["capacity"]["cpu"] for node in nodes} == {"8"}


def _templates(web: Tenant) -> list[Json]:
    path = f"/apis/infrastructure.cluster.x-k8s.io/v1alpha1/namespaces/{web.home}/proxmoxmachinetemplates"
    return list((web.estate.find(path) or {})["items"])


@alongside
def test_talos_machines_start_from_a_configuration(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2, workers={"machineTemplate": {"os": {"type": "talos"}}})
    web.ready(2)
    bootstrap = web.deployment()["spec"]["template"]["spec"]["bootstrap"]
    assert set(bootstrap) == {"dataSecretName"}
    secret = estate.find(f"/api/v1/namespaces/{web.home}/secrets/{bootstrap['dataSecretName']}")
    assert secret is not None
    assert (secret["type"], list(secret["data"])) == ("cluster.x-k8s.io/secret", ["value"])
    assert web.machine_addresses() == sorted(web.addresses("nodes"))
    assert len(json.loads(web.kubectl("get", "nodes", "-o", "json"))["items"]) == 2


@alongside
def test_machines_that_fail_are_told_of_and_forgiven(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    name = f"{web.name}-workers"
    web.annotate("machinedeployments", name, fail_machines="1")
    web.edit({"workers": {"replicas": 3}})
    said = web.says("WorkersReady", "False", "MachineFailed")
    assert web.phase == "Failed"
    assert said.startswith("2 of 3 workers are ready; web-workers-")
    assert said.endswith(": told to fail by the annotation world.butler.butlerlabs.dev/fail-machines")
    ready = web.condition("Ready")
    assert ready["status"] == "True", "two workers still work"
    assert said in ready["message"]
    web.annotate("machinedeployments", name, fail_machines=None)
    (broken,) = [machine for machine in web.machines() if phase_of(machine) == "Failed"]
    estate.delete(web.part("machines", broken["metadata"]["name"]))
    web.ready(3)
    assert web.machine_addresses() == sorted(web.addresses("nodes"))


# Left alone, and put right.


@alongside
def test_a_paused_cluster_is_left_as_it_is(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster()
    web.ready()
    web.edit({"paused": True})
    assert web.says("Paused", "True", "Paused") == "left as it is, by spec.paused"
    web.until(lambda: _cluster(web)["spec"].get("paused") is True, "Cluster API is told too")
    web.edit({"workers": {"replicas": 2}})
    web.until(lambda: web.status.get("workerNodesDesired") == 2 and web.is_current(), "it was looked at")
    assert web.deployment()["spec"]["replicas"] == 1
    assert len(web.machines()) == 1
    web.edit({"paused": False})
    web.ready(2)
    assert _cluster(web)["spec"].get("paused", False) is False
    assert web.condition("Paused")["status"] == "False"


def _cluster(web: Tenant) -> Json:
    return web.witness.get("clusters", web.home, web.name) or {}


@alongside
def test_what_is_changed_by_hand_is_put_right(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    estate.patch(web.part("machinedeployments", "web-workers"), {"spec": {"replicas": 1}})
    estate.patch(web.part("stewardcontrolplanes", "web"), {"spec": {"replicas": 3}})
    estate.patch(f"/api/v1/namespaces/{web.home}", {"metadata": {"labels": {"butler.butlerlabs.dev/tenant": None}}})
    web.until(lambda: web.deployment().get("spec", {}).get("replicas") == 2, "two workers again")
    web.until(lambda: web.control_plane().get("spec", {}).get("replicas") == 1, "one API server again")
    web.until(lambda: _labels(web).get("butler.butlerlabs.dev/tenant") == "web", "labelled again")
    web.ready(2)


def _labels(web: Tenant) -> Json:
    found = web.witness.get("namespaces", "", web.home) or {"metadata": {}}
    return dict(found["metadata"].get("labels") or {})


@alongside
def test_what_is_deleted_by_hand_comes_back(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(replicas=2)
    web.ready()
    held = web.addresses("nodes")
    deployment, hosted = web.deployment()["metadata"]["uid"], web.control_plane()["metadata"]["uid"]
    kubeconfig = f"/api/v1/namespaces/{web.home}/secrets/web-kubeconfig"
    estate.delete(web.part("machinedeployments", "web-workers"))
    estate.delete(kubeconfig)
    estate.delete(f"{site.path('tenantaddons')}/web-cert-manager")
    web.until(lambda: web.deployment().get("metadata", {}).get("uid") not in (None, deployment), "another one")
    web.ready(2)
    web.until(lambda: estate.find(kubeconfig), "the kubeconfig for Cluster API is back")
    web.until(lambda: web.addons().get("cert-manager") == "Installed", "the addon is back")
    assert web.addresses("nodes") == held
    assert web.machine_addresses() == sorted(held)
    estate.delete(web.part("stewardcontrolplanes", "web"))
    web.until(lambda: web.control_plane().get("metadata", {}).get("uid") not in (None, hosted), "another one")
    web.until(lambda: web.phase == "Ready" and web.condition("ControlPlaneReady")["status"] == "True", "Ready again")


# Addons.


@alongside
def test_a_cluster_is_ready_though_an_addon_fails(estate: Estate) -> None:
    """As the seeds have it: Ready, AddonsReady is False, and the addon is tried again."""
    site = estate.site()
    failing = {
        "apiVersion": "butler.butlerlabs.dev/v1alpha1",
        "kind": "TenantAddon",
        "metadata": {
            "name": "web-traefik",
            "namespace": site.namespace,
            "annotations": {"world.butler.butlerlabs.dev/fail": "no such chart"},
        },
        "spec": {"clusterRef": {"name": "web"}, "addon": "traefik"},
    }
    estate.apply(failing)
    web = site.cluster()
    assert web.says("AddonsReady", "False", "AddonFailed") == "traefik: no such chart"
    web.until(lambda: web.phase == "Ready", "it is Ready all the same")
    assert web.condition("Ready")["message"] == "the cluster can be used; traefik: no such chart"
    assert "traefik" not in web.kubectl("get", "services", "-A", "-o", "name")
    told = {"world.butler.butlerlabs.dev/fail": None}
    estate.patch(f"{site.path('tenantaddons')}/web-traefik", {"metadata": {"annotations": told}})
    web.ready()
    assert web.addons()["traefik"] == "Installed"


@alongside
def test_without_ingress_all_addresses_are_free(estate: Estate) -> None:
    site = estate.site()
    web = site.cluster(addons={"ingress": {"enabled": False}})
    web.ready()
    assert sorted(web.addons()) == ["cert-manager", "cilium", "longhorn", "metallb"]
    listed = ("get", "services", "-A", "--field-selector", "spec.type=LoadBalancer", "-o", "name")
    assert web.kubectl(*listed) == ""
    assert len(web.addresses("loadbalancer")) == 2
    web.edit({"addons": {"ingress": {"enabled": True, "provider": "nginx"}}})
    web.until(lambda: web.addons().get("nginx") == "Installed", "added later")
    web.ready()
    pool = estate.witness.get("networkpools", HOME, site.pool)
    assert pool is not None
    assert pool["status"]["allocatedIPs"] == 4
