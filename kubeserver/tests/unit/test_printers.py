"""Rows of `kubectl get`. The expected cells are what kube-apiserver 1.37 printed for the same objects."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubeserver.builtin.catalog import EXTENSIONS, NETWORKING, RBAC
from kubeserver.resources import Resource
from kubeserver.schemas.schema import Schema
from kubeserver.views.cells import DEFAULT_COLUMNS, age
from kubeserver.views.printers import columns_of
from kubeserver.views.tables import TableView

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
BORN = "2026-11-16T11:55:00Z"


def cells(group: str, plural: str, **fields: Any) -> list[Any]:
    resource = Resource(
        group=group, version="v1", plural=plural, singular="", kind="", namespaced=True, schema=Schema()
    )
    metadata = {"name": "x", "creationTimestamp": BORN, **fields.pop("metadata", {})}
    row = TableView(resource, "None").row({"metadata": metadata, **fields}, NOW)
    return list(row["cells"])


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (310, "5m10s"),
        (599, "9m59s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * 3600, "3h"),
        (7 * 3600 + 61, "7h1m"),
        (8 * 3600, "8h"),
        (47 * 3600, "47h"),
        (48 * 3600, "2d"),
        (49 * 3600, "2d1h"),
        (8 * 86400, "8d"),
        (729 * 86400, "729d"),
        (740 * 86400, "2y10d"),
        (730 * 86400, "2y"),
        (2920 * 86400, "8y"),
    ],
)
def test_an_age_is_as_long_as_a_reader_needs(seconds: int, shown: str) -> None:
    assert age(timedelta(seconds=seconds)) == shown


UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}


@given(st.integers(min_value=0, max_value=20 * 365 * 86400))
def test_an_age_never_exceeds_the_time_and_is_close_to_it(seconds: int) -> None:
    shown = age(timedelta(seconds=seconds))
    total, digits = 0, ""
    for character in shown:
        if character.isdigit():
            digits += character
        else:
            total, digits = total + int(digits) * UNITS[character], ""
    assert total <= seconds
    assert seconds - total <= max(seconds * 0.13, 0), shown


POD = {"containers": [{"name": "a", "image": "i"}]}


def pod(status: dict[str, Any], spec: dict[str, Any] | None = None, **metadata: Any) -> list[Any]:
    return cells("", "pods", metadata=metadata, spec=spec or POD, status=status)[1:4]


def state(**container: Any) -> dict[str, Any]:
    return {"name": "a", "restartCount": 0, **container}


TERMINATED = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": "2026-11-16T11:00:00Z"}}}
SIDECAR = {**POD, "initContainers": [{"name": "i1"}, {"name": "i2", "restartPolicy": "Always"}]}


@pytest.mark.parametrize(
    ("status", "spec", "shown"),
    [
        ({"phase": "Pending"}, None, ["0/1", "Pending", "0"]),
        ({"phase": "Failed", "reason": "Evicted"}, None, ["0/1", "Evicted", "0"]),
        (
            {"conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]},
            None,
            ["0/1", "SchedulingGated", "0"],
        ),
        (
            {
                "phase": "Running",
                "containerStatuses": [state(ready=True, state={"running": {}}, **TERMINATED, restartCount=4)],
            },
            None,
            ["1/1", "Running", "4 (60m ago)"],
        ),
        (
            {"containerStatuses": [state(state={"waiting": {"reason": "CrashLoopBackOff"}})]},
            None,
            ["0/1", "CrashLoopBackOff", "0"],
        ),
        ({"containerStatuses": [state(state={"terminated": {"signal": 9}})]}, None, ["0/1", "Signal:9", "0"]),
        (
            {"containerStatuses": [state(state={"terminated": {"exitCode": 2}})]},
            None,
            ["0/1", "ExitCode:2", "0"],
        ),
        (
            {"initContainerStatuses": [{"name": "i1", "state": {"terminated": {"exitCode": 3}}}]},
            SIDECAR,
            ["0/2", "Init:ExitCode:3", "0"],
        ),
        (
            {
                "initContainerStatuses": [
                    {"name": "i1", "state": {"terminated": {"exitCode": 0}}},
                    {"name": "i2", "started": True, "ready": True, "restartCount": 1},
                ],
                "containerStatuses": [state(ready=True, state={"running": {}})],
                "phase": "Running",
            },
            SIDECAR,
            ["2/2", "Running", "1"],
        ),
        ({"initContainerStatuses": [{"name": "i1"}]}, SIDECAR, ["0/2", "Init:0/2", "0"]),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [
                    state(state={"terminated": {"exitCode": 0, "reason": "Completed"}}),
                    state(ready=True, state={"running": {}}),
                ],
            },
            None,
            ["1/1", "Running", "0"],
        ),
    ],
)
def test_the_status_of_a_pod_is_what_its_containers_say(
    status: dict[str, Any], spec: dict[str, Any] | None, shown: list[str]
) -> None:
    assert pod(status, spec) == shown


def test_a_deleted_pod_is_terminating_unless_it_is_over() -> None:
    assert pod({"phase": "Running"}, deletionTimestamp=BORN)[1] == "Terminating"
    assert pod({"phase": "Running", "reason": "NodeLost"}, deletionTimestamp=BORN)[1] == "Unknown"
    assert pod({"phase": "Succeeded"}, deletionTimestamp=BORN)[1] == "Succeeded"


PORTS = [{"port": 80, "protocol": "TCP"}, {"port": 443, "protocol": "UDP", "nodePort": 30001}]


@pytest.mark.parametrize(
    ("group", "plural", "fields", "shown"),
    [
        ("", "namespaces", {"status": {"phase": "Active"}}, ["x", "Active", "5m"]),
        ("", "configmaps", {"data": {"a": "1"}, "binaryData": {"b": ""}}, ["x", 2, "5m"]),
        ("", "secrets", {"type": "Opaque", "data": {"a": "1"}}, ["x", "Opaque", 1, "5m"]),
        ("", "serviceaccounts", {}, ["x", "5m"]),
        (
            "",
            "services",
            {
                "spec": {
                    "type": "ClusterIP",
                    "clusterIPs": ["10.0.0.1"],
                    "ports": PORTS,
                    "selector": {"b": "2", "a": "1"},
                }
            },
            ["x", "ClusterIP", "10.0.0.1", "<none>", "80/TCP,443:30001/UDP", "5m", "a=1,b=2"],
        ),
        (
            "",
            "services",
            {
                "spec": {"type": "LoadBalancer", "externalIPs": ["1.2.3.4"]},
                "status": {"loadBalancer": {"ingress": [{"ip": "9.9.9.9"}, {"hostname": "a.b"}]}},
            },
            ["x", "LoadBalancer", "<none>", "9.9.9.9,a.b,1.2.3.4", "<none>", "5m", "<none>"],
        ),
        (
            "",
            "services",
            {"spec": {"type": "LoadBalancer"}},
            ["x", "LoadBalancer", "<none>", "<pending>", "<none>", "5m", "<none>"],
        ),
        (
            "",
            "services",
            {"spec": {"type": "ExternalName", "externalName": "a.b"}},
            ["x", "ExternalName", "<none>", "a.b", "<none>", "5m", "<none>"],
        ),
        ("", "endpoints", {}, ["x", "<none>", "5m"]),
        (
            "",
            "endpoints",
            {"subsets": [{"addresses": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}], "ports": [{"port": 1}, {"port": 2}]}]},
            ["x", "10.0.0.1:1,[fd00::1]:1,10.0.0.1:2 + 1 more...", "5m"],
        ),
        (
            "",
            "nodes",
            {
                "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "edge"}},
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}],
                    "nodeInfo": {"kubeletVersion": "v1.37.1", "kernelVersion": "6.1", "architecture": "amd64"},
                },
            },
            [
                "x",
                "Ready,SchedulingDisabled",
                "edge,worker",
                "5m",
                "v1.37.1",
                "10.0.0.9",
                "<none>",
                "<unknown>",
                "6.1 (amd64)",
                "<unknown>",
            ],
        ),
        (
            "",
            "nodes",
            {},
            [
                "x",
                "Unknown",
                "<none>",
                "5m",
                "",
                "<none>",
                "<none>",
                "<unknown>",
                "<unknown>",
                "<unknown>",
            ],
        ),
        (
            "apps",
            "deployments",
            {
                "spec": {
                    "replicas": 3,
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"spec": {"containers": [{"name": "a", "image": "i"}]}},
                },
                "status": {"readyReplicas": 1, "updatedReplicas": 3},
            },
            ["x", "1/3", 3, 0, "5m", "a", "i", "a=b"],
        ),
        (
            "batch",
            "jobs",
            {
                "spec": {"parallelism": 3, "template": {"spec": POD}},
                "status": {"startTime": BORN, "completionTime": "2026-11-16T11:56:30Z"},
            },
            ["x", "Running", "0/1 of 3", "90s", "5m", "a", "i", "<none>"],
        ),
        (
            "batch",
            "jobs",
            {
                "spec": {"completions": 3},
                "status": {"startTime": BORN, "conditions": [{"type": "Failed", "status": "True"}]},
            },
            ["x", "Failed", "0/3", "5m", "5m", "", "", "<none>"],
        ),
        (
            NETWORKING,
            "ingresses",
            {"spec": {"rules": [{"host": letter} for letter in "abcd"], "tls": [{}]}},
            ["x", "<none>", "a,b,c + 1 more...", "", "80, 443", "5m"],
        ),
        (NETWORKING, "ingresses", {}, ["x", "<none>", "*", "", "80", "5m"]),
        (
            "discovery.k8s.io",
            "endpointslices",
            {"addressType": "IPv4", "ports": [{"port": 80}, {"name": "z"}], "endpoints": []},
            ["x", "IPv4", "80,z", "<unset>", "5m"],
        ),
        (
            "coordination.k8s.io",
            "leases",
            {"spec": {"holderIdentity": "me"}},
            ["x", "me", "5m"],
        ),
        (RBAC, "roles", {}, ["x", BORN]),
        (
            RBAC,
            "rolebindings",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [
                    {"kind": "User", "name": "u"},
                    {"kind": "User", "name": "v"},
                    {"kind": "ServiceAccount", "name": "s", "namespace": "n"},
                ],
            },
            ["x", "Role/r", "5m", "u, v", "", "n/s"],
        ),
        (
            EXTENSIONS,
            "customresourcedefinitions",
            {
                "spec": {
                    "scope": "Cluster",
                    "group": "g",
                    "names": {"kind": "K", "shortNames": ["k", "kk"]},
                    "versions": [
                        {"name": "v1beta1", "served": True},
                        {"name": "v1", "served": True, "storage": True},
                        {"name": "v0", "served": False},
                    ],
                },
                "status": {"conditions": [{"type": "Established", "status": "True"}]},
            },
            ["x", "Cluster", "v1(storage),v1beta1", BORN, "g", "K", "k,kk", True],
        ),
        (
            "",
            "persistentvolumeclaims",
            {
                "spec": {"volumeName": "v", "storageClassName": "fast"},
                "status": {"phase": "Bound", "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}},
            },
            ["x", "Bound", "v", "1Gi", "RWX", "fast", "<unset>", "5m", "<unset>"],
        ),
    ],
)
def test_a_row_shows_what_kubernetes_shows(group: str, plural: str, fields: dict[str, Any], shown: list[Any]) -> None:
    assert cells(group, plural, **fields) == shown


OLD_EVENT = {
    "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{a}"},
    "type": "Normal",
    "reason": "R",
    "message": " hello ",
    "source": {"component": "c", "host": "h"},
    "firstTimestamp": "2026-11-16T11:00:00Z",
    "lastTimestamp": "2026-11-16T11:10:00Z",
    "count": 3,
}
NEW_EVENT = {
    "regarding": {"kind": "Pod", "name": "p"},
    "type": "Warning",
    "reason": "R",
    "note": "hello",
    "reportingController": "example.com/c",
    "reportingInstance": "i",
    "eventTime": "2026-11-16T11:00:00.123456Z",
    "series": {"count": 7, "lastObservedTime": "2026-11-16T11:20:00.000000Z"},
}


def test_events_of_both_groups_show_the_same_columns() -> None:
    assert cells("", "events", **OLD_EVENT) == [
        "50m",
        "Normal",
        "R",
        "pod/p",
        "spec.containers{a}",
        "c, h",
        "hello",
        "60m",
        3,
        "x",
    ]
    assert cells("events.k8s.io", "events", **NEW_EVENT) == [
        "40m",
        "Warning",
        "R",
        "pod/p",
        "",
        "example.com/c, i",
        "hello",
        "59m",
        7,
        "x",
    ]
    single = {"involvedObject": {"kind": "Node"}, "eventTime": "2026-11-16T11:00:00.000000Z"}
    assert cells("", "events", **single)[:4] == ["60m", "", "", "node"]


def test_kinds_without_columns_of_their_own_show_when_they_were_created() -> None:
    assert columns_of("example.com", "things") == DEFAULT_COLUMNS
