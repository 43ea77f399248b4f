"""Deleting: answers, preconditions, finalizers, collections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from conformance.kinds import GROUP, configmap, pod, widget
from conformance.wire import JSON_PATCH, failure, invalid, not_found

if TYPE_CHECKING:
    from conformance.wire import Api, Object


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def made(api: Api, namespace: str, **metadata: Any) -> Object:
    created: Object = (await api.post(maps(namespace), configmap("one", **metadata))).made
    return created


async def test_a_deleted_object_is_gone(api: Api, namespace: str) -> None:
    await made(api, namespace)
    assert (await api.delete(f"{maps(namespace)}/one")).status == 200
    assert (await api.get(f"{maps(namespace)}/one")).status == 404


async def test_the_answer_names_what_went(api: Api, namespace: str) -> None:
    uid = (await made(api, namespace))["metadata"]["uid"]
    assert (await api.delete(f"{maps(namespace)}/one")).body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "one", "kind": "configmaps", "uid": uid},
    }


async def test_the_answer_for_a_custom_resource_names_its_group(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    uid = (await api.post(path, widget("one"))).made["metadata"]["uid"]
    assert (await api.delete(f"{path}/one")).body["details"] == {
        "name": "one",
        "group": GROUP,
        "kind": "widgets",
        "uid": uid,
    }


async def test_services_and_service_accounts_are_answered_whole(api: Api, namespace: str) -> None:
    for kind, body in (
        ("services", {"spec": {"ports": [{"port": 1}]}}),
        ("serviceaccounts", {}),
    ):
        path = f"/api/v1/namespaces/{namespace}/{kind}"
        await api.post(path, {"metadata": {"name": "one"}} | body)
        answer = await api.delete(f"{path}/one")
        assert answer.status == 200
        assert answer.body["metadata"]["name"] == "one"


async def test_what_is_missing_cannot_be_deleted(api: Api, namespace: str) -> None:
    answer = await api.delete(f"{maps(namespace)}/missing")
    assert answer.body == not_found("configmaps", "missing")


async def test_a_uid_precondition_must_hold(api: Api, namespace: str) -> None:
    uid = (await made(api, namespace))["metadata"]["uid"]
    answer = await api.delete(f"{maps(namespace)}/one", {"preconditions": {"uid": "other"}})
    assert answer.body == failure(
        409,
        "Conflict",
        'Operation cannot be fulfilled on ConfigMap "one": the UID in the precondition (other) does not match the '
        f"UID in record ({uid}). The object might have been deleted and then recreated",
        name="one",
        kind="ConfigMap",
    )
    assert (await api.delete(f"{maps(namespace)}/one", {"preconditions": {"uid": uid}})).status == 200


async def test_a_version_precondition_must_hold(api: Api, namespace: str) -> None:
    old = (await made(api, namespace))["metadata"]["resourceVersion"]
    new = (await api.merge(f"{maps(namespace)}/one", {"data": {"a": "2"}})).made["metadata"]["resourceVersion"]
    answer = await api.delete(f"{maps(namespace)}/one", {"preconditions": {"resourceVersion": old}})
    assert answer.body == failure(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on ConfigMap "one": the ResourceVersion in the precondition ({old}) does '
        f"not match the ResourceVersion in record ({new}). The object might have been modified",
        name="one",
        kind="ConfigMap",
    )
    answer = await api.delete(f"{maps(namespace)}/one", {"preconditions": {"resourceVersion": new}})
    assert answer.status == 200


async def test_a_finalizer_holds_the_object(api: Api, namespace: str) -> None:
    created = await made(api, namespace, finalizers=["example.com/f"])
    answer = await api.delete(f"{maps(namespace)}/one")
    assert answer.status == 200
    assert answer.body["kind"] == "ConfigMap"
    metadata = answer.body["metadata"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", metadata["deletionTimestamp"])
    assert metadata["deletionGracePeriodSeconds"] == 0
    assert metadata["finalizers"] == ["example.com/f"]
    assert int(metadata["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert (await api.get(f"{maps(namespace)}/one")).body == answer.body


async def test_marking_for_deletion_raises_the_generation(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", finalizers=["example.com/f"]))
    assert (await api.delete(f"{path}/one")).body["metadata"]["generation"] == 2


async def test_a_second_deletion_changes_nothing(api: Api, namespace: str) -> None:
    await made(api, namespace, finalizers=["example.com/f"])
    first = await api.delete(f"{maps(namespace)}/one")
    second = await api.delete(f"{maps(namespace)}/one")
    assert (second.status, second.body) == (200, first.body)


async def test_the_last_finalizer_lets_it_go(api: Api, namespace: str) -> None:
    await made(api, namespace, finalizers=["example.com/f", "example.com/g"])
    await api.delete(f"{maps(namespace)}/one")
    answer = await api.merge(f"{maps(namespace)}/one", {"metadata": {"finalizers": ["example.com/g"]}})
    assert answer.status == 200
    assert (await api.get(f"{maps(namespace)}/one")).status == 200
    answer = await api.merge(f"{maps(namespace)}/one", {"metadata": {"finalizers": None}})
    assert answer.status == 200
    assert "finalizers" not in answer.body["metadata"]
    assert (await api.get(f"{maps(namespace)}/one")).status == 404


async def test_a_finalizer_may_not_come_while_deleting(api: Api, namespace: str) -> None:
    await made(api, namespace, finalizers=["example.com/f"])
    await api.delete(f"{maps(namespace)}/one")
    answer = await api.merge(
        f"{maps(namespace)}/one", {"metadata": {"finalizers": ["example.com/f", "example.com/new"]}}
    )
    assert answer.body == invalid(
        "ConfigMap",
        "one",
        (
            "FieldValueForbidden",
            "metadata.finalizers",
            (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                '[]string{"example.com/new"}'
            ),
        ),
    )


async def test_content_may_still_change_while_deleting(api: Api, namespace: str) -> None:
    await made(api, namespace, finalizers=["example.com/f"])
    await api.delete(f"{maps(namespace)}/one")
    answer = await api.merge(f"{maps(namespace)}/one", {"data": {"a": "2"}})
    assert answer.status == 200


async def test_a_name_is_taken_while_deleting(api: Api, namespace: str) -> None:
    await made(api, namespace, finalizers=["example.com/f"])
    await api.delete(f"{maps(namespace)}/one")
    answer = await api.post(maps(namespace), configmap("one"))
    assert answer.body == failure(
        409,
        "AlreadyExists",
        'object is being deleted: configmaps "one" already exists',
        name="one",
        kind="configmaps",
    )


async def test_watchers_see_the_end(api: Api, namespace: str) -> None:
    version = (await made(api, namespace, finalizers=["example.com/f"]))["metadata"]["resourceVersion"]
    async with api.watch(maps(namespace), resourceVersion=version) as watch:
        await api.delete(f"{maps(namespace)}/one")
        await api.patch(f"{maps(namespace)}/one", [{"op": "remove", "path": "/metadata/finalizers"}], JSON_PATCH)
        assert await watch.names(2) == [("MODIFIED", "one"), ("DELETED", "one")]


async def test_a_dry_run_of_a_deletion_deletes_nothing(api: Api, namespace: str) -> None:
    await made(api, namespace)
    assert (await api.delete(f"{maps(namespace)}/one", dryRun="All")).status == 200
    assert (await api.get(f"{maps(namespace)}/one")).status == 200


async def test_options_may_be_in_the_query(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.delete(f"{maps(namespace)}/one", gracePeriodSeconds=5, propagationPolicy="Background")
    assert answer.status == 200


async def test_a_propagation_policy_has_three_forms(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.delete(f"{maps(namespace)}/one", {"propagationPolicy": "Sideways"})
    assert answer.body == invalid(
        "DeleteOptions",
        "",
        (
            "FieldValueNotSupported",
            "propagationPolicy",
            'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
        group="meta.k8s.io",
    )


async def test_two_ways_to_say_orphan_exclude_each_other(api: Api, namespace: str) -> None:
    await made(api, namespace)
    body = {"propagationPolicy": "Orphan", "orphanDependents": True}
    answer = await api.delete(f"{maps(namespace)}/one", body)
    assert answer.status == 422
    assert answer.causes == [
        (
            "FieldValueInvalid",
            "propagationPolicy",
            'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        )
    ]


async def test_malformed_options_are_refused(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.delete(f"{maps(namespace)}/one", '{"preconditions": 5}')
    assert answer.status == 400
    assert answer.body["reason"] == "BadRequest"


async def test_a_scheduled_pod_gets_its_grace_period(api: Api, pods: str) -> None:
    assert (await api.post(pods, pod("one", nodeName="node-1"))).status == 201
    answer = await api.delete(f"{pods}/one")
    assert answer.status == 200
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert (await api.get(f"{pods}/one")).status == 200
    answer = await api.delete(f"{pods}/one", {"gracePeriodSeconds": 0})
    assert answer.status == 200
    assert (await api.get(f"{pods}/one")).status == 404


async def test_a_pod_without_a_node_goes_at_once(api: Api, pods: str) -> None:
    assert (await api.post(pods, pod("one"))).status == 201
    answer = await api.delete(f"{pods}/one")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.get(f"{pods}/one")).status == 404


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ({}, set()),
        ({"labelSelector": "color=red"}, {"b", "c"}),
        ({"fieldSelector": "metadata.name=b"}, {"a", "c"}),
        ({"labelSelector": "color=red", "fieldSelector": "metadata.name=b"}, {"a", "b", "c"}),
    ],
    ids=lambda case: str(case if isinstance(case, dict) else sorted(case)),
)
async def test_a_collection_can_be_deleted(api: Api, namespace: str, query: dict[str, str], left: set[str]) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "blue")):
        await api.post(maps(namespace), configmap(name, labels={"color": color}))
    answer = await api.delete(maps(namespace), **query)
    assert answer.status == 200
    assert answer.body["kind"] == "ConfigMapList"
    items = (await api.get(maps(namespace))).body["items"]
    assert {item["metadata"]["name"] for item in items} - {"kube-root-ca.crt"} == left


async def test_a_custom_collection_can_be_deleted(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("a"))
    await api.post(path, widget("b", finalizers=["example.com/f"]))
    body = (await api.delete(path)).made
    assert body["kind"] == "WidgetList"
    assert [item["metadata"]["name"] for item in body["items"]] == ["a", "b"]
    left = (await api.get(path)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]
    assert "deletionTimestamp" in left[0]["metadata"]
