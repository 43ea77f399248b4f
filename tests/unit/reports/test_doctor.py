"""What the doctor says of each fact."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from butler.api.codec import from_json
from butler.api.crd import custom_resource_definition
from butler.api.kinds import KINDS
from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.reports import doctor
from butler.reports.doctor import AdmissionCheck, CheckLevel

NOW = datetime(2026, 2, 15, 10, tzinfo=UTC)
WANTED = [custom_resource_definition(kind) for kind in KINDS]
API = "butler.butlerlabs.dev/v1alpha1"


def condition(kind: str, status: str, reason: str = "Because", message: str = "so it is") -> dict[str, Any]:
    moment = "2026-02-15T10:00:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": moment}


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ({"major": "1", "minor": "31", "gitVersion": "v1.31.0"}, CheckLevel.PASS),
        ({"major": "1", "minor": "30+", "gitVersion": "v1.30.4-gke"}, CheckLevel.FAIL),
        ({"major": "2", "minor": "0", "gitVersion": "v2.0.0"}, CheckLevel.PASS),
        ({}, CheckLevel.PASS),
    ],
)
def test_a_kubernetes_that_is_too_old_fails(version: dict[str, str], level: CheckLevel) -> None:
    assert doctor.kubernetes(version, 12).level is level


@pytest.mark.parametrize(
    ("skew", "level"),
    [
        (0, CheckLevel.PASS),
        (-4.0, CheckLevel.PASS),
        (5.0, CheckLevel.WARN),
        (-60, CheckLevel.WARN),
        (300.0, CheckLevel.FAIL),
        (None, CheckLevel.WARN),
    ],
)
def test_clocks_that_are_apart_are_told(skew: float | None, level: CheckLevel) -> None:
    assert doctor.clock(skew).level is level


def on_the_server() -> dict[str, Any]:
    return {obj["metadata"]["name"]: deepcopy(obj) for obj in WANTED}


def spec_of(live: dict[str, Any], plural: str = "networkpools") -> dict[str, Any]:
    schema = live[f"{plural}.butler.butlerlabs.dev"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found: dict[str, Any] = schema["properties"]["spec"]
    return found


def test_definitions_are_compared_field_by_field() -> None:
    live = on_the_server()
    assert doctor.definitions(WANTED, live).level is CheckLevel.PASS
    spec_of(live)["properties"]["tomorrow"] = {"type": "string"}
    newer = doctor.definitions(WANTED, live)
    assert (newer.level, newer.says) == (
        CheckLevel.WARN,
        "newer than this program: networkpools.butler.butlerlabs.dev has .spec.tomorrow",
    )
    live = on_the_server()
    del spec_of(live)["properties"]["reserved"]["items"]["properties"]["description"]
    older = doctor.definitions(WANTED, live)
    assert (older.level, older.says) == (
        CheckLevel.FAIL,
        "older than this program: networkpools.butler.butlerlabs.dev lacks .spec.reserved[].description",
    )
    live = on_the_server()
    spec_of(live, "ipallocations")["x-kubernetes-validations"] = []
    assert doctor.definitions(WANTED, live).says == "not as this program has them: ipallocations.butler.butlerlabs.dev"
    del live["tenantaddons.butler.butlerlabs.dev"]
    assert doctor.definitions(WANTED, live).says == "not on the server: tenantaddons.butler.butlerlabs.dev"


def lease(ago: float, holder: str = "pod-1") -> dict[str, Any]:
    renewed = (NOW - timedelta(seconds=ago)).isoformat().replace("+00:00", "Z")
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15}}


@pytest.mark.parametrize(
    ("found", "admission", "level", "words"),
    [
        (lease(4), AdmissionCheck.ABSENT, CheckLevel.PASS, "pod-1 leads, and renewed its lease 4 s ago"),
        (lease(31), AdmissionCheck.ANSWERS, CheckLevel.FAIL, "pod-1 renewed its lease 0:00:31 ago"),
        (lease(1, ""), AdmissionCheck.ANSWERS, CheckLevel.FAIL, "no process holds their lease"),
        (
            {"spec": {"holderIdentity": "x", "renewTime": "long ago"}},
            AdmissionCheck.ANSWERS,
            CheckLevel.FAIL,
            "no process holds",
        ),
        (None, AdmissionCheck.ANSWERS, CheckLevel.PASS, "without a lease"),
        (None, AdmissionCheck.SILENT, CheckLevel.FAIL, "none are running"),
        (None, AdmissionCheck.ABSENT, CheckLevel.FAIL, "none are running"),
        (None, AdmissionCheck.UNKNOWN, CheckLevel.WARN, "cannot be told"),
    ],
)
def test_controllers_are_alive_by_their_lease_or_by_admission(
    found: dict[str, Any] | None, admission: AdmissionCheck, level: CheckLevel, words: str
) -> None:
    check = doctor.controllers(found, admission, NOW)
    assert (check.level, words in check.says) == (level, True), check


def test_admission_that_is_registered_and_silent_is_worse_than_none() -> None:
    levels = {item: doctor.admission_check(item).level for item in AdmissionCheck}
    assert levels == {
        "answers": CheckLevel.PASS,
        "silent": CheckLevel.FAIL,
        "absent": CheckLevel.WARN,
        "unknown": CheckLevel.WARN,
    }


def test_permissions_that_are_missing_are_listed_and_looking_is_what_counts() -> None:
    assert doctor.permissions([], asked=12, may_look=True).level is CheckLevel.PASS
    assert doctor.permissions(["delete pools"], asked=12, may_look=True).level is CheckLevel.WARN
    assert doctor.permissions(["list pools"], asked=12, may_look=False).says == "you may not list pools"


def pool(name: str, *conditions: dict[str, Any]) -> NetworkPool:
    meta = {"name": name, "namespace": "butler-system"}
    body = {"apiVersion": API, "kind": "NetworkPool", "metadata": meta, "spec": {"cidr": "10.0.0.0/24"}}
    return from_json(NetworkPool, {**body, "status": {"conditions": [*conditions]}})


def test_pools_are_ready_or_say_why_and_the_highest_tier_counts() -> None:
    ready = condition("Ready", "True")
    assert [check.level for check in doctor.pools([])] == [CheckLevel.WARN]
    assert [check.level for check in doctor.pools([pool("a", ready), pool("b", ready)])] == [CheckLevel.PASS]
    full = [condition(tier, "True", message=tier) for tier in ("CapacityWarning", "CapacityCritical")]
    found = doctor.pools([pool("a", ready), pool("b"), pool("c", condition("Ready", "False")), pool("d", ready, *full)])
    assert [(check.level, check.says) for check in found] == [
        (CheckLevel.FAIL, "no controller has looked at b"),
        (CheckLevel.FAIL, "c hands out nothing: so it is"),
        (CheckLevel.WARN, "d: CapacityCritical"),
    ]


@pytest.mark.parametrize(
    ("seen", "level"), [(None, CheckLevel.PASS), ("7", CheckLevel.PASS), ("8", CheckLevel.FAIL), ("x", CheckLevel.FAIL)]
)
def test_a_pool_whose_status_speaks_of_versions_that_never_were_hands_out_nothing(
    seen: str | None, level: CheckLevel
) -> None:
    found = pool("a", condition("Ready", "True"))
    found = msgspec.structs.replace(
        found,
        metadata=msgspec.structs.replace(found.metadata, resource_version="7"),
        status=msgspec.structs.replace(found.status, allocations_seen=seen),
    )
    assert [check.level for check in doctor.pools([found])] == [level]


def test_providers_are_ready_or_say_why() -> None:
    def provider(name: str, *, ready: bool | None) -> ProviderConfig:
        meta = {"name": name, "namespace": "butler-system"}
        spec = {"provider": "gcp", "credentialsRef": {"name": "x"}, "network": {"mode": "cloud"}}
        status = {"ready": ready, "conditions": [condition("Ready", "False")]}
        return from_json(
            ProviderConfig,
            {"apiVersion": API, "kind": "ProviderConfig", "metadata": meta, "spec": spec, "status": status},
        )

    assert [check.level for check in doctor.providers([])] == [CheckLevel.WARN]
    assert [check.level for check in doctor.providers([provider("a", ready=True)])] == [CheckLevel.PASS]
    found = doctor.providers([provider("a", ready=True), provider("b", ready=None), provider("c", ready=False)])
    assert [(check.level, check.says) for check in found] == [
        (CheckLevel.WARN, "b has not been looked at"),
        (CheckLevel.FAIL, "c is not ready: so it is"),
    ]


def tenant(name: str, phase: str, *conditions: dict[str, Any]) -> TenantCluster:
    meta, spec = {"name": name, "namespace": "team"}, {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
    body = {"apiVersion": API, "kind": "TenantCluster", "metadata": meta, "spec": spec}
    return from_json(TenantCluster, {**body, "status": {"phase": phase, "conditions": [*conditions]}})


def test_tenants_in_trouble_are_named_a_few_and_the_rest_counted() -> None:
    away = condition("LoadBalancersReady", "False", "TenantUnreachable")
    fine = tenant("fine", "Ready", condition("LoadBalancersReady", "True", "InStep"))
    assert [check.level for check in doctor.tenants([fine])] == [CheckLevel.PASS]
    found = doctor.tenants([fine, tenant("lost", "Ready", away), *(tenant(f"w{n}", "Pending") for n in range(5))])
    assert [(check.level, check.says) for check in found] == [
        (CheckLevel.FAIL, "1 cannot be reached: team/lost"),
        (CheckLevel.WARN, "5 waiting for something: team/w0, team/w1, team/w2 and 2 more"),
    ]
    assert doctor.tenants([tenant("x", "Failed")])[0].todo == "`butleradm tenant get x -n team`"
    bare = tenant("bare", "Ready", condition("LoadBalancersReady", "False", "NotInstalled"))
    assert doctor.metallb([fine, bare]).says == "not installed on team/bare"
    assert doctor.metallb([fine]).says == "installed on 1 tenant"


def test_cluster_api_is_needed_by_clusters_only() -> None:
    assert doctor.cluster_api([], needed=True).level is CheckLevel.PASS
    assert doctor.cluster_api(["clusters.cluster.x-k8s.io/v1beta1"], needed=True).level is CheckLevel.FAIL
    assert doctor.cluster_api(["clusters.cluster.x-k8s.io/v1beta1"], needed=False).level is CheckLevel.WARN
