"""Harvester: addresses in one range, credentials where they are, and what CAPHV cannot do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from blueprints import KUBECONFIG, blueprint, contents, machine_os, node_network
from butler.capi.harvester import infrastructure
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Infrastructure


def build(cluster: Json | None = None, config: Json | None = None, **more: Any) -> Infrastructure:
    return infrastructure(blueprint("harvester", cluster, config, **more))


def machine(made: Infrastructure) -> Json:
    found: Json = made.machine_template["spec"]["template"]["spec"]
    return found


def test_node_addresses_become_the_machines_network() -> None:
    assert build().cluster["spec"]["vmNetworkConfig"] == {
        "gateway": "10.40.0.1",
        "subnetMask": "255.255.248.0",
        "dnsServers": ["10.40.0.2", "10.40.0.3"],
        "ipPool": {
            "vmNetwork": "default/vlan60",
            "subnet": "10.40.0.0/21",
            "gateway": "10.40.0.1",
            "rangeStart": "10.40.1.0",
            "rangeEnd": "10.40.1.4",
        },
    }


def test_ranges_that_touch_are_one() -> None:
    made = build(nodes=node_network("10.40.1.4-10.40.1.7", "10.40.1.0-10.40.1.3"))
    pool = made.cluster["spec"]["vmNetworkConfig"]["ipPool"]
    assert (pool["rangeStart"], pool["rangeEnd"]) == ("10.40.1.0", "10.40.1.7")


def test_ranges_apart_from_each_other_are_refused() -> None:
    with pytest.raises(Unbuildable, match="several that do not touch"):
        build(nodes=node_network("10.40.1.0-10.40.1.3", "10.40.2.0-10.40.2.3"))


def test_without_node_addresses_machines_use_dhcp() -> None:
    assert "vmNetworkConfig" not in build(dhcp=True).cluster["spec"]


@pytest.mark.parametrize("setting", [{"gateway": "10.40.0.1"}, {"dnsServers": ["10.40.0.2"]}])
def test_network_settings_that_dhcp_would_override_are_refused(setting: Json) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(config={"network": setting}, dhcp=True)
    assert refused.value.field == f"spec.network.{next(iter(setting))}"


def test_the_endpoint_is_left_to_others() -> None:
    assert "controlPlaneEndpoint" not in build().cluster["spec"]


def test_a_machine_has_the_shape_that_was_asked_for() -> None:
    made = build({"workers": {"machineTemplate": {"cpu": 6, "memory": "1500M", "diskSize": "40.5Gi"}}})
    assert machine(made) == {
        "cpu": 6,
        "memory": "1431Mi",
        "sshUser": "rocky",
        "sshKeyPair": "default/butler",
        "networks": ["default/vlan60"],
        "volumes": [
            {"volumeType": "image", "imageName": "default/rocky-9.5-kube", "volumeSize": "41Gi", "bootOrder": 1}
        ],
    }


def test_the_nearest_source_of_an_image_wins() -> None:
    override: Json = {"infrastructureOverride": {"harvester": {"imageName": "a/override"}}}
    no_default: Json = {"harvester": {"imageName": None}}

    def image(cluster: Json, config: Json | None = None) -> str:
        found: str = machine(build(cluster, config))["volumes"][0]["imageName"]
        return found

    assert image({**override, **machine_os(imageRef="a/ref")}) == "a/ref"
    assert image(override) == "a/override"
    assert image({}) == "default/rocky-9.5-kube"
    assert image(machine_os(version="9.4"), no_default) == "rocky-9.4"


def test_a_cluster_may_have_its_own_namespace_and_network() -> None:
    made = build({"infrastructureOverride": {"harvester": {"namespace": "tenants", "networkName": "tenants/v1"}}})
    assert made.cluster["spec"]["targetNamespace"] == "tenants"
    assert made.cluster["spec"]["vmNetworkConfig"]["ipPool"]["vmNetwork"] == "tenants/v1"
    assert machine(made)["networks"] == ["tenants/v1"]
    assert machine(made)["sshKeyPair"] == "tenants/butler"


def test_credentials_stay_where_they_are() -> None:
    made = build()
    assert made.cluster["spec"]["identitySecret"] == {"namespace": "butler-system", "name": "login"}
    assert made.others == ()


def test_an_endpoint_of_our_own_goes_into_a_copy_of_the_kubeconfig() -> None:
    made = build(config={"harvester": {"endpoint": "https://10.9.9.9:6443"}})
    (secret,) = made.others
    assert made.cluster["spec"]["server"] == "https://10.9.9.9:6443"
    assert made.cluster["spec"]["identitySecret"] == {"namespace": "payments-5f0c9d1e", "name": "payments-harvester"}
    config = yaml.safe_load(contents(secret)["kubeconfig"])
    servers = {cluster["name"]: cluster["cluster"]["server"] for cluster in config["clusters"]}
    assert servers == {"x": "https://x:6443", "hv": "https://10.9.9.9:6443"}
    assert config["users"] == yaml.safe_load(KUBECONFIG)["users"]


def test_another_key_is_copied_to_where_the_provider_reads() -> None:
    made = build(config={"credentialsRef": {"key": "hv.yaml"}}, credentials={"hv.yaml": KUBECONFIG})
    (secret,) = made.others
    assert contents(secret) == {"kubeconfig": KUBECONFIG}


@pytest.mark.parametrize("text", ["", "no: kubeconfig", "[1, 2", "- a"])
def test_a_kubeconfig_that_cannot_be_read_is_the_credentials_fault(text: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(config={"harvester": {"endpoint": "https://h"}}, credentials={"kubeconfig": text})
    assert refused.value.field == "spec.credentialsRef"


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"harvester": {"storageClassName": "fast"}}, "spec.harvester.storageClassName"),
        ({"network": {"subnet": "vlan61"}}, "spec.network.subnet"),
    ],
)
def test_what_the_provider_cannot_obey_is_refused(config: Json, field: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(config=config)
    assert refused.value.field == field


def test_talos_is_refused_as_its_machines_would_never_join() -> None:
    with pytest.raises(Unbuildable) as refused:
        build(machine_os(type="talos"))
    assert refused.value.field == "spec.workers.machineTemplate.os.type"
