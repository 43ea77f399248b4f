"""Nutanix: addresses are reserved and never assigned, credentials are JSON, images are UUIDs, names or looked up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from blueprints import IMAGE, PE_CLUSTER, SUBNET, blueprint, contents, machine_os, node_network
from butler.capi.nutanix import EXPECTED_NETWORK, RESERVED, infrastructure
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Infrastructure


def build(cluster: Json | None = None, config: Json | None = None, **more: Any) -> Infrastructure:
    return infrastructure(blueprint("nutanix", cluster, config, **more))


def machine(made: Infrastructure) -> Json:
    found: Json = made.machine_template["spec"]["template"]["spec"]
    return found


def test_node_addresses_are_shown_as_reserved() -> None:
    made = build(nodes=node_network("10.40.1.0-10.40.1.3", "10.40.2.9-10.40.2.9"))
    annotations = made.cluster["metadata"]["annotations"]
    assert annotations[RESERVED] == "10.40.1.0-10.40.1.3, 10.40.2.9"
    assert json.loads(annotations[EXPECTED_NETWORK]) == {
        "gateway": "10.40.0.1",
        "prefix": 21,
        "dnsServers": ["10.40.0.2", "10.40.0.3"],
    }


def test_nothing_is_reserved_where_the_network_gives_addresses() -> None:
    assert "annotations" not in build(dhcp=True).cluster["metadata"]


@pytest.mark.parametrize("types", [None, ["nodes", "loadbalancer"]])
def test_a_pool_that_also_serves_load_balancers_is_refused_for_nodes(types: list[str] | None) -> None:
    pool: Json = {"name": "rack-12", **({"types": types} if types else {})}
    with pytest.raises(Unbuildable, match="rack-12 must be for nodes alone") as refused:
        build(config={"network": {"poolRefs": [pool]}})
    assert refused.value.field == "spec.network.poolRefs[].types"


def test_a_pool_for_load_balancers_alone_is_no_concern() -> None:
    pools = [{"name": "a", "types": ["loadbalancer"]}]
    build(config={"network": {"mode": "ipam", "poolRefs": pools}}, dhcp=True)


def test_a_machine_has_the_shape_that_was_asked_for() -> None:
    made = build({"workers": {"machineTemplate": {"cpu": 6, "memory": "1500M", "diskSize": "40.5Gi"}}})
    assert machine(made) == {
        "bootType": "legacy",
        "vcpuSockets": 6,
        "vcpusPerSocket": 1,
        "memorySize": "1431Mi",
        "systemDiskSize": "41Gi",
        "cluster": {"type": "uuid", "uuid": PE_CLUSTER},
        "subnet": [{"type": "uuid", "uuid": SUBNET}],
        "image": {"type": "uuid", "uuid": IMAGE},
    }


def test_a_disk_that_is_too_small_is_refused() -> None:
    with pytest.raises(Unbuildable, match=r"at least 20Gi"):
        build({"workers": {"machineTemplate": {"diskSize": "19Gi"}}})


def test_the_nearest_source_of_an_image_wins() -> None:
    override: Json = {"infrastructureOverride": {"nutanix": {"imageUUID": PE_CLUSTER}}}
    no_default: Json = {"nutanix": {"imageUUID": None}}
    assert machine(build({**override, **machine_os(imageRef="mine")}))["image"] == {"type": "name", "name": "mine"}
    assert machine(build(override))["image"] == {"type": "uuid", "uuid": PE_CLUSTER}
    looked_up = machine(build(machine_os(version="9.4"), no_default))
    assert looked_up["imageLookup"]["baseOS"] == "rocky-9.4"
    assert "image" not in looked_up
    talos = machine(build(machine_os(type="talos"), no_default))
    assert talos["image"] == {"type": "name", "name": "talos-v1.9.3"}


def test_a_cluster_may_have_its_own_prism_element_and_subnet() -> None:
    made = machine(build({"infrastructureOverride": {"nutanix": {"clusterUUID": IMAGE, "subnetUUID": PE_CLUSTER}}}))
    assert made["cluster"]["uuid"] == IMAGE
    assert made["subnet"] == [{"type": "uuid", "uuid": PE_CLUSTER}]


def test_credentials_are_json_whatever_is_in_the_password() -> None:
    (secret,) = build().others
    assert json.loads(contents(secret)["credentials"]) == [
        {
            "type": "basic_auth",
            "data": {"prismCentral": {"username": "butler", "password": 'with "quotes" and \\'}},
        }
    ]


def test_prism_central_is_reached_as_the_settings_say() -> None:
    made = build(
        config={"nutanix": {"endpoint": "https://prism.example.com:9441", "port": 9441, "insecure": True}},
        credentials={"username": "u", "password": "p", "ca.pem": "PEM"},
    )
    assert made.cluster["spec"]["prismCentral"] == {
        "address": "prism.example.com",
        "port": 9441,
        "insecure": True,
        "credentialRef": {"kind": "Secret", "name": "payments-nutanix", "namespace": "payments-5f0c9d1e"},
        "additionalTrustBundle": {"kind": "String", "data": "PEM"},
    }


@pytest.mark.parametrize(
    ("endpoint", "port", "expected"),
    [("https://prism", 9440, 9440), ("https://prism:443", 9440, 443), ("https://prism", 444, 444)],
)
def test_the_port_is_where_it_was_written(endpoint: str, port: int, expected: int) -> None:
    made = build(config={"nutanix": {"endpoint": endpoint, "port": port}})
    assert made.cluster["spec"]["prismCentral"]["port"] == expected


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"nutanix": {"endpoint": "http://prism"}}, "spec.nutanix.endpoint"),
        ({"nutanix": {"endpoint": "https://prism:443", "port": 444}}, "spec.nutanix.port"),
        ({"nutanix": {"storageContainerUUID": IMAGE}}, "spec.nutanix.storageContainerUUID"),
        ({"network": {"subnet": "vlan60"}}, "spec.network.subnet"),
        ({"credentialsRef": {"key": "login"}}, "spec.credentialsRef.key"),
    ],
)
def test_what_the_provider_cannot_obey_is_refused(config: Json, field: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(config=config)
    assert refused.value.field == field


def test_a_storage_container_of_one_cluster_is_refused_too() -> None:
    with pytest.raises(Unbuildable) as refused:
        build({"infrastructureOverride": {"nutanix": {"storageContainerUUID": IMAGE}}})
    assert refused.value.field == "spec.infrastructureOverride.nutanix.storageContainerUUID"
