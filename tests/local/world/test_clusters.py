"""Clusters come to life and go: control plane, machines, Nodes with exactly their addresses, the order of an end."""

from __future__ import annotations

import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from local.world.estate import Json, Tenant, address_of, internal_ips

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LIFE = ("clusters", "stewardcontrolplanes", "proxmoxclusters", "machinedeployments", "machinesets", "machines")


def test_nodes_have_exactly_the_addresses_of_the_provider(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant()
    web.create(replicas=3, addresses=["10.77.0.10-10.77.0.11", "10.77.0.20"])
    web.ready(3)
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == ["10.77.0.10", "10.77.0.11", "10.77.0.20"]
    machines = {item["metadata"]["name"]: item for item in web.machines()}
    assert {item["metadata"]["name"] for item in nodes} == set(machines)
    for node in nodes:
        machine = machines[node["metadata"]["name"]]
        assert node["spec"]["providerID"] == machine["spec"]["providerID"]
        assert node["spec"]["providerID"].startswith("proxmox://")
        assert internal_ips([node]) == [address_of(machine)]
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.33.2"
        assert node["status"]["capacity"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
        assert machine["status"]["nodeRef"]["uid"] == node["metadata"]["uid"]


def test_everything_belongs_to_the_cluster_and_carries_its_labels(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1)
    web.ready(1)
    (machine,) = web.machines()
    (machine_set,) = web.list("machinesets")
    assert machine["metadata"]["labels"] == {
        "cluster.x-k8s.io/cluster-name": "web",
        "cluster.x-k8s.io/deployment-name": "workers",
        "cluster.x-k8s.io/set-name": machine_set["metadata"]["name"],
        "machine-template-hash": machine_set["metadata"]["labels"]["machine-template-hash"],
    }
    owners = {
        "machines": "MachineSet",
        "proxmoxmachines": "Machine",
        "kubeadmconfigs": "Machine",
        "machinesets": "MachineDeployment",
        "machinedeployments": "Cluster",
        "stewardcontrolplanes": "Cluster",
        "proxmoxclusters": "Cluster",
        "proxmoxmachinetemplates": "Cluster",
        "kubeadmconfigtemplates": "Cluster",
    }
    for plural, kind in owners.items():
        (found,) = web.list(plural)
        assert [owner_reference["kind"] for owner_reference in found["metadata"]["ownerReferences"]] == [kind], plural
        assert found["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"] == "web", plural
    (clone,) = web.list("proxmoxmachines")
    assert clone["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"] == "workers-a"


def test_the_status_of_every_part_follows_the_contract(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1)
    web.ready(1)
    cluster = web.get("clusters", "web")
    assert cluster is not None
    assert cluster["spec"]["controlPlaneEndpoint"]["host"] == "127.0.0.1"
    assert cluster["status"]["phase"] == "Provisioned"
    assert (cluster["status"]["infrastructureReady"], cluster["status"]["controlPlaneReady"]) == (True, True)
    control_plane = web.status("stewardcontrolplanes", "web")
    assert {key: control_plane[key] for key in ("initialized", "ready", "version", "replicas")} == {
        "initialized": True,
        "ready": True,
        "version": "v1.33.2",
        "replicas": 1,
    }
    infrastructure = web.get("proxmoxclusters", "web")
    assert infrastructure is not None
    assert infrastructure["spec"]["controlPlaneEndpoint"] == cluster["spec"]["controlPlaneEndpoint"]
    assert infrastructure["status"]["ready"] is True
    assert web.workers()["phase"] == "Running"


def test_both_kubeconfigs_lead_to_the_tenant_and_nowhere_else(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web, shop = tenant("web"), tenant("shop")
    web.create(replicas=1)
    shop.create(replicas=2)
    web.ready(1)
    shop.ready(2)
    for entry in ("admin.conf", "admin.svc"):
        assert web.kubeconfig(tmp_path, entry).read_text() == web.kubeconfig(tmp_path).read_text()
    assert len(web.kubectl(tmp_path, "get", "nodes", "-o", "name").split()) == 1
    assert len(shop.kubectl(tmp_path, "get", "nodes", "-o", "name").split()) == 2
    authority = web.get("secrets", "web-ca")
    assert authority is not None
    assert "ca.crt" in authority["data"]
    assert "ca.key" not in authority["data"]


def test_harvester_machines_take_addresses_of_its_range(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant(provider="Harvester")
    web.create(replicas=2, addresses=["10.77.0.40-10.77.0.41"])
    web.ready(2)
    nodes = json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"]
    assert internal_ips(nodes) == ["10.77.0.40", "10.77.0.41"]


def test_without_node_addresses_machines_use_dhcp(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant(provider="Harvester")
    web.create(replicas=2, addresses=())
    web.ready(2)
    found = internal_ips(json.loads(web.kubectl(tmp_path, "get", "nodes", "-o", "json"))["items"])
    assert all(text.startswith("172.31.") for text in found)
    assert len(set(found)) == 2


@pytest.mark.parametrize("provider", ["Nutanix", "AWS", "Azure"])
def test_providers_learn_the_endpoint_from_steward(tenant: Callable[..., Tenant], provider: str) -> None:
    web = tenant(provider=provider)
    web.create(replicas=1)
    web.ready(1)
    infrastructure = web.get(f"{web.lower}clusters", "web")
    assert infrastructure is not None
    assert infrastructure["spec"]["controlPlaneEndpoint"]["host"] == "127.0.0.1"
    assert infrastructure["status"]["ready"] is True


def test_google_waits_until_another_controller_writes_the_endpoint(tenant: Callable[..., Tenant]) -> None:
    web = tenant(provider="GCP")
    web.create(replicas=1)

    def endpoint() -> Json | None:
        return (web.get("clusters", "web") or {})["spec"].get("controlPlaneEndpoint")

    found = web.until(endpoint, "the Cluster knows where its control plane is")
    assert not web.status("clusters", "web").get("infrastructureReady")
    assert not web.status("stewardcontrolplanes", "web").get("ready")
    web.patch("gcpclusters", "web", json.dumps({"spec": {"controlPlaneEndpoint": found}}))
    web.ready(1)


def test_talos_workers_find_what_they_need_to_trust(tenant: Callable[..., Tenant]) -> None:
    web, shop = tenant("web"), tenant("shop")
    web.create(replicas=1, control_plane={"addons": {"workerBootstrap": {"provider": "talos"}}})
    shop.create(replicas=1)
    shop.ready(1)
    assert shop.get("secrets", "shop-trustd-creds") is None
    trust = web.until(lambda: web.get("secrets", "web-trustd-creds"), "the credentials are there")
    assert sorted(trust["data"]) == ["admin.crt", "admin.key", "os-ca.crt", "token"]


def test_a_new_version_of_the_control_plane_takes_its_time(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=1)
    web.ready(1)
    web.patch("stewardcontrolplanes", "web", '{"spec": {"version": "v1.34.1"}}')
    web.until(lambda: web.status("stewardcontrolplanes", "web")["version"] == "v1.34.1", "it is upgraded")
    assert web.status("stewardcontrolplanes", "web")["ready"] is True


def test_the_end_has_cluster_apis_order(tenant: Callable[..., Tenant], tmp_path: Path) -> None:
    web = tenant()
    web.create(replicas=2)
    web.ready(2)
    inside = web.inside(tmp_path)
    began = {plural: _version(web, plural) for plural in (*LIFE, "proxmoxmachines")}
    assert inside.request("GET", "/api/v1/nodes")[0] == 200
    web.delete("clusters", "web")
    web.gone()
    with ThreadPoolExecutor() as many:
        found = many.map(lambda item: _deletions(web, *item), began.items())
    ended = dict(zip(began, found, strict=True))
    assert [len(ended[text]) for text in (*LIFE, "proxmoxmachines")] == [1, 1, 1, 1, 1, 2, 2]
    assert max(ended["proxmoxmachines"]) < max(ended["machines"])
    in_order = [max(ended[name]) for name in ("machines", "machinesets", "machinedeployments")]
    in_order += [max(ended[name]) for name in ("stewardcontrolplanes", "proxmoxclusters", "clusters")]
    assert in_order == sorted(in_order)
    assert inside.request("GET", "/api/v1/nodes")[0] in (401, 404)


def test_a_world_at_rest_writes_nothing(tenant: Callable[..., Tenant]) -> None:
    web = tenant()
    web.create(replicas=2)
    web.ready(2)
    kinds = (*LIFE, "proxmoxmachines", "secrets")

    def versions() -> Json:
        return {kind: [found["metadata"]["resourceVersion"] for found in web.list(kind)] for kind in kinds}

    def settled() -> bool:
        before = versions()
        time.sleep(1.0)
        return versions() == before

    web.until(settled, "nothing changes for a second")


def _version(web: Tenant, plural: str) -> str:
    code, answer = web.plane.request("GET", web.path(plural))
    assert code == 200, answer
    return str(answer["metadata"]["resourceVersion"])


def _deletions(web: Tenant, plural: str, since: str) -> list[int]:
    """Versions at which objects were deleted: across kinds, they are in the order of time."""
    url = f"{web.plane.url}{web.path(plural)}?watch=true&resourceVersion={since}&timeoutSeconds=1"
    request = urllib.request.Request(url, headers=dict(web.plane.headers))
    with urllib.request.urlopen(request, context=web.plane.tls, timeout=30) as stream:
        events = [json.loads(line) for line in stream]
    return [int(event["object"]["metadata"]["resourceVersion"]) for event in events if event["type"] == "DELETED"]
