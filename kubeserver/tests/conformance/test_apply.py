"""Server-side apply: who owns what, what happens when two want the same field, and what goes when it is dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, configmap, deployment, service, widget
from conformance.wire import APPLY_PATCH, failure, not_found, unexplained

if TYPE_CHECKING:
    from conformance.wire import Api, Object


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def conflict(message: str, *causes: tuple[str, str]) -> Object:
    return failure(
        409,
        "Conflict",
        message,
        causes=[{"reason": "FieldManagerConflict", "message": text, "field": field} for field, text in causes],
    )


async def test_apply_creates(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", configmap("one", {"a": "1"}))
    assert answer.status == 201
    assert answer.body["data"] == {"a": "1"}


async def test_apply_takes_yaml(api: Api, namespace: str) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: '1'\n"
    assert (await api.apply(f"{maps(namespace)}/one", text)).made["data"] == {"a": "1"}


async def test_apply_updates_and_the_rest_stays(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.post(maps(namespace), configmap("one", {"mine": "1"}))
    answer = await api.apply(path, configmap("one", {"yours": "2"}))
    assert answer.status == 200
    assert answer.body["data"] == {"mine": "1", "yours": "2"}


async def test_apply_of_the_same_writes_nothing(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    first = (await api.apply(path, configmap("one"))).made
    assert (await api.apply(path, configmap("one"))).made == first


async def test_a_field_that_is_no_longer_applied_goes(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1", "b": "2"}, labels={"x": "y"}))
    body = (await api.apply(path, configmap("one", {"a": "1"}))).made
    assert body["data"] == {"a": "1"}
    assert "labels" not in body["metadata"]


async def test_a_field_that_another_still_owns_stays(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1", "b": "2"}), "first")
    await api.apply(path, configmap("one", {"a": "1"}), "second")
    body = (await api.apply(path, configmap("one", {"b": "2"}), "first")).made
    assert body["data"] == {"a": "1", "b": "2"}


async def test_two_that_agree_share_a_field(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1"}), "first")
    answer = await api.apply(path, configmap("one", {"a": "1"}), "second")
    assert answer.status == 200
    owners = {entry["manager"] for entry in answer.body["metadata"]["managedFields"]}
    assert owners == {"first", "second"}


async def test_two_that_disagree_conflict(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1"}), "first")
    answer = await api.apply(path, configmap("one", {"a": "2"}), "second")
    assert answer.body == conflict(
        'Apply failed with 1 conflict: conflict with "first": .data.a',
        (".data.a", 'conflict with "first"'),
    )


async def test_several_conflicts_are_told_at_once(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1", "b": "1"}), "first")
    await api.apply(path, configmap("one", {"c": "1"}), "third")
    answer = await api.apply(path, configmap("one", {"a": "2", "b": "2", "c": "2"}), "second")
    assert answer.body["message"] == (
        'Apply failed with 3 conflicts: conflicts with "first":\n- .data.a\n- .data.b\n'
        'conflicts with "third":\n- .data.c'
    )
    assert sorted(answer.causes) == [
        ("FieldManagerConflict", ".data.a", 'conflict with "first"'),
        ("FieldManagerConflict", ".data.b", 'conflict with "first"'),
        ("FieldManagerConflict", ".data.c", 'conflict with "third"'),
    ]


async def test_a_conflict_with_an_update_tells_its_version(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one", {"size": 1}), fieldManager="editor")
    answer = await api.apply(f"{path}/one", widget("one", {"size": 2}))
    assert answer.body == conflict(
        f'Apply failed with 1 conflict: conflict with "editor" using {GROUP}/v1: .spec.size',
        (".spec.size", f'conflict with "editor" using {GROUP}/v1'),
    )


async def test_force_takes_the_field_over(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1", "b": "1"}), "first")
    body = (await api.apply(path, configmap("one", {"a": "2"}), "second", force="true")).made
    assert body["data"] == {"a": "2", "b": "1"}
    fields = {entry["manager"]: entry["fieldsV1"] for entry in body["metadata"]["managedFields"]}
    assert fields == {"first": {"f:data": {"f:b": {}}}, "second": {"f:data": {"f:a": {}}}}


async def test_an_update_takes_fields_over_without_asking(api: Api, namespace: str) -> None:
    path = f"{maps(namespace)}/one"
    await api.apply(path, configmap("one", {"a": "1", "b": "1"}), "first")
    body = (await api.merge(path, {"data": {"a": "2"}}, fieldManager="editor")).made
    fields = {entry["manager"]: entry["fieldsV1"] for entry in body["metadata"]["managedFields"]}
    assert fields == {"first": {"f:data": {"f:b": {}}}, "editor": {"f:data": {"f:a": {}}}}


async def test_apply_needs_a_field_manager(api: Api, namespace: str) -> None:
    answer = await api.patch(f"{maps(namespace)}/one", configmap("one"), APPLY_PATCH)
    assert answer.status == 422
    assert answer.causes == [("FieldValueRequired", "fieldManager", "Required value: is required for apply patch")]
    assert answer.body["details"]["kind"] == "PatchOptions"


async def test_force_is_for_apply_only(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    answer = await api.merge(f"{maps(namespace)}/one", {}, force="true")
    assert answer.causes == [("FieldValueForbidden", "force", "Forbidden: may not be specified for non-apply patch")]


async def test_apply_may_not_carry_managed_fields(api: Api, namespace: str) -> None:
    body = configmap("one", managedFields=[{"manager": "x", "operation": "Apply", "apiVersion": "v1"}])
    answer = await api.apply(f"{maps(namespace)}/one", body)
    assert answer.body == failure(400, "BadRequest", "metadata.managedFields must be nil")


async def test_apply_needs_kind_and_version(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", {"metadata": {"name": "one"}})
    assert answer.body == failure(400, "BadRequest", "invalid object type: /, Kind=")


async def test_the_version_applied_must_be_that_of_the_path(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    answer = await api.apply(path, widget("one") | {"apiVersion": f"{GROUP}/v9"})
    assert answer.body == failure(400, "BadRequest", f"invalid object type: {GROUP}/v9, Kind=Widget")


async def test_the_name_applied_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", configmap("two"))
    assert answer.body == failure(
        400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)"
    )


async def test_apply_with_a_uid_does_not_create(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", configmap("one", uid="some"))
    assert answer.body == failure(
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "one": uid mismatch: the provided object specified uid some, '
        "and no existing object was found",
        name="one",
        kind="configmaps",
    )


async def test_apply_of_broken_yaml_is_refused(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", "a: [")
    assert answer.status == 400
    assert answer.body["reason"] == "BadRequest"
    # What follows is the YAML library's own text.
    assert answer.body["message"].startswith("error encoding patch: yaml: line 1: ")


async def test_apply_of_a_wrong_type_is_refused(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    answer = await api.apply(path, widget("one", {"size": "big"}))
    assert answer.body == unexplained(
        500,
        f"failed to create typed patch object (/one; {GROUP}/v1, Kind=Widget): "
        ".spec.size: expected numeric (int or float), got string",
    )


async def test_map_lists_merge_by_key(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"ports": [{"name": "a", "port": 1}]}), "first")
    body = (
        await api.apply(path, widget("one", {"ports": [{"name": "b", "port": 2}, {"name": "c", "port": 3}]}), "second")
    ).made
    assert {port["name"]: port["port"] for port in body["spec"]["ports"]} == {"a": 1, "b": 2, "c": 3}
    body = (await api.apply(path, widget("one", {"ports": [{"name": "c", "port": 3}]}), "second")).made
    assert {port["name"]: port["port"] for port in body["spec"]["ports"]} == {"a": 1, "c": 3}


async def test_sets_merge_by_value(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"tags": ["a", "b"]}), "first")
    body = (await api.apply(path, widget("one", {"tags": ["b", "c"]}), "second")).made
    assert sorted(body["spec"]["tags"]) == ["a", "b", "c"]
    body = (await api.apply(path, widget("one", {"tags": ["a"]}), "first")).made
    assert sorted(body["spec"]["tags"]) == ["a", "b", "c"]


async def test_atomic_lists_have_one_owner(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"steps": ["a"]}), "first")
    answer = await api.apply(path, widget("one", {"steps": ["b"]}), "second")
    assert answer.body == conflict(
        'Apply failed with 1 conflict: conflict with "first": .spec.steps',
        (".spec.steps", 'conflict with "first"'),
    )
    body = (await api.apply(path, widget("one", {"steps": ["b"]}), "second", force="true")).made
    assert body["spec"]["steps"] == ["b"]
    assert [entry["manager"] for entry in body["metadata"]["managedFields"]] == ["second"]


async def test_a_conflict_in_a_list_names_the_element(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"ports": [{"name": "a", "port": 1}]}), "first")
    answer = await api.apply(path, widget("one", {"ports": [{"name": "a", "port": 2}]}), "second")
    assert answer.causes == [("FieldManagerConflict", '.spec.ports[name="a"].port', 'conflict with "first"')]


async def test_fields_without_a_schema_are_owned_one_by_one(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"free": {"a": {"b": 1}, "list": [1, 2]}}), "first")
    body = (await api.apply(path, widget("one", {"free": {"a": {"c": 2}}}), "second")).made
    assert body["spec"]["free"] == {"a": {"b": 1, "c": 2}, "list": [1, 2]}


async def test_containers_merge_by_name(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/one"
    assert (await api.apply(path, deployment("one"), "first")).status == 201
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "one"},
        "spec": {"template": {"spec": {"containers": [{"name": "side", "image": "side:1"}]}}},
    }
    body = (await api.apply(path, patch, "second")).made
    names = [container["name"] for container in body["spec"]["template"]["spec"]["containers"]]
    assert sorted(names) == ["main", "side"]


async def test_service_ports_merge_by_port_and_protocol(api: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/services/one"
    first = service("one", ports=[{"name": "a", "port": 80, "protocol": "TCP"}])
    second = service("one", ports=[{"name": "b", "port": 80, "protocol": "UDP"}])
    assert (await api.apply(path, first, "first")).status == 201
    body = (await api.apply(path, second, "second")).made
    assert {(port["port"], port["protocol"]) for port in body["spec"]["ports"]} == {(80, "TCP"), (80, "UDP")}


async def test_apply_to_status_leaves_the_spec_alone(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/one"
    await api.apply(path, widget("one", {"size": 1}), "writer")
    status = {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": "one"},
        "spec": {"size": 5},
        "status": {"phase": "Ready", "conditions": [{"type": "Ready", "status": "True"}]},
    }
    body = (await api.apply(f"{path}/status", status, "controller")).made
    assert body["spec"] == {"size": 1}
    assert body["status"]["phase"] == "Ready"
    entries = {entry["manager"]: entry for entry in body["metadata"]["managedFields"]}
    assert entries["controller"]["subresource"] == "status"
    assert entries["controller"]["fieldsV1"] == {
        "f:status": {
            "f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}, "f:type": {}}},
            "f:phase": {},
        }
    }


async def test_apply_to_the_status_of_nothing_is_not_found(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/missing/status"
    answer = await api.apply(path, widget("missing"))
    assert answer.body == not_found("widgets", "missing", GROUP)


async def test_a_dry_run_of_apply_creates_nothing(api: Api, namespace: str) -> None:
    answer = await api.apply(f"{maps(namespace)}/one", configmap("one"), dryRun="All")
    assert answer.status == 201
    assert (await api.get(f"{maps(namespace)}/one")).status == 404


@pytest.mark.parametrize("stale", [True, False])
async def test_apply_may_name_the_version_it_is_for(api: Api, namespace: str, stale: bool) -> None:
    path = f"{maps(namespace)}/one"
    first = (await api.apply(path, configmap("one", {"a": "1"}))).made
    if stale:
        await api.merge(path, {"data": {"b": "2"}})
    version = first["metadata"]["resourceVersion"]
    answer = await api.apply(path, configmap("one", {"a": "3"}, resourceVersion=version))
    assert answer.status == (409 if stale else 200)
