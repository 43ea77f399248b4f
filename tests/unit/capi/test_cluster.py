"""Cluster and MachineDeployment: networks, references, and how machines are replaced."""

from __future__ import annotations

import pytest

from blueprints import blueprint, node_network
from butler.capi.cluster import cluster, workers
from butler.rules.tenant.blueprint import Versions


def test_a_cluster_has_its_networks_and_points_at_its_parts() -> None:
    made = cluster(blueprint("aws", {"networking": {"podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"}}))
    where = {"name": "payments", "namespace": "payments-5f0c9d1e"}
    infrastructure = "infrastructure.cluster.x-k8s.io/v1beta2"
    steward = "controlplane.cluster.x-k8s.io/v1alpha1"
    assert made["spec"] == {
        "paused": False,
        "clusterNetwork": {
            "pods": {"cidrBlocks": ["10.1.0.0/16"]},
            "services": {"cidrBlocks": ["10.2.0.0/16"]},
            "serviceDomain": "cluster.local",
        },
        "infrastructureRef": {"apiVersion": infrastructure, "kind": "AWSCluster", **where},
        "controlPlaneRef": {"apiVersion": steward, "kind": "StewardControlPlane", **where},
    }


def test_pausing_the_tenant_cluster_pauses_the_cluster() -> None:
    assert cluster(blueprint("aws", {"paused": True}))["spec"]["paused"] is True


def test_workers_select_exactly_their_own_machines_and_run_the_workers_version() -> None:
    made = workers(
        blueprint("aws", {"workers": {"replicas": 4}}, versions=Versions("v1.34.0", "v1.33.2")), "t", bootstrap_name="b"
    )
    spec = made["spec"]
    assert made["metadata"]["name"] == "payments-workers"
    assert spec["replicas"] == 4
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert spec["selector"]["matchLabels"]["cluster.x-k8s.io/deployment-name"] == "payments-workers"
    assert spec["template"]["spec"]["version"] == "v1.33.2"
    assert spec["template"]["spec"]["bootstrap"]["configRef"]["name"] == "b"
    assert spec["template"]["spec"]["infrastructureRef"]["name"] == "t"


def test_workers_can_be_configured_by_a_secret() -> None:
    made = workers(blueprint("aws"), "t", secret="s")
    assert made["spec"]["template"]["spec"]["bootstrap"] == {"dataSecretName": "s"}


@pytest.mark.parametrize("given", [{}, {"bootstrap_name": "b", "secret": "s"}])
def test_workers_are_configured_in_exactly_one_way(given: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="one of them only"):
        workers(blueprint("aws"), "t", **given)


SURGE = {"maxSurge": 1, "maxUnavailable": 0}
REPLACE = {"maxSurge": 0, "maxUnavailable": 1}


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [("10.40.1.0-10.40.1.3", SURGE), ("10.40.1.0-10.40.1.2", REPLACE), ("10.40.1.0-10.40.1.1", REPLACE)],
    ids=["one to spare", "just enough", "too few"],
)
def test_a_machine_more_than_wanted_comes_only_if_it_has_an_address(addresses: str, expected: dict[str, int]) -> None:
    made = workers(blueprint("proxmox", nodes=node_network(addresses)), "t", secret="s")
    assert made["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": expected}


def test_without_node_addresses_of_ours_there_is_always_room_for_one_more() -> None:
    made = workers(blueprint("aws"), "t", secret="s")
    assert made["spec"]["strategy"]["rollingUpdate"] == SURGE
