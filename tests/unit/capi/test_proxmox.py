"""Proxmox: addresses on the cluster, an API token, templates by number or by tag."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from blueprints import blueprint, contents, machine_os, node_network
from butler.capi.proxmox import infrastructure
from butler.rules.tenant.blueprint import Unbuildable

if TYPE_CHECKING:
    from butler.api.objects import Json
    from butler.rules.tenant.blueprint import Infrastructure


def build(cluster: Json | None = None, config: Json | None = None, **more: Any) -> Infrastructure:
    return infrastructure(blueprint("proxmox", cluster, config, **more))


def machine(made: Infrastructure) -> Json:
    found: Json = made.machine_template["spec"]["template"]["spec"]
    return found


def test_node_addresses_lie_on_the_cluster_with_gateway_and_dns() -> None:
    made = build(nodes=node_network("10.40.1.0-10.40.1.3", "10.40.2.9-10.40.2.9"))
    assert made.cluster["spec"] == {
        "externalManagedControlPlane": True,
        "allowedNodes": ["pve1", "pve2"],
        "credentialsRef": {"name": "payments-proxmox", "namespace": "payments-5f0c9d1e"},
        "dnsServers": ["10.40.0.2", "10.40.0.3"],
        "ipv4Config": {
            "addresses": ["10.40.1.0-10.40.1.3", "10.40.2.9"],
            "prefix": 21,
            "gateway": "10.40.0.1",
            "metric": 100,
        },
    }


@pytest.mark.parametrize(
    ("network", "field"),
    [({}, "spec.network.gateway"), ({"gateway": "10.40.0.1"}, "spec.network.poolRefs[].types")],
)
def test_a_cluster_without_node_addresses_is_refused(network: Json, field: str) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(config={"network": network}, dhcp=True)
    assert refused.value.field == field


def test_a_cluster_without_dns_servers_is_refused() -> None:
    with pytest.raises(Unbuildable) as refused:
        build(nodes=node_network(dns_servers=()))
    assert refused.value.field == "spec.network.dnsServers"


def test_a_machine_has_the_shape_that_was_asked_for() -> None:
    made = build({"workers": {"machineTemplate": {"cpu": 6, "memory": "1500M", "diskSize": "40.5Gi"}}})
    assert machine(made) == {
        "templateID": 9000,
        "sourceNode": "pve1",
        "full": True,
        "storage": "ceph",
        "numSockets": 1,
        "numCores": 6,
        "memoryMiB": 1432,
        "disks": {"bootVolume": {"disk": "scsi0", "sizeGb": 41}},
        "description": "worker of the Butler tenant cluster team-payments/payments",
    }


def test_a_disk_that_is_too_small_is_refused() -> None:
    with pytest.raises(Unbuildable, match=r"at least 5Gi"):
        build({"workers": {"machineTemplate": {"diskSize": "4Gi"}}})


@pytest.mark.parametrize(
    ("cluster", "config", "expected"),
    [
        (machine_os(imageRef="9005"), {}, {"templateID": 9005, "sourceNode": "pve1"}),
        (machine_os(imageRef="rocky, gpu"), {}, {"templateSelector": {"matchTags": ["rocky", "gpu"]}}),
        (
            {"infrastructureOverride": {"proxmox": {"templateID": 9001}}},
            {},
            {"templateID": 9001, "sourceNode": "pve1"},
        ),
        ({}, {"proxmox": {"templateID": None}}, {"templateSelector": {"matchTags": ["rocky-9.5"]}}),
        (
            machine_os(type="talos", talos={"version": "v1.10.0"}),
            {"proxmox": {"templateID": None}},
            {"templateSelector": {"matchTags": ["talos-v1.10.0"]}},
        ),
    ],
    ids=["number", "tags", "override", "name of the system", "talos"],
)
def test_a_template_is_named_by_its_number_or_found_by_its_tags(cluster: Json, config: Json, expected: Json) -> None:
    made = machine(build(cluster, config))
    names = ("templateID", "sourceNode", "templateSelector")
    assert {name: made[name] for name in names if name in made} == expected


def test_tags_with_nothing_between_the_commas_are_refused() -> None:
    with pytest.raises(Unbuildable, match="commas"):
        build(machine_os(imageRef="rocky,"))


def test_a_cluster_may_have_its_own_node_and_storage() -> None:
    made = build({"infrastructureOverride": {"proxmox": {"node": "pve2", "storage": "zfs"}}})
    assert made.cluster["spec"]["allowedNodes"] == ["pve2"]
    assert machine(made)["target"] == "pve2"
    assert machine(made)["storage"] == "zfs"


def test_the_bridge_and_the_numbers_of_machines_are_passed_on() -> None:
    made = machine(build(config={"network": {"subnet": "vmbr1"}, "proxmox": {"vmidRange": {"start": 200, "end": 299}}}))
    assert made["network"] == {"default": {"bridge": "vmbr1", "model": "virtio"}}
    assert made["vmIDRange"] == {"start": 200, "end": 299}


@pytest.mark.parametrize("insecure", [True, False])
def test_the_token_is_handed_over_with_an_explicit_word_on_certificates(insecure: bool) -> None:
    (secret,) = build(config={"proxmox": {"insecure": insecure}}).others
    assert contents(secret) == {
        "url": "https://pve.example.com:8006",
        "token": "butler@pve!capi",
        "secret": "00000000-0000-0000-0000-00000000000a",
        "insecure": "true" if insecure else "false",
    }


def test_a_certificate_authority_is_passed_on() -> None:
    (secret,) = build(credentials={"username": "a@b!c", "password": "p", "ca.pem": "PEM"}).others
    assert contents(secret)["root_ca"] == "PEM"


@pytest.mark.parametrize(
    "credentials", [{"username": "root@pam", "password": "p"}, {"username": "a@b!c"}, {"password": "p"}]
)
def test_credentials_that_are_no_token_are_refused_without_showing_them(credentials: dict[str, str]) -> None:
    with pytest.raises(Unbuildable) as refused:
        build(credentials=credentials)
    assert refused.value.field == "spec.credentialsRef"
    assert "root@pam" not in refused.value.problem


def test_what_talos_and_flatcar_do_not_have_is_not_waited_for() -> None:
    assert machine(build(machine_os(type="talos")))["checks"] == {
        "skipCloudInitStatus": True,
        "skipQemuGuestAgent": True,
    }
    assert machine(build(machine_os(type="flatcar")))["checks"] == {"skipCloudInitStatus": True}
    assert "checks" not in machine(build())
