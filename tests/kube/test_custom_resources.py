"""What the API server makes of Butler's custom resources: accepted, completed or refused with a clear word.

The CRDs are those of the chart, applied by kubectl as an administrator would. Every rule in them has a case in
`refused_resources`; a rule that no test breaks might as well not be there.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from butler.api import GROUP, VERSION
from butler.api.codec import from_json
from butler.api.crd import custom_resource_definition
from butler.api.ipallocation import IPAllocation
from butler.api.kinds import KINDS
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from kube.refused_resources import (
    FORBIDDEN,
    GRANTED,
    REFUSED_AS_CHANGE,
    REFUSED_AS_STATUS,
    REFUSED_AT_CREATION,
    RELEASED,
    STAYS,
    Refused,
    RefusedStatus,
    accepted,
    changed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from butler.api.resource import CustomResource
    from control_planes import ControlPlane

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "charts" / "butler" / "crds"
EXAMPLES = [
    *yaml.safe_load_all((ROOT / "tests/unit/api/published_examples.yaml").read_text()),
    *(yaml.safe_load(kind.definition.example) for kind in KINDS),
    *(
        document
        for file in sorted((ROOT / "examples/providers").glob("*.yaml"))
        for document in yaml.safe_load_all(file.read_text())
    ),
]


@pytest.fixture(scope="session")
def butler(control_plane: ControlPlane) -> Iterator[Butler]:
    """A control plane that knows Butler's kinds."""
    applied = control_plane.kubectl("apply", "--server-side", "-f", str(CRDS))
    assert applied.stderr == "", "the server warned about a CRD"
    names = [f"crd/{kind.definition.plural}.{GROUP}" for kind in KINDS]
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    api = Butler(control_plane)
    yield api
    if not control_plane.disposable:
        control_plane.kubectl("delete", "namespace", api.namespace, "--wait=false")


class Butler:
    """Requests about Butler's kinds, in a namespace of their own."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane
        self.namespace = control_plane.fresh_namespace("api")

    def path(self, kind: type[CustomResource], name: str = "", subresource: str = "") -> str:
        parts = [kind.definition.plural, name, subresource]
        collection = "/".join(part for part in parts if part)
        return f"/apis/{GROUP}/{VERSION}/namespaces/{self.namespace}/{collection}"

    def create(self, kind: type[CustomResource], body: dict[str, Any], *, dry_run: bool = False) -> tuple[int, Any]:
        query = "?dryRun=All&fieldValidation=Strict" if dry_run else "?fieldValidation=Strict"
        return self.control_plane.request("POST", self.path(kind) + query, body)

    def created(self, kind: type[CustomResource], body: dict[str, Any]) -> dict[str, Any]:
        status, answer = self.create(kind, body)
        assert status == 201, answer
        answer["metadata"].pop("managedFields", None)
        return dict(answer)

    def replace(self, kind: type[CustomResource], body: dict[str, Any], subresource: str = "") -> tuple[int, Any]:
        name = body["metadata"]["name"]
        return self.control_plane.request("PUT", self.path(kind, name, subresource), body)

    def get(self, kind: type[CustomResource], name: str) -> Any:
        status, answer = self.control_plane.request("GET", self.path(kind, name))
        assert status == 200, answer
        return answer

    def kubectl(self, *arguments: str) -> str:
        return self.control_plane.kubectl("-n", self.namespace, *arguments).stdout


def assert_refused(case: Refused | RefusedStatus, status: int, answer: Any) -> None:
    assert status == 422, answer
    assert answer["reason"] == "Invalid"
    complaints = [(cause["field"], cause["reason"], cause["message"]) for cause in answer["details"]["causes"]]
    assert any(
        field == case.field and reason == case.reason and message.endswith(case.says)
        for field, reason, message in complaints
    ), complaints
    # A rule that trips over the fault of another field would drown the clear complaint.
    assert not any("evaluating rule" in message for _, _, message in complaints), complaints


@pytest.mark.parametrize("case", REFUSED_AT_CREATION, ids=str)
def test_a_bad_resource_is_refused_by_name_and_reason(butler: Butler, case: Refused) -> None:
    body = changed(accepted(case.kind), case.changes)
    assert_refused(case, *butler.create(case.kind, body, dry_run=True))


@pytest.mark.parametrize("case", REFUSED_AS_CHANGE, ids=str)
def test_what_is_fixed_cannot_be_changed(butler: Butler, case: Refused) -> None:
    name = f"fixed-{REFUSED_AS_CHANGE.index(case)}"
    before = butler.created(case.kind, accepted(case.kind, name))
    assert_refused(case, *butler.replace(case.kind, changed(before, case.changes)))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_labels_of_a_resource_with_a_fixed_spec_can_change(butler: Butler, kind: type[CustomResource]) -> None:
    before = butler.created(kind, accepted(kind, "labelled"))
    status, after = butler.replace(kind, changed(before, {"metadata.labels": {"a": "b"}}))
    assert status == 200, after
    assert after["metadata"]["generation"] == 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["metadata"]["name"])
def test_every_published_example_is_accepted(butler: Butler, example: dict[str, Any]) -> None:
    kind = next(kind for kind in KINDS if kind.__name__ == example["kind"])
    body = changed(example, {"metadata.namespace": butler.namespace, "status": None})
    stored = butler.created(kind, body)
    # The typed view of what was sent and of what the server made of it agree: both know the same defaults.
    assert from_json(kind, stored).spec == from_json(kind, body).spec  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [IPAllocation, TenantCluster], ids=lambda kind: kind.__name__)
def test_a_new_resource_is_pending_though_no_controller_wrote_it(butler: Butler, kind: type[CustomResource]) -> None:
    created = butler.created(kind, changed(accepted(kind, "pending"), {"status": {"phase": "Failed"}}))
    assert created["status"] == {"phase": "Pending"}
    assert butler.get(kind, "pending")["status"] == {"phase": "Pending"}
    assert "Pending" in butler.kubectl("get", kind.definition.plural, "pending")


def test_a_phase_that_is_forgotten_is_pending_again(butler: Butler) -> None:
    created = butler.created(IPAllocation, accepted(IPAllocation, "forgotten"))
    failed = changed(created, {"status": {"phase": "Failed"}})
    status, answer = butler.replace(IPAllocation, failed, "status")
    assert (status, answer["status"]) == (200, {"phase": "Failed"})
    butler.kubectl(
        "patch", "ipa", "forgotten", "--subresource=status", "--type=merge", "-p", '{"status":{"phase":null}}'
    )
    assert butler.get(IPAllocation, "forgotten")["status"] == {"phase": "Pending"}


def with_status(butler: Butler, name: str, status: dict[str, Any]) -> dict[str, Any]:
    created = butler.created(IPAllocation, accepted(IPAllocation, name))
    code, answer = butler.replace(IPAllocation, changed(created, {"status": status}), "status")
    assert code == 200, answer
    return dict(answer)


@pytest.mark.parametrize("case", REFUSED_AS_STATUS, ids=str)
def test_a_status_that_would_cost_addresses_is_refused(butler: Butler, case: RefusedStatus) -> None:
    before = with_status(butler, f"status-{REFUSED_AS_STATUS.index(case)}", case.before)
    refusal = butler.replace(IPAllocation, changed(before, {"status": case.after}), "status")
    assert_refused(case, *refusal)
    assert butler.get(IPAllocation, before["metadata"]["name"])["status"] == before["status"]


@pytest.mark.parametrize(
    ("name", "edit"),
    [
        ("without-status", {"status": None}),
        ("without-phase", {"status": {"phase": None}}),
        ("pending-again", {"status": {"phase": "Pending"}}),
    ],
)
def test_a_patch_cannot_take_a_grant_back(butler: Butler, name: str, edit: dict[str, Any]) -> None:
    with_status(butler, name, GRANTED)
    path = butler.path(IPAllocation, name, "status")
    answer = butler.control_plane.request("PATCH", path, edit, content_type="application/merge-patch+json")
    assert_refused(RefusedStatus(GRANTED, None, "status.phase", STAYS, FORBIDDEN), *answer)
    assert butler.get(IPAllocation, name)["status"] == GRANTED


def test_an_allocation_goes_through_its_life(butler: Butler) -> None:
    """Refused, granted, marked, released and deleted: what Butler writes is never in the way of a rule."""
    created = butler.created(IPAllocation, accepted(IPAllocation, "living"))
    for status in (
        {"phase": "Failed"},
        {"phase": "Pending"},
        {"phase": "Failed"},
        GRANTED,
        {**GRANTED, "tenantClusterUID": "u", "idleSince": "2026-02-15T10:00:30Z"},
        GRANTED,
        {**RELEASED, "releasedAt": "2026-02-15T10:00:30Z"},
    ):
        code, created = butler.replace(IPAllocation, changed(created, {"status": status}), "status")
        assert (code, created["status"]) == (200, status)
    code, answer = butler.replace(IPAllocation, changed(created, {"metadata.labels": {"a": "b"}}))
    assert code == 200, answer
    butler.kubectl("delete", "ipa", "living")


def test_a_refused_request_may_be_released(butler: Butler) -> None:
    with_status(butler, "refused", {"phase": "Failed"})
    before = butler.get(IPAllocation, "refused")
    code, answer = butler.replace(IPAllocation, changed(before, {"status": {"phase": "Released"}}), "status")
    assert code == 200, answer


@pytest.mark.parametrize(
    ("time", "is_taken"),
    [
        ("2026-02-15T10:00:30Z", True),
        ("2026-02-15T10:00:30.123456789+05:30", True),
        ("2026-02-15T10:00:30+24:00", False),
        ("2026-02-15T10:00:30+99:99", False),
        ("2026-02-15t10:00:30z", False),
        ("0000-02-15T10:00:30Z", False),
    ],
)
def test_a_time_is_taken_if_every_program_can_read_it(butler: Butler, time: str, is_taken: bool) -> None:
    """One time that cannot be read makes the whole object unreadable, and that stops its pool."""
    name = f"time-{time.encode().hex()}"
    created = butler.created(IPAllocation, accepted(IPAllocation, name))
    code, answer = butler.replace(IPAllocation, changed(created, {"status": {"allocatedAt": time}}), "status")
    assert code == (200 if is_taken else 422), answer
    from_json(IPAllocation, butler.get(IPAllocation, name))


def test_the_largest_grant_is_within_what_rules_may_cost(butler: Butler) -> None:
    addresses = [f"10.{40 + n // 65536}.{n // 256 % 256}.{n % 256}" for n in range(65536)]
    whole = {
        "phase": "Allocated",
        "startAddress": addresses[0],
        "endAddress": addresses[-1],
        "cidr": "10.40.0.0/16",
        "addresses": addresses,
        "allocatedCount": len(addresses),
    }
    before = with_status(butler, "largest", whole)
    after = {**whole, "phase": "Released"}
    code, answer = butler.replace(IPAllocation, changed(before, {"status": after}), "status")
    assert code == 200, answer


def test_the_defaults_of_a_pool_are_filled_in(butler: Butler) -> None:
    created = butler.created(NetworkPool, accepted(NetworkPool, "defaults"))
    assert created["spec"]["tenantAllocation"]["defaults"] == {"nodesPerTenant": 5, "lbPoolPerTenant": 8}
    assert "status" not in created


def test_the_defaults_of_a_provider_are_filled_in(butler: Butler) -> None:
    body = changed(accepted(ProviderConfig, "defaults"), {"spec.network.loadBalancer": {}})
    spec = butler.created(ProviderConfig, body)["spec"]
    assert spec["scope"] == {"type": "platform"}
    assert spec["harvester"]["namespace"] == "default"
    assert spec["network"]["poolRefs"] == [{"name": "pool", "priority": 0}]
    assert spec["network"]["loadBalancer"] == {
        "allocationMode": "static",
        "defaultPoolSize": 8,
        "initialPoolSize": 2,
        "growthIncrement": 2,
    }


def test_a_provider_without_a_network_is_in_cloud_mode(butler: Butler) -> None:
    body = changed(accepted(ProviderConfig, "cloudy"), {"spec.network": None})
    assert butler.created(ProviderConfig, body)["spec"]["network"] == {"mode": "cloud"}


def test_an_elastic_pool_may_start_with_nothing(butler: Butler) -> None:
    balancer = {"allocationMode": "elastic", "initialPoolSize": 0}
    body = changed(accepted(ProviderConfig, "from-zero"), {"spec.network.loadBalancer": balancer})
    assert butler.created(ProviderConfig, body)["spec"]["network"]["loadBalancer"]["initialPoolSize"] == 0


def test_the_defaults_of_a_cluster_are_filled_in(butler: Butler) -> None:
    bare = changed(accepted(TenantCluster, "defaults"), {"spec.networking": None})
    spec = butler.created(TenantCluster, bare)["spec"]
    assert spec["networking"] == {"podCIDR": "10.244.0.0/16", "serviceCIDR": "10.96.0.0/12"}
    assert spec["controlPlane"] == {"replicas": 1, "externalCloudProvider": True}
    assert spec["addons"] == {"ingress": {"enabled": True}}
    assert spec["managementPolicy"] == {"mode": "Active"}
    assert spec["workers"]["machineTemplate"] == {
        "cpu": 4,
        "memory": "16Gi",
        "diskSize": "100Gi",
        "os": {"type": "rocky", "version": "9.5"},
    }


def test_a_provider_and_a_team_can_be_set_once(butler: Butler) -> None:
    undecided = changed(accepted(TenantCluster, "undecided"), {"spec.providerConfigRef": None, "spec.teamRef": None})
    created = butler.created(TenantCluster, undecided)
    decided = changed(created, {"spec.providerConfigRef": {"name": "p"}, "spec.teamRef": {"name": "t"}})
    status, answer = butler.replace(TenantCluster, decided)
    assert status == 200, answer


@pytest.mark.parametrize(
    "windows",
    [
        [("10.40.1.0", "10.40.1.9"), ("10.40.1.10", "10.40.1.10")],
        [("10.40.7.0", "10.40.7.254"), ("10.40.0.16", "10.40.1.255")],
        [(f"10.40.1.{first}", f"10.40.1.{first + 9}") for first in range(0, 160, 10)],
    ],
    ids=["adjacent", "in any order", "sixteen"],
)
def test_windows_that_do_not_overlap_are_accepted(butler: Butler, windows: list[tuple[str, str]]) -> None:
    ranges = [{"start": start, "end": end} for start, end in windows]
    body = changed(accepted(NetworkPool), {"spec.tenantAllocation": {"ranges": ranges}})
    status, answer = butler.create(NetworkPool, body, dry_run=True)
    assert status == 201, answer


def test_a_pool_may_be_without_a_window(butler: Butler) -> None:
    for allocation in (None, {}, {"defaults": {"nodesPerTenant": 3}}):
        body = changed(accepted(NetworkPool), {"spec.tenantAllocation": allocation})
        status, answer = butler.create(NetworkPool, body, dry_run=True)
        assert status == 201, answer


def test_the_allocators_notes_are_kept_in_the_status(butler: Butler) -> None:
    created = butler.created(NetworkPool, accepted(NetworkPool, "notes"))
    intent = {"uid": "u-1", "name": "a", "startAddress": "10.40.1.0", "endAddress": "10.40.1.4"}
    notes = {
        "totalIPs": 1791,
        "allocatedIPs": 0,
        "intents": [intent],
        "allocationsSeen": "4711",
        "capacityNotices": [{"tier": "CapacityWarning", "above": True, "time": "2026-02-15T10:00:30Z"}],
    }
    status, answer = butler.replace(NetworkPool, changed(created, {"status": notes}), "status")
    assert (status, answer["status"]) == (200, notes)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_kubectl_prints_the_published_columns(butler: Butler, kind: type[CustomResource]) -> None:
    butler.created(kind, accepted(kind, "columns"))
    heading = butler.kubectl("get", kind.definition.plural, "columns").splitlines()[0]
    expected = ["NAME", *(column.name.upper() for column in kind.definition.columns)]
    assert re.split(r"\s{2,}", heading.strip()) == expected


def test_all_kinds_are_one_category(butler: Butler) -> None:
    butler.created(NetworkPool, accepted(NetworkPool, "in-category"))
    assert f"networkpool.{GROUP}/in-category" in butler.kubectl("get", "butler", "-o", "name")


@pytest.mark.parametrize("short_name", ["np", "ipa", "pc", "tc"])
def test_kubectl_knows_the_short_name(butler: Butler, short_name: str) -> None:
    butler.kubectl("get", short_name)


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("networkpool.spec.cidr", "The network that this pool owns"),
        ("networkpool.spec.tenantAllocation.ranges", "Several windows that tenants may get addresses from"),
        ("ipallocation.spec.type", "nodes (worker machines) or loadbalancer"),
        ("providerconfig.spec.network.poolRefs.priority", "Pools with a lower number are tried first"),
        ("tenantcluster.spec.workers.replicas", "How many workers"),
    ],
)
def test_kubectl_explains_a_field(butler: Butler, path: str, sentence: str) -> None:
    explained = " ".join(butler.kubectl("explain", path).split())
    assert sentence in explained


def test_kubectl_scales_the_workers(butler: Butler) -> None:
    butler.created(TenantCluster, accepted(TenantCluster, "scaled"))
    butler.kubectl("scale", "tenantcluster/scaled", "--replicas=7")
    assert butler.get(TenantCluster, "scaled")["spec"]["workers"]["replicas"] == 7


def _rules(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield (path + rule.get("fieldPath", "")).lstrip("."), rule["reason"]
    for name, field in schema.get("properties", {}).items():
        yield from _rules(field, f"{path}.{name}")
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_rule_is_broken_by_a_case(kind: type[CustomResource]) -> None:
    schema = custom_resource_definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    cases = {
        (re.sub(r"\[\d+\]", "[]", case.field), case.reason, case.says)
        for case in (*REFUSED_AT_CREATION, *REFUSED_AS_CHANGE)
        if case.kind is kind
    }
    if kind is IPAllocation:
        cases |= {(re.sub(r"\[\d+\]", "[]", case.field), case.reason, case.says) for case in REFUSED_AS_STATUS}
    broken = Counter((field, reason) for field, reason, _ in cases)
    missing = Counter(_rules(schema, "")) - broken
    assert not missing, f"no case breaks {sorted(missing)}"
