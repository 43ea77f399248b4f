"""Objects for Cluster API Provider Azure, and the rules that only its webhooks and its controllers know."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from butler.rules.tenant.blueprint import Endpoint, Unbuildable
from unit.capi.clouds import CREDENTIALS, KEY, build, contents, machine

SYSTEM = "spec.workers.machineTemplate.os"
NO_NETWORK = {"spec.azure.vnetName": None, "spec.azure.subnetName": None}
COMPUTE = "/subscriptions/s1/resourceGroups/g1/providers/Microsoft.Compute"


def refusal(changes: dict[str, Any], **more: Any) -> str:
    with pytest.raises(Unbuildable) as caught:
        build("azure", changes, **more)
    return caught.value.field


def test_there_is_no_control_plane_here_and_its_endpoint_is_left_to_capi_steward() -> None:
    made = build("azure", endpoint=Endpoint("203.0.113.7", 6443))
    assert made == build("azure")
    assert made.cluster["spec"]["controlPlaneEnabled"] is False
    assert "controlPlaneEndpoint" not in made.cluster["spec"]
    assert "apiServerLB" not in made.cluster["spec"].get("networkSpec", {})


def test_the_identity_admits_the_tenant_namespace_alone_and_its_password_lies_there() -> None:
    made = build("azure")
    secret, identity = made.others
    namespace = made.cluster["metadata"]["namespace"]
    assert identity["spec"] == {
        "type": "ServicePrincipal",
        "tenantID": "t1",
        "clientID": "c1",
        "clientSecret": {"name": secret["metadata"]["name"], "namespace": namespace},
        "allowedNamespaces": {"list": [namespace]},
    }
    assert secret["metadata"]["namespace"] == identity["metadata"]["namespace"] == namespace
    assert contents(secret) == {"clientSecret": "not-a-secret"}
    assert made.cluster["spec"]["identityRef"]["kind"] == "AzureClusterIdentity"
    assert made.cluster["spec"]["identityRef"]["name"] == identity["metadata"]["name"]


def test_credentials_of_another_subscription_are_refused() -> None:
    other = CREDENTIALS["azure"] | {"subscriptionID": "00000000-0000-0000-0000-000000000002"}
    assert refusal({}, credentials=other) == "spec.azure.subscriptionID"
    same = CREDENTIALS["azure"] | {"subscriptionID": "00000000-0000-0000-0000-000000000001\n"}
    assert build("azure", credentials=same) == build("azure")


def test_the_network_that_is_named_is_used() -> None:
    made = build("azure")
    assert made.cluster["spec"]["networkSpec"] == {
        "vnet": {"name": "shop", "resourceGroup": "tenants"},
        "subnets": [{"name": "workers", "role": "node"}],
    }
    assert machine(made)["networkInterfaces"] == [{"privateIPConfigs": 1, "subnetName": "workers"}]


def test_a_subnet_is_never_named_where_the_webhook_would_move_it() -> None:
    assert "subnetName" not in machine(build("azure"))


def test_without_a_network_each_cluster_gets_its_own() -> None:
    made = build("azure", NO_NETWORK)
    assert made.cluster["spec"]["networkSpec"] == {
        "vnet": {"name": "payments-vnet", "resourceGroup": "tenants"},
        "subnets": [{"name": "payments-node-subnet", "role": "node", "cidrBlocks": ["10.1.0.0/16"]}],
    }
    assert machine(made)["networkInterfaces"] == [{"privateIPConfigs": 1, "subnetName": "payments-node-subnet"}]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec.azure.subnetName": None}, "spec.azure.subnetName"),
        ({"spec.azure.vnetName": None}, "spec.azure.vnetName"),
        (NO_NETWORK | {"spec.networking.podCIDR": "10.0.0.0/12"}, "spec.networking.podCIDR"),
        ({"spec.azure.location": None}, "spec.azure.location"),
        ({"metadata.name": "a" * 45}, "metadata.name"),
        ({"spec.workers.machineTemplate.diskSize": "2049Gi"}, "spec.workers.machineTemplate.diskSize"),
        ({f"{SYSTEM}.sshAuthorizedKey": "no key"}, f"{SYSTEM}.sshAuthorizedKey"),
        ({f"{SYSTEM}.sshAuthorizedKey": "alone"}, f"{SYSTEM}.sshAuthorizedKey"),
        ({f"{SYSTEM}.sshAuthorizedKey": f"{KEY}\n{KEY}"}, f"{SYSTEM}.sshAuthorizedKey"),
        ({"spec.azure.imageURN": None}, f"{SYSTEM}.imageRef"),
        ({"spec.azure.imageURN": "rocky"}, "spec.azure.imageURN"),
        ({"spec.azure.imageURN": "a:b::d"}, "spec.azure.imageURN"),
        ({"spec.azure.imageURN": f"{COMPUTE}/disks/x"}, "spec.azure.imageURN"),
        ({f"{SYSTEM}.imageRef": "rocky"}, f"{SYSTEM}.imageRef"),
    ],
)
def test_what_capz_would_refuse_is_refused_with_its_field(changes: dict[str, Any], field: str) -> None:
    assert refusal(changes) == field


def test_a_name_may_have_44_characters() -> None:
    assert build("azure", {"metadata.name": "a" * 44})


def _marketplace(publisher: str, offer: str, sku: str, version: str, *, plan: bool) -> dict[str, Any]:
    parts = {"publisher": publisher, "offer": offer, "sku": sku, "version": version}
    return {"marketplace": parts | {"thirdPartyImage": plan}}


@pytest.mark.parametrize(
    ("urn", "image"),
    [
        (
            "resf:rockylinux-x86_64:9-base:9.5.1",
            _marketplace("resf", "rockylinux-x86_64", "9-base", "9.5.1", plan=True),
        ),
        ("Canonical:ubuntu:server:latest", _marketplace("Canonical", "ubuntu", "server", "latest", plan=False)),
        (
            "kinvolk:flatcar-container-linux-corevm-amd64:stable:4081.2.0",
            _marketplace("kinvolk", "flatcar-container-linux-corevm-amd64", "stable", "4081.2.0", plan=False),
        ),
        (f"{COMPUTE}/images/rocky", {"id": f"{COMPUTE}/images/rocky"}),
        (
            f"{COMPUTE}/galleries/ours/images/rocky/versions/9.5.1",
            {
                "computeGallery": {
                    "subscriptionID": "s1",
                    "resourceGroup": "g1",
                    "gallery": "ours",
                    "name": "rocky",
                    "version": "9.5.1",
                }
            },
        ),
        (
            "/CommunityGalleries/everyone/Images/talos",
            {"computeGallery": {"gallery": "everyone", "name": "talos", "version": "latest"}},
        ),
    ],
)
def test_an_image_is_named_in_three_ways(urn: str, image: dict[str, Any]) -> None:
    assert machine(build("azure", {"spec.azure.imageURN": urn}))["image"] == image
    assert machine(build("azure", {f"{SYSTEM}.imageRef": urn}))["image"] == image


def test_a_size_that_is_named_wins() -> None:
    assert machine(build("azure", {"spec.azure.vmSize": "Standard_B2s"}))["vmSize"] == "Standard_B2s"


def test_dns_servers_reach_the_machine() -> None:
    servers = ["10.0.0.2", "10.0.0.3"]
    assert machine(build("azure", {"spec.network.dnsServers": servers}))["dnsServers"] == servers


def test_an_ssh_key_is_passed_on_in_base64() -> None:
    given = machine(build("azure", {f"{SYSTEM}.sshAuthorizedKey": f"{KEY}\n"}))["sshPublicKey"]
    assert base64.b64decode(given).decode() == KEY
    assert "sshPublicKey" not in machine(build("azure"))


def test_talos_is_not_asked_for_an_agent_that_it_lacks() -> None:
    switches = {"disableExtensionOperations", "disableVMBootstrapExtension"}
    spec = machine(build("azure", {f"{SYSTEM}.type": "talos"}))
    assert all(spec[switch] is True for switch in switches)
    assert switches.isdisjoint(machine(build("azure")))


def test_an_os_disk_has_what_the_template_s_webhook_does_not_fill_in() -> None:
    assert machine(build("azure"))["osDisk"] == {"osType": "Linux", "diskSizeGB": 100, "cachingType": "None"}
