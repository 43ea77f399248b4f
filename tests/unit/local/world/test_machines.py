"""What a machine says of itself, what is cloned for it, and who goes first when there are too many."""

from __future__ import annotations

from typing import Any

import pytest

from butler.local.world import machine_status
from butler.local.world.machine_objects import infrastructure_machine, node, provider_id
from butler.local.world.machine_sets import new_machine, status, to_delete

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:00:09Z"
Json = dict[str, Any]


def machine(name: str = "web-1", **told: Any) -> Json:
    return {
        "metadata": {"name": name, "namespace": "web", "uid": f"uid-{name}", "generation": 1},
        "spec": {
            "clusterName": "web",
            "version": "v1.33.2",
            "infrastructureRef": {"apiVersion": "i/v1", "kind": told.pop("kind", "ProxmoxMachine"), "name": name},
        },
        "status": told,
    }


def machine_set() -> Json:
    template = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ProxmoxMachineTemplate",
        "name": "shape-1",
    }
    config = {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfigTemplate", "name": "boot-1"}
    return {
        "metadata": {"name": "web-workers-a", "namespace": "web", "uid": "uid-set", "labels": {"other": "label"}},
        "spec": {
            "clusterName": "web",
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"tenant": "web"}},
                "spec": {"version": "v1.33.2", "infrastructureRef": template, "bootstrap": {"configRef": config}},
            },
        },
    }


def test_a_machine_refers_to_objects_of_its_own_name() -> None:
    made = new_machine(machine_set())
    name = made["metadata"]["name"]
    assert name.startswith("web-workers-a-")
    assert made["spec"]["infrastructureRef"] == {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ProxmoxMachine",
        "name": name,
        "namespace": "web",
    }
    assert made["spec"]["bootstrap"]["configRef"]["kind"] == "KubeadmConfig"
    assert made["metadata"]["labels"] == {
        "tenant": "web",
        "cluster.x-k8s.io/cluster-name": "web",
        "cluster.x-k8s.io/set-name": "web-workers-a",
    }


def test_a_set_leaves_its_template_as_it_is() -> None:
    before = machine_set()
    found = machine_set()
    new_machine(found)
    assert found == before


def test_a_clone_says_what_its_template_says_and_where_it_is_from() -> None:
    template = {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1alpha1",
        "kind": "ProxmoxMachineTemplate",
        "metadata": {"name": "shape-1"},
        "spec": {"template": {"spec": {"numCores": 4}}},
    }
    found = infrastructure_machine(machine(), template, "10.0.0.5")
    assert found["spec"] == {"numCores": 4, "providerID": provider_id(machine())}
    assert found["metadata"]["annotations"] == {
        "cluster.x-k8s.io/cloned-from-name": "shape-1",
        "cluster.x-k8s.io/cloned-from-groupkind": "ProxmoxMachineTemplate.infrastructure.cluster.x-k8s.io",
        "world.butler.butlerlabs.dev/address": "10.0.0.5",
    }
    assert machine_status.address_of(found) == "10.0.0.5"
    assert machine_status.address_of(infrastructure_machine(machine(), template, None)) is None


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        ("ProxmoxMachine", "proxmox://"),
        ("HarvesterMachine", "harvester://"),
        ("NutanixMachine", "nutanix://"),
        ("AWSMachine", "aws:///local/i-"),
        ("GCPMachine", "gce://local/local/web-1"),
        ("AzureMachine", "azure:///subscriptions/"),
    ],
)
def test_every_provider_names_its_machines_in_its_own_way(kind: str, begins: str) -> None:
    assert provider_id(machine(kind=kind)).startswith(begins)
    assert provider_id(machine(kind=kind)) == provider_id(machine(kind=kind))


def test_a_node_is_as_large_as_its_machine() -> None:
    for shape in (
        {"cpu": 8, "memory": "4096Mi"},
        {"numCores": 4, "numSockets": 2, "memoryMiB": 4096},
        {"vcpuSockets": 8, "vcpusPerSocket": 1, "memorySize": "4096Mi"},
    ):
        found = node(machine(), shape, "10.0.0.5", NOW)["status"]
        assert found["capacity"] == {"cpu": "8", "memory": "4096Mi", "pods": "110"}
    assert found["nodeInfo"]["kubeletVersion"] == "v1.33.2"


def test_those_marked_go_first_then_those_of_no_use_then_the_oldest() -> None:
    of_use = {"nodeRef": {"name": "n"}}
    marked, failed = machine("marked", **of_use), machine("failed", **of_use, failureMessage="no")
    marked["metadata"]["annotations"] = {"cluster.x-k8s.io/delete-machine": ""}
    young, old = machine("young", **of_use), machine("old", **of_use)
    young["metadata"]["creationTimestamp"], old["metadata"]["creationTimestamp"] = LATER, NOW
    everyone = [young, old, failed, machine("nodeless"), marked]

    def order(policy: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in to_delete(everyone, 5, policy)]

    assert order("Random")[0] == order("Newest")[0] == "marked"
    assert set(order("Oldest")[1:3]) == {"failed", "nodeless"}
    assert order("Oldest")[3:] == ["old", "young"]
    assert order("Newest")[3:] == ["young", "old"]
    assert to_delete(everyone, 0, "Random") == []


def test_a_set_counts_a_machine_as_ready_when_its_node_is() -> None:
    running = machine("a")
    running["status"] = machine_status.running(running, {"name": "a"}, "10.0.0.5", NOW)
    waiting = machine("b")
    waiting["status"] = machine_status.provisioning(waiting, "Waits", "", NOW)
    found = status(machine_set(), [running, waiting], NOW)
    assert (found["replicas"], found["readyReplicas"], found["availableReplicas"]) == (2, 1, 1)


def test_saying_the_same_again_is_no_change() -> None:
    one = machine()
    for told in (
        lambda now: machine_status.pending(one, now),
        lambda now: machine_status.provisioning(one, "NoFreeAddress", "none is free", now),
        lambda now: machine_status.running(one, {"name": "web-1"}, "10.0.0.5", now),
        lambda now: machine_status.failed(one, "CreateError", "no", now),
        lambda now: machine_status.deleting(one, now),
    ):
        one["status"] = one["status"] | told(NOW)
        assert one["status"] | told(LATER) == one["status"]
