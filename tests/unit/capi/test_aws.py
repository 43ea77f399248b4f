"""Objects for Cluster API Provider AWS, and the rules that only its webhooks and its controllers know."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from butler.capi.aws import SYSTEM_NAMESPACE
from butler.rules.tenant.blueprint import Endpoint, Unbuildable
from unit.capi.clouds import build, contents, machine

SYSTEM = "spec.workers.machineTemplate.os"
NO_NETWORK = {"spec.aws.vpcID": None, "spec.aws.subnetIDs": None, "spec.aws.securityGroupIDs": None}


def refusal(changes: dict[str, Any]) -> str:
    with pytest.raises(Unbuildable) as caught:
        build("aws", changes)
    return caught.value.field


def test_the_control_plane_gets_no_load_balancer_and_nothing_beside_that_word() -> None:
    assert build("aws").cluster["spec"]["controlPlaneLoadBalancer"] == {"loadBalancerType": "disabled"}


def test_the_endpoint_is_left_to_capi_steward() -> None:
    with_endpoint = build("aws", endpoint=Endpoint("203.0.113.7", 6443))
    assert with_endpoint == build("aws")
    assert "controlPlaneEndpoint" not in with_endpoint.cluster["spec"]


def test_the_secret_lies_where_capa_looks_and_has_the_keys_that_it_reads() -> None:
    secret, identity = build("aws").others
    assert secret["metadata"]["namespace"] == SYSTEM_NAMESPACE
    assert contents(secret) == {"AccessKeyID": "AKIAEXAMPLE", "SecretAccessKey": "not-a-secret"}
    assert identity["spec"]["secretRef"] == secret["metadata"]["name"]
    assert "namespace" not in identity["metadata"]


def test_an_identity_admits_the_tenant_namespace_alone() -> None:
    made = build("aws")
    _, identity = made.others
    assert identity["spec"]["allowedNamespaces"] == {"list": [made.cluster["metadata"]["namespace"]]}
    assert made.cluster["spec"]["identityRef"] == {
        "kind": "AWSClusterStaticIdentity",
        "name": identity["metadata"]["name"],
    }


def test_two_clusters_of_one_name_share_no_identity() -> None:
    first, second = (build("aws", {"metadata.uid": uid}) for uid in ("aaaaaaaa-1", "bbbbbbbb-2"))
    assert first.cluster["metadata"]["name"] == second.cluster["metadata"]["name"]
    assert {other["metadata"]["name"] for other in first.others}.isdisjoint(
        obj["metadata"]["name"] for obj in second.others
    )


def test_a_network_that_is_given_is_named_with_all_its_subnets() -> None:
    network = build("aws").cluster["spec"]["network"]
    assert network["vpc"] == {"id": "vpc-0a"}
    assert network["subnets"] == [{"id": "subnet-0a"}, {"id": "subnet-0b"}, {"id": "subnet-0c"}]


def test_without_a_vpc_capa_makes_the_network() -> None:
    made = build("aws", NO_NETWORK)
    assert {"vpc", "subnets"}.isdisjoint(made.cluster["spec"]["network"])
    assert {"subnet", "additionalSecurityGroups"}.isdisjoint(machine(made))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec.aws.subnetIDs": None}, "spec.aws.subnetIDs"),
        ({"spec.aws.vpcID": None}, "spec.aws.vpcID"),
        ({"spec.aws.vpcID": None, "spec.aws.subnetIDs": None}, "spec.aws.vpcID"),
        (NO_NETWORK | {"spec.networking.podCIDR": "10.0.0.0/12"}, "spec.networking.podCIDR"),
        (NO_NETWORK | {"spec.networking.serviceCIDR": "10.0.128.0/20"}, "spec.networking.serviceCIDR"),
    ],
)
def test_half_a_network_is_refused(changes: dict[str, Any], field: str) -> None:
    assert refusal(changes) == field


def test_the_cluster_s_networks_may_be_any_where_the_vpc_is_not_made_by_capa() -> None:
    assert build("aws", {"spec.networking.podCIDR": "10.0.0.0/12"})


def test_clusters_spread_over_all_subnets_and_each_stays_in_its_own() -> None:
    def subnet(number: int, **changes: Any) -> str:
        found: str = machine(build("aws", {"metadata.uid": f"{number:08d}-1", **changes}))["subnet"]["id"]
        return found

    clusters = range(300)
    before = {number: subnet(number) for number in clusters}
    assert min(Counter(before.values()).values()) > 50
    more = ["subnet-0d", "subnet-0c", "subnet-0b", "subnet-0a"]
    after = {number: subnet(number, **{"spec.aws.subnetIDs": more}) for number in clusters}
    moved = {number for number in clusters if before[number] != after[number]}
    assert {after[number] for number in moved} == {"subnet-0d"}


def test_machines_get_all_security_groups_beside_capa_s_own() -> None:
    assert machine(build("aws"))["additionalSecurityGroups"] == [{"id": "sg-0a"}, {"id": "sg-0b"}]


def test_the_ports_of_cilium_are_open_between_nodes() -> None:
    rules = build("aws").cluster["spec"]["network"]["cni"]["cniIngressRules"]
    assert ("udp", 8472, 8472) in {(rule["protocol"], rule["fromPort"], rule["toPort"]) for rule in rules}


def test_no_key_pair_of_ec2_is_asked_for() -> None:
    assert machine(build("aws"))["sshKeyName"] == ""


def test_metadata_is_for_the_host_alone() -> None:
    assert machine(build("aws"))["instanceMetadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }


@pytest.mark.parametrize(
    ("changes", "lookup"),
    [
        ({}, {"imageLookupOrg": "792107900819", "imageLookupFormat": "Rocky-9-EC2-Base-9.5-*.x86_64"}),
        ({f"{SYSTEM}.version": "8.10"}, {"imageLookupFormat": "Rocky-8-EC2-Base-8.10-*.x86_64"}),
        (
            {f"{SYSTEM}.type": "flatcar", f"{SYSTEM}.version": "4081.2.0"},
            {"imageLookupOrg": "075585003325", "imageLookupFormat": "Flatcar-stable-4081.2.0-hvm"},
        ),
        (
            {f"{SYSTEM}.type": "talos"},
            {"imageLookupOrg": "540036508848", "imageLookupFormat": "talos-v1.9.3-eu-central-1-amd64"},
        ),
        (
            {f"{SYSTEM}.type": "talos", f"{SYSTEM}.talos.version": "v1.10.1"},
            {"imageLookupFormat": "talos-v1.10.1-eu-central-1-amd64"},
        ),
        ({f"{SYSTEM}.imageRef": "ami-0123456789abcdef0"}, {"ami": {"id": "ami-0123456789abcdef0"}}),
    ],
)
def test_an_image_is_looked_up_by_type_and_version_unless_it_is_named(
    changes: dict[str, Any], lookup: dict[str, Any]
) -> None:
    spec = machine(build("aws", changes))
    assert lookup.items() <= spec.items()
    assert ("ami" in spec) != ("imageLookupFormat" in spec)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({f"{SYSTEM}.imageRef": "rocky-9"}, f"{SYSTEM}.imageRef"),
        ({f"{SYSTEM}.type": "kairos"}, f"{SYSTEM}.imageRef"),
        ({f"{SYSTEM}.type": "flatcar"}, f"{SYSTEM}.version"),
        ({f"{SYSTEM}.version": "{{.BaseOS}}"}, f"{SYSTEM}.version"),
        ({f"{SYSTEM}.version": "*"}, f"{SYSTEM}.version"),
        ({f"{SYSTEM}.type": "talos", f"{SYSTEM}.talos.version": "latest"}, f"{SYSTEM}.talos.version"),
    ],
)
def test_an_image_that_cannot_be_found_is_refused(changes: dict[str, Any], field: str) -> None:
    assert refusal(changes) == field


@pytest.mark.parametrize(
    ("system", "version", "ignition"), [("rocky", "9.5", False), ("flatcar", "4081.2.0", True), ("talos", "9.5", False)]
)
def test_ignition_and_cloud_init_are_never_set_together(system: str, version: str, ignition: bool) -> None:
    spec = machine(build("aws", {f"{SYSTEM}.type": system, f"{SYSTEM}.version": version}))
    assert ("ignition" in spec, "cloudInit" in spec) == (ignition, not ignition)
    assert spec["uncompressedUserData"] == (system != "rocky")
