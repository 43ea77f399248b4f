"""Pods, deployments, nodes, service accounts, leases, events and RBAC kinds, as far as controllers rely on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from conformance.kinds import deployment, pod
from conformance.wire import failure, invalid

if TYPE_CHECKING:
    from conformance.wire import Api, Causes, Object

RBAC = "rbac.authorization.k8s.io"


async def test_a_pod_is_filled_in(api: Api, pods: str) -> None:
    created = (await api.post(pods, pod("one"))).made
    spec = created["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["schedulerName"] == "default-scheduler"
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["securityContext"] == {}
    assert spec["enableServiceLinks"] is True
    container = spec["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["resources"] == {}
    assert container["terminationMessagePolicy"] == "File"
    assert created["status"]["phase"] == "Pending"
    assert created["status"]["qosClass"] == "BestEffort"
    assert created["metadata"]["generation"] == 1


async def test_the_latest_image_is_always_pulled(api: Api, pods: str) -> None:
    body = pod("one", containers=[{"name": "a", "image": "x"}, {"name": "b", "image": "x:latest"}])
    created = (await api.post(pods, body)).made
    assert [container["imagePullPolicy"] for container in created["spec"]["containers"]] == ["Always", "Always"]


@pytest.mark.parametrize(
    ("spec", "causes"),
    [
        ({"containers": []}, [("FieldValueRequired", "spec.containers", "Required value")]),
        (
            {"containers": [{"name": "a"}]},
            [("FieldValueRequired", "spec.containers[0].image", "Required value")],
        ),
        (
            {"containers": [{"name": "a", "image": "a"}, {"name": "a", "image": "b"}]},
            [("FieldValueDuplicate", "spec.containers[1].name", 'Duplicate value: "a"')],
        ),
        (
            {"restartPolicy": "Maybe"},
            [
                (
                    "FieldValueNotSupported",
                    "spec.restartPolicy",
                    'Unsupported value: "Maybe": supported values: "Always", "OnFailure", "Never"',
                )
            ],
        ),
    ],
    ids=str,
)
async def test_a_bad_pod_is_refused(api: Api, pods: str, spec: Object, causes: Causes) -> None:
    answer = await api.post(pods, pod("one", **spec))
    assert answer.body == invalid("Pod", "one", *causes)


async def test_a_pod_needs_its_service_account(api: Api, namespace: str, pods: str) -> None:
    answer = await api.post(pods, pod("one", serviceAccountName="missing"))
    assert answer.body == failure(
        403,
        "Forbidden",
        f'pods "one" is forbidden: error looking up service account {namespace}/missing: '
        'serviceaccount "missing" not found',
        name="one",
        kind="pods",
    )


async def test_most_of_a_pod_is_fixed(api: Api, pods: str) -> None:
    await api.post(pods, pod("one"))
    answer = await api.merge(f"{pods}/one", {"spec": {"nodeSelector": {"a": "b"}}})
    assert answer.status == 422
    ((reason, field, message),) = answer.causes
    assert (reason, field) == ("FieldValueForbidden", "spec")
    # What follows is a diff of Go structures.
    assert message.startswith(
        "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
        "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
        "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
    )


async def test_the_status_of_a_pod_is_written_apart(api: Api, pods: str) -> None:
    await api.post(pods, pod("one"))
    status = {"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]}
    changed = (await api.merge(f"{pods}/one/status", {"status": status})).made
    assert changed["status"] | status == changed["status"]
    assert (await api.merge(f"{pods}/one", {"status": {"phase": "Failed"}})).made["status"]["phase"] == "Running"


async def test_a_deployment_is_filled_in(api: Api, namespace: str) -> None:
    created = (await api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", deployment("one"))).made
    assert created["spec"] == {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "one"}},
        "template": {
            "metadata": {"labels": {"app": "one"}},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "example.com/app:1",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "imagePullPolicy": "IfNotPresent",
                    }
                ],
                "restartPolicy": "Always",
                "terminationGracePeriodSeconds": 30,
                "dnsPolicy": "ClusterFirst",
                "securityContext": {},
                "schedulerName": "default-scheduler",
            },
        },
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        },
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
    }


@pytest.mark.parametrize(
    ("change", "causes"),
    [
        (
            {"template": {"metadata": {"labels": {"b": "c"}}, "spec": pod("x")["spec"]}},
            [
                (
                    "FieldValueInvalid",
                    "spec.template.metadata.labels",
                    'Invalid value: {"b":"c"}: `selector` does not match template `labels`',
                )
            ],
        ),
        (
            {"selector": None, "template": {"spec": {"containers": []}}},
            [
                ("FieldValueRequired", "spec.selector", "Required value"),
                (
                    "FieldValueInvalid",
                    "spec.template.metadata.labels",
                    "Invalid value: null: `selector` does not match template `labels`",
                ),
                ("FieldValueRequired", "spec.template.spec.containers", "Required value"),
            ],
        ),
        (
            {"replicas": -1},
            [("FieldValueInvalid", "spec.replicas", "Invalid value: -1: must be greater than or equal to 0")],
        ),
    ],
    ids=["labels", "selector", "replicas"],
)
async def test_a_bad_deployment_is_refused(api: Api, namespace: str, change: Object, causes: Causes) -> None:
    body = deployment("one", **change)
    answer = await api.post(f"/apis/apps/v1/namespaces/{namespace}/deployments", body)
    assert answer.body == invalid("Deployment", "one", *causes, group="apps")


async def test_the_selector_of_a_deployment_is_fixed(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.post(path, deployment("one"))
    labels = {"x": "y"}
    patch = {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}}
    answer = await api.merge(f"{path}/one", patch)
    message = 'Invalid value: {"matchLabels":{"app":"one","x":"y"}}: field is immutable'
    cause = ("FieldValueInvalid", "spec.selector", message)
    assert answer.body == invalid("Deployment", "one", cause, group="apps")


async def test_a_node_has_a_status_of_its_own(api: Api, unique: str) -> None:
    name = f"node-{unique}"
    body = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "2"}}}
    try:
        created = (await api.post("/api/v1/nodes", body)).made
        # A node registers itself with its status, so create keeps it.
        assert created["status"]["capacity"] == created["status"]["allocatable"] == {"cpu": "2"}
        addresses = [{"type": "InternalIP", "address": "10.0.0.1"}]
        changed = await api.merge(f"/api/v1/nodes/{name}/status", {"status": {"addresses": addresses}})
        assert changed.made["status"]["addresses"] == addresses
        await api.merge(f"/api/v1/nodes/{name}", {"status": {"addresses": None}})
        assert (await api.get(f"/api/v1/nodes/{name}")).made["status"]["addresses"] == addresses
    finally:
        await api.delete(f"/api/v1/nodes/{name}")


async def test_the_pod_range_of_a_node_is_set_once(api: Api, unique: str) -> None:
    name = f"node-{unique}"
    try:
        await api.post("/api/v1/nodes", {"metadata": {"name": name}})
        spec = {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24"]}
        changed = (await api.merge(f"/api/v1/nodes/{name}", {"spec": spec})).made["spec"]
        changed.pop("taints", None)  # "not ready" is a matter of controllers, which the embedded server has none of
        assert changed == spec
        other = {"podCIDR": "10.2.0.0/24", "podCIDRs": ["10.2.0.0/24"]}
        answer = await api.merge(f"/api/v1/nodes/{name}", {"spec": other})
        message = 'Forbidden: node updates may not change podCIDR except from "" to valid'
        assert answer.body == invalid("Node", name, ("FieldValueForbidden", "spec.podCIDRs", message))
    finally:
        await api.delete(f"/api/v1/nodes/{name}")


async def test_a_lease_keeps_microseconds(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 0,
        "renewTime": "2026-01-01T00:00:00.123456Z",
    }
    assert (await api.post(path, {"metadata": {"name": "one"}, "spec": spec})).made["spec"] == spec
    answer = await api.post(path, {"metadata": {"name": "two"}, "spec": {"leaseDurationSeconds": 0}})
    message = "Invalid value: 0: must be greater than 0"
    cause = ("FieldValueInvalid", "spec.leaseDurationSeconds", message)
    assert answer.body == invalid("Lease", "two", cause, group="coordination.k8s.io")


async def test_a_time_must_be_a_time(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
    answer = await api.post(path, {"metadata": {"name": "one"}, "spec": {"renewTime": "x"}})
    assert answer.body == failure(
        400,
        "BadRequest",
        'Lease in version "v1" cannot be handled as a Lease: parsing time "x" as '
        '"2006-01-02T15:04:05.000000Z07:00": cannot parse "x" as "2006"',
    )


async def test_an_old_event_reads_as_a_new_one(api: Api, namespace: str) -> None:
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    body = {
        "metadata": {"name": "one"},
        "involvedObject": about,
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
        "count": 3,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-02T00:00:00Z",
        "source": {"component": "c", "host": "h"},
    }
    created = (await api.post(f"/api/v1/namespaces/{namespace}/events", body)).made
    assert (created["eventTime"], created["reportingComponent"]) == (None, "")
    read = (await api.get(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/one")).made
    assert read.pop("metadata")["uid"] == created["metadata"]["uid"]
    assert read == {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "eventTime": None,
        "reason": "Started",
        "regarding": about,
        "note": "it runs",
        "type": "Normal",
        "deprecatedSource": {"component": "c", "host": "h"},
        "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
        "deprecatedLastTimestamp": "2026-01-02T00:00:00Z",
        "deprecatedCount": 3,
    }


async def test_a_new_event_reads_as_an_old_one(api: Api, namespace: str) -> None:
    about = {"kind": "Pod", "namespace": namespace, "name": "p"}
    body = {
        "metadata": {"name": "one"},
        "regarding": about,
        "reason": "Failed",
        "note": "it broke",
        "type": "Warning",
        "action": "Running",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "i",
    }
    assert (await api.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)).status == 201
    read = (await api.get(f"/api/v1/namespaces/{namespace}/events/one")).made
    read.pop("metadata")
    assert read == {
        "kind": "Event",
        "apiVersion": "v1",
        "involvedObject": about,
        "reason": "Failed",
        "message": "it broke",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Warning",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "action": "Running",
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
    }


async def test_an_event_is_in_the_namespace_of_its_object(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "other"}}
    answer = await api.post(f"/api/v1/namespaces/{namespace}/events", body)
    message = 'Invalid value: "other": does not match event.namespace'
    assert answer.body == invalid("Event", "one", ("FieldValueInvalid", "involvedObject.namespace", message))


async def test_a_new_event_must_say_when_and_how_bad(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "regarding": {"kind": "Pod", "name": "p", "namespace": namespace}}
    answer = await api.post(f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", body)
    assert answer.body == invalid(
        "Event",
        "one",
        ("FieldValueRequired", "eventTime", "Required value"),
        ("FieldValueInvalid", "type", 'Invalid value: "": has invalid value: '),
    )


async def test_a_role_needs_verbs(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"]}]}
    answer = await api.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", body)
    cause = ("FieldValueRequired", "rules[0].verbs", "Required value")
    assert answer.body == invalid("Role", "one", cause, group=RBAC)


async def test_a_role_knows_only_resources(api: Api, namespace: str) -> None:
    body = {"metadata": {"name": "one"}, "rules": [{"nonResourceURLs": ["/x"], "verbs": ["get"]}]}
    answer = await api.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/roles", body)
    message = 'Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'
    cause = ("FieldValueInvalid", "rules[0].nonResourceURLs", message)
    assert answer.body == invalid("Role", "one", cause, group=RBAC)


async def test_a_binding_is_filled_in_and_its_role_is_fixed(api: Api, namespace: str) -> None:
    path = f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings"
    body = {
        "metadata": {"name": "one"},
        "roleRef": {"kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}],
    }
    created = (await api.post(path, body)).made
    assert created["roleRef"] == {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    assert created["subjects"] == [
        {"kind": "User", "apiGroup": RBAC, "name": "u"},
        {"kind": "Group", "apiGroup": RBAC, "name": "g"},
    ]
    answer = await api.merge(f"{path}/one", {"roleRef": {"name": "edit"}})
    message = f'Invalid value: {{"APIGroup":"{RBAC}","Kind":"ClusterRole","Name":"edit"}}: field is immutable'
    assert answer.body == invalid("RoleBinding", "one", ("FieldValueInvalid", "roleRef", message), group=RBAC)


async def test_a_binding_is_for_known_kinds(api: Api, namespace: str) -> None:
    body = {
        "metadata": {"name": "one"},
        "roleRef": {"kind": "Nope", "name": "r"},
        "subjects": [{"kind": "Dog", "name": "u"}],
    }
    answer = await api.post(f"/apis/{RBAC}/v1/namespaces/{namespace}/rolebindings", body)
    assert answer.body == invalid(
        "RoleBinding",
        "one",
        (
            "FieldValueNotSupported",
            "roleRef.kind",
            'Unsupported value: "Nope": supported values: "Role", "ClusterRole"',
        ),
        (
            "FieldValueNotSupported",
            "subjects[0].kind",
            'Unsupported value: "Dog": supported values: "ServiceAccount", "User", "Group"',
        ),
        group=RBAC,
    )


async def test_a_service_account_can_get_a_token(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.post(path, {"metadata": {"name": "robot"}})
    answer = await api.post(f"{path}/robot/token", {"spec": {"expirationSeconds": 3600}})
    assert answer.status == 201
    assert answer.body["kind"] == "TokenRequest"
    assert answer.body["apiVersion"] == "authentication.k8s.io/v1"
    assert answer.body["spec"]["expirationSeconds"] == 3600
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", answer.body["status"]["expirationTimestamp"])
    assert answer.body["status"]["token"].count(".") == 2


async def test_a_token_lives_ten_minutes_or_more(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await api.post(path, {"metadata": {"name": "robot"}})
    answer = await api.post(f"{path}/robot/token", {"spec": {"expirationSeconds": 5}})
    message = "Invalid value: 5: may not specify a duration less than 10 minutes"
    cause = ("FieldValueInvalid", "spec.expirationSeconds", message)
    assert answer.body == invalid("TokenRequest", "", cause, group="authentication.k8s.io")
