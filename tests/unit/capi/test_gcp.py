"""Objects for Cluster API Provider GCP, and the rules that only its webhooks and its controllers know."""

from __future__ import annotations

from typing import Any

import pytest

from butler.rules.tenant.blueprint import Endpoint, Unbuildable
from unit.capi.clouds import build, contents, machine

OVERRIDE = "spec.infrastructureOverride.gcp"
IMAGE_REF = "spec.workers.machineTemplate.os.imageRef"


def refusal(changes: dict[str, Any], **more: Any) -> str:
    with pytest.raises(Unbuildable) as caught:
        build("gcp", changes, **more)
    return caught.value.field


def test_no_load_balancer_is_made_for_the_control_plane() -> None:
    kind = build("gcp").cluster["spec"]["loadBalancer"]["loadBalancerType"]
    assert kind not in ("External", "Internal", "InternalExternal", "")


def test_the_endpoint_is_written_as_soon_as_it_is_known() -> None:
    assert "controlPlaneEndpoint" not in build("gcp").cluster["spec"]
    known = build("gcp", endpoint=Endpoint("203.0.113.7", 6443))
    assert known.cluster["spec"]["controlPlaneEndpoint"] == {"host": "203.0.113.7", "port": 6443}


def test_what_can_never_change_does_not_depend_on_the_endpoint() -> None:
    before, after = (
        build("gcp", endpoint=endpoint).cluster["spec"] for endpoint in (None, Endpoint("203.0.113.7", 6443))
    )
    for field in ("project", "region", "credentialsRef", "loadBalancer"):
        assert before[field] == after[field]


def test_the_key_lies_in_the_tenant_namespace_under_the_name_that_capg_reads() -> None:
    made = build("gcp")
    (secret,) = made.others
    assert contents(secret) == {"credentials": '{"type": "service_account"}'}
    assert made.cluster["spec"]["credentialsRef"] == {
        "namespace": secret["metadata"]["namespace"],
        "name": secret["metadata"]["name"],
    }
    assert secret["metadata"]["namespace"] == made.cluster["metadata"]["namespace"]


def test_the_key_may_have_another_name_in_the_provider_s_secret() -> None:
    made = build("gcp", {"spec.credentialsRef.key": "login.json"}, credentials={"login.json": "{}"})
    assert contents(made.others[0]) == {"credentials": "{}"}
    assert refusal({"spec.credentialsRef.key": "login.json"}) == "spec.credentialsRef"


@pytest.mark.parametrize(
    ("changes", "zone"),
    [
        ({}, "europe-west3-a"),
        ({"spec.gcp.zone": "europe-west3-c"}, "europe-west3-c"),
        ({"spec.gcp.zone": "europe-west3-c", f"{OVERRIDE}.zone": "europe-west3-b"}, "europe-west3-b"),
        ({f"{OVERRIDE}.zone": "europe-west3-b"}, "europe-west3-b"),
        ({"spec.gcp.region": "us-east1"}, "us-east1-a"),
    ],
)
def test_machines_have_one_zone_to_go_to(changes: dict[str, Any], zone: str) -> None:
    assert build("gcp", changes).cluster["spec"]["failureDomains"] == [zone]


@pytest.mark.parametrize("field", ["spec.gcp.zone", f"{OVERRIDE}.zone"])
@pytest.mark.parametrize("zone", ["us-east1-b", "europe-west3", "europe-west31-a"])
def test_a_zone_of_another_region_is_refused(field: str, zone: str) -> None:
    assert refusal({field: zone}) == field


@pytest.mark.parametrize(
    ("network", "stored"),
    [
        ("shop", {"name": "shop"}),
        (None, {"name": "default"}),
        ("projects/tenants/global/networks/shop", {"name": "shop"}),
        ("projects/host/global/networks/shop", {"name": "shop", "hostProject": "host"}),
    ],
)
def test_a_network_is_always_named_and_may_be_another_project_s(network: str | None, stored: dict[str, str]) -> None:
    assert build("gcp", {"spec.gcp.network": network}).cluster["spec"]["network"] == stored


@pytest.mark.parametrize(
    ("changes", "subnet"),
    [
        ({}, "shop-workers"),
        ({f"{OVERRIDE}.subnetwork": "payments"}, "payments"),
        ({"spec.gcp.subnetwork": "projects/tenants/regions/europe-west3/subnetworks/payments"}, "payments"),
        ({"spec.gcp.subnetwork": None}, None),
    ],
)
def test_a_subnetwork_is_named_without_its_path(changes: dict[str, Any], subnet: str | None) -> None:
    assert machine(build("gcp", changes)).get("subnet") == subnet


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec.gcp.network": "global/networks/shop"}, "spec.gcp.network"),
        ({"spec.gcp.subnetwork": "projects/tenants/regions/us-east1/subnetworks/x"}, "spec.gcp.subnetwork"),
        ({f"{OVERRIDE}.subnetwork": "projects/other/regions/europe-west3/subnetworks/x"}, f"{OVERRIDE}.subnetwork"),
        ({"spec.gcp.tags": ["Shop"]}, "spec.gcp.tags"),
        ({"spec.gcp.tags": ["x" * 64]}, "spec.gcp.tags"),
        ({"spec.gcp.image": "projects/x/global/images/y", "spec.gcp.imageProject": "z"}, "spec.gcp.imageProject"),
        ({"spec.gcp.image": None}, IMAGE_REF),
        ({"spec.gcp.image": "images/y"}, "spec.gcp.image"),
        ({IMAGE_REF: "images/y"}, IMAGE_REF),
        ({"metadata.name": "a" * 45}, "metadata.name"),
    ],
)
def test_what_google_would_refuse_is_refused_with_its_field(changes: dict[str, Any], field: str) -> None:
    assert refusal(changes) == field


def test_a_name_is_as_long_as_what_capg_makes_of_it_allows() -> None:
    assert build("gcp", {"metadata.name": "a" * 38})
    long_zone = {"spec.gcp.region": "northamerica-northeast1", "spec.gcp.subnetwork": None}
    assert refusal(long_zone | {"metadata.name": "a" * 38}) == "metadata.name"


@pytest.mark.parametrize(
    ("changes", "image"),
    [
        ({}, {"image": "projects/tenants/global/images/rocky-9"}),
        ({"spec.gcp.imageProject": "images"}, {"image": "projects/images/global/images/rocky-9"}),
        (
            {"spec.gcp.image": None, "spec.gcp.imageFamily": "rocky"},
            {"imageFamily": "projects/tenants/global/images/family/rocky"},
        ),
        ({"spec.gcp.imageFamily": "rocky"}, {"image": "projects/tenants/global/images/rocky-9"}),
        ({f"{OVERRIDE}.imageFamily": "own"}, {"imageFamily": "projects/tenants/global/images/family/own"}),
        (
            {f"{OVERRIDE}.imageFamily": "own", f"{OVERRIDE}.image": "own-1"},
            {"image": "projects/tenants/global/images/own-1"},
        ),
        ({f"{OVERRIDE}.image": "own-1", IMAGE_REF: "ref"}, {"image": "projects/tenants/global/images/ref"}),
        ({IMAGE_REF: "projects/x/global/images/y"}, {"image": "projects/x/global/images/y"}),
    ],
)
def test_the_image_closest_to_the_cluster_wins(changes: dict[str, Any], image: dict[str, str]) -> None:
    spec = machine(build("gcp", changes))
    assert {key: value for key, value in spec.items() if key.startswith("image")} == image


@pytest.mark.parametrize(
    ("changes", "kind", "disk"),
    [
        ({}, "n2-standard-4", "pd-balanced"),
        ({"spec.gcp.machineType": "e2-standard-8"}, "e2-standard-8", "pd-balanced"),
        ({"spec.gcp.machineType": "e2-standard-8", f"{OVERRIDE}.machineType": "n4-standard-2"}, "n4-standard-2", None),
    ],
)
def test_a_machine_type_that_is_named_wins_and_gets_a_disk_that_it_takes(
    changes: dict[str, Any], kind: str, disk: str | None
) -> None:
    spec = machine(build("gcp", changes))
    assert (spec["instanceType"], spec["rootDeviceType"]) == (kind, disk or "hyperdisk-balanced")


def test_tags_and_the_service_account_reach_the_machine() -> None:
    spec = machine(build("gcp"))
    assert spec["additionalNetworkTags"] == ["shop", "workers"]
    assert spec["serviceAccounts"]["email"] == "workers@tenants.iam.gserviceaccount.com"
    bare = machine(build("gcp", {"spec.gcp.tags": None, "spec.gcp.serviceAccount": None}))
    assert {"additionalNetworkTags", "serviceAccounts"}.isdisjoint(bare)
