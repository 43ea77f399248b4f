"""Status and scale: two doors into one object, each for its own part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, deployment, gadget, widget
from conformance.wire import JSON_PATCH, failure, invalid, not_found

if TYPE_CHECKING:
    from conformance.wire import Api


async def a_widget(api: Api, namespace: str, widgets: str) -> str:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 1, "replicas": 2}))).made
    assert "status" not in created
    return f"{path}/one"


async def test_status_is_dropped_on_create(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one") | {"status": {"phase": "Done"}})).made
    assert "status" not in created


async def test_status_is_ignored_by_a_replace(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    await api.merge(f"{path}/status", {"status": {"phase": "Done"}})
    body = (await api.get(path)).body
    body["status"] = {"phase": "Changed"}
    body["spec"]["size"] = 2
    answer = (await api.put(path, body)).made
    assert answer["spec"]["size"] == 2
    assert answer["status"] == {"phase": "Done"}


async def test_status_is_ignored_by_a_patch(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    before = (await api.get(path)).body
    assert (await api.merge(path, {"status": {"phase": "Done"}})).made == before


async def test_spec_and_metadata_are_ignored_by_a_status_write(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    body = (await api.get(path)).body
    body["spec"]["size"] = 9
    body["metadata"]["labels"] = {"a": "b"}
    body["metadata"]["annotations"] = {"a": "b"}
    body["metadata"]["finalizers"] = ["example.com/f"]
    body["status"] = {"phase": "Done"}
    answer = (await api.put(f"{path}/status", body)).made
    assert answer["spec"]["size"] == 1
    assert answer["status"] == {"phase": "Done"}
    assert not {"labels", "annotations", "finalizers"} & set(answer["metadata"])


async def test_a_status_write_keeps_the_generation(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    before = (await api.get(path)).body["metadata"]
    after = (await api.merge(f"{path}/status", {"status": {"phase": "Done"}})).made["metadata"]
    assert after["generation"] == before["generation"] == 1
    assert after["resourceVersion"] != before["resourceVersion"]


async def test_a_status_write_that_changes_nothing_writes_nothing(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    first = (await api.merge(f"{path}/status", {"status": {"phase": "Done"}})).made
    assert (await api.merge(f"{path}/status", {"status": {"phase": "Done"}})).made == first


async def test_status_can_be_read_alone_and_is_the_whole_object(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    assert (await api.get(f"{path}/status")).made == (await api.get(path)).body


async def test_status_is_validated(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    answer = await api.merge(f"{path}/status", {"status": {"phase": 5}})
    assert answer.body == invalid(
        "Widget",
        "one",
        (
            "FieldValueTypeInvalid",
            "status.phase",
            'Invalid value: "integer": phase in body must be of type string: "integer"',
        ),
        group=GROUP,
    )


async def test_status_is_patched_by_json_patch(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    operations = [{"op": "add", "path": "/status", "value": {"phase": "Done"}}]
    assert (await api.patch(f"{path}/status", operations, JSON_PATCH)).made["status"] == {"phase": "Done"}


async def test_a_stale_status_write_conflicts(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    stale = (await api.get(path)).body
    await api.merge(path, {"spec": {"size": 5}})
    answer = await api.put(f"{path}/status", stale | {"status": {"phase": "Done"}})
    assert answer.body == failure(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on widgets.{GROUP} "one": the object has been modified; please apply your '
        "changes to the latest version and try again",
        name="one",
        group=GROUP,
        kind="widgets",
    )


async def test_the_status_of_nothing_is_not_found(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets/missing/status"
    assert (await api.merge(path, {"status": {}})).body == not_found("widgets", "missing", GROUP)


async def test_a_kind_without_status_has_no_such_door(api: Api, namespace: str, gadgets: str) -> None:
    path = f"{gadgets}/namespaces/{namespace}/gadgets"
    await api.post(path, gadget("one", {"name": "abc"}))
    answer = await api.get(f"{path}/one/status")
    assert answer.body == not_found("gadgets", "one", GROUP)


async def test_a_deployments_status_is_apart(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    created = (await api.post(path, deployment("one") | {"status": {"replicas": 5}})).made
    assert created["status"] == {}
    assert created["metadata"]["generation"] == 1
    body = {"status": {"replicas": 1, "observedGeneration": 1}, "spec": {"replicas": 9}}
    changed = (await api.merge(f"{path}/one/status", body)).made
    assert changed["status"] == {"replicas": 1, "observedGeneration": 1}
    assert changed["spec"]["replicas"] == 1
    assert changed["metadata"]["generation"] == 1


async def test_a_deployment_has_a_scale(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    created = (await api.post(path, deployment("one", replicas=3))).made["metadata"]
    assert (await api.get(f"{path}/one/scale")).made == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "one",
            "namespace": namespace,
            "uid": created["uid"],
            "resourceVersion": created["resourceVersion"],
            "creationTimestamp": created["creationTimestamp"],
        },
        "spec": {"replicas": 3},
        "status": {"replicas": 0, "selector": "app=one"},
    }


async def test_scaling_changes_the_spec(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.post(path, deployment("one", replicas=3))
    scaled = (await api.merge(f"{path}/one/scale", {"spec": {"replicas": 5}})).made
    assert scaled["spec"] == {"replicas": 5}
    body = (await api.get(f"{path}/one")).body
    assert body["spec"]["replicas"] == 5
    assert body["metadata"]["generation"] == 2
    scaled["spec"]["replicas"] = 0
    assert (await api.put(f"{path}/one/scale", scaled)).made["spec"] == {}
    assert (await api.get(f"{path}/one")).body["spec"]["replicas"] == 0


async def test_a_negative_scale_is_refused(api: Api, namespace: str) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    await api.post(path, deployment("one"))
    answer = await api.merge(f"{path}/one/scale", {"spec": {"replicas": -1}})
    assert answer.causes == [
        ("FieldValueInvalid", "spec.replicas", "Invalid value: -1: must be greater than or equal to 0")
    ]
    assert answer.status == 422


async def test_a_custom_resource_has_a_scale(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    await api.merge(f"{path}/status", {"status": {"replicas": 1, "selector": "a=b"}})
    metadata = (await api.get(path)).body["metadata"]
    assert (await api.get(f"{path}/scale")).made == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": "one",
            "namespace": namespace,
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "a=b"},
    }


async def test_a_custom_resource_can_be_scaled(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    scale = (await api.get(f"{path}/scale")).body
    scale["spec"]["replicas"] = 7
    assert (await api.put(f"{path}/scale", scale)).made["spec"] == {"replicas": 7}
    body = (await api.get(path)).body
    assert body["spec"]["replicas"] == 7
    assert body["metadata"]["generation"] == 2
    assert (await api.merge(f"{path}/scale", {"spec": {"replicas": 8}})).made["spec"] == {"replicas": 8}


async def test_a_stale_scale_conflicts(api: Api, namespace: str, widgets: str) -> None:
    path = await a_widget(api, namespace, widgets)
    stale = (await api.get(f"{path}/scale")).body
    await api.merge(path, {"spec": {"size": 5}})
    stale["spec"]["replicas"] = 9
    answer = await api.put(f"{path}/scale", stale)
    assert (answer.status, answer.body["reason"]) == (409, "Conflict")


@pytest.mark.parametrize("subresource", ["status", "scale"])
async def test_a_subresource_cannot_be_deleted(api: Api, namespace: str, widgets: str, subresource: str) -> None:
    path = await a_widget(api, namespace, widgets)
    answer = await api.delete(f"{path}/{subresource}")
    assert answer.status == 405
    assert answer.body["reason"] == "MethodNotAllowed"
