"""Replacing whole objects: versions, what may not change, generations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP, configmap, widget
from conformance.wire import failure, invalid, not_found

if TYPE_CHECKING:
    from conformance.wire import Api, Object

CHANGED = "the object has been modified; please apply your changes to the latest version and try again"


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def made(api: Api, namespace: str) -> Object:
    created: Object = (await api.post(maps(namespace), configmap("one", {"a": "1"}))).made
    return created


async def test_a_replace_keeps_identity_and_takes_content(api: Api, namespace: str) -> None:
    created = await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", {"b": "2"}, labels={"x": "y"}))
    assert answer.status == 200
    for field in ("uid", "creationTimestamp"):
        assert answer.body["metadata"][field] == created["metadata"][field]
    assert answer.body["data"] == {"b": "2"}
    assert answer.body["metadata"]["labels"] == {"x": "y"}
    assert int(answer.body["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


async def test_a_stale_version_conflicts(api: Api, namespace: str) -> None:
    created = await made(api, namespace)
    await api.merge(f"{maps(namespace)}/one", {"data": {"a": "2"}})
    answer = await api.put(f"{maps(namespace)}/one", created)
    assert answer.body == failure(
        409,
        "Conflict",
        f'Operation cannot be fulfilled on configmaps "one": {CHANGED}',
        name="one",
        kind="configmaps",
    )


async def test_a_built_in_needs_no_version(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", {"b": "2"}))
    assert answer.status == 200


async def test_a_custom_resource_needs_a_version(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    await api.post(path, widget("one"))
    answer = await api.put(f"{path}/one", widget("one", {"size": 2}))
    # The resource, not the kind: the storage says this, not the validation.
    assert answer.body == invalid(
        "widgets",
        "one",
        (
            "FieldValueInvalid",
            "metadata.resourceVersion",
            "Invalid value: 0: must be specified for an update",
        ),
        group=GROUP,
    )


async def test_a_replace_does_not_create(api: Api, namespace: str) -> None:
    answer = await api.put(f"{maps(namespace)}/missing", configmap("missing"))
    assert answer.status == 404
    assert answer.body == not_found("configmaps", "missing")


async def test_a_lease_can_be_created_by_replace(api: Api, namespace: str) -> None:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/new"
    answer = await api.put(path, {"metadata": {"name": "new"}, "spec": {"holderIdentity": "me"}})
    assert answer.status == 201
    assert answer.body["spec"]["holderIdentity"] == "me"


async def test_the_name_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("two"))
    assert answer.body == failure(
        400, "BadRequest", "the name of the object (two) does not match the name on the URL (one)"
    )


async def test_the_name_must_be_in_the_body(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", {"data": {}})
    assert answer.body == failure(
        400,
        "BadRequest",
        "the name of the object (one based on URL) was undeterminable: name must be provided",
    )


async def test_the_namespace_must_be_that_of_the_path(api: Api, namespace: str) -> None:
    await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", namespace="other"))
    assert answer.body == failure(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    )


async def test_another_uid_conflicts(api: Api, namespace: str) -> None:
    uid = (await made(api, namespace))["metadata"]["uid"]
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", uid="other"))
    message = answer.body["message"]
    assert answer.body == failure(409, "Conflict", message, name="one", kind="configmaps")
    # Between the two stands the key of the object in etcd, which is an internal detail.
    assert message.startswith('Operation cannot be fulfilled on configmaps "one": ')
    assert message.endswith(f"Precondition failed: UID in precondition: other, UID in object meta: {uid}")


@pytest.mark.parametrize(
    "metadata",
    [
        {"creationTimestamp": "2001-01-01T00:00:00Z"},
        {"generation": 77},
        {"selfLink": "/somewhere"},
    ],
    ids=lambda metadata: next(iter(metadata)),
)
async def test_the_servers_metadata_cannot_be_changed(api: Api, namespace: str, metadata: Object) -> None:
    created = await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", {"a": "1"}, **metadata))
    assert answer.status == 200
    assert answer.body["metadata"].get("creationTimestamp") == created["metadata"]["creationTimestamp"]
    assert not {"deletionTimestamp", "selfLink"} & set(answer.body["metadata"])


async def test_a_deletion_cannot_be_made_up(api: Api, namespace: str) -> None:
    await made(api, namespace)
    when = "2001-01-01T00:00:00Z"
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", deletionTimestamp=when))
    assert answer.body == invalid(
        "ConfigMap",
        "one",
        ("FieldValueInvalid", "metadata.deletionTimestamp", f'Invalid value: "{when}": field is immutable'),
    )


async def test_a_replace_that_changes_nothing_writes_nothing(api: Api, namespace: str) -> None:
    created = await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", created)
    assert answer.status == 200
    assert answer.body == created


async def test_a_spec_change_raises_the_generation(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 1}))).made
    created["spec"]["size"] = 2
    changed = (await api.put(f"{path}/one", created)).made
    assert changed["metadata"]["generation"] == 2


async def test_a_metadata_change_keeps_the_generation(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 1}))).made
    created["metadata"]["labels"] = {"a": "b"}
    created["metadata"]["annotations"] = {"a": "b"}
    changed = (await api.put(f"{path}/one", created)).made
    assert changed["metadata"]["generation"] == 1


async def test_a_client_cannot_set_the_generation(api: Api, namespace: str, widgets: str) -> None:
    path = f"{widgets}/namespaces/{namespace}/widgets"
    created = (await api.post(path, widget("one", {"size": 1}, generation=9))).made
    assert created["metadata"]["generation"] == 1
    created["metadata"]["generation"] = 9
    changed = (await api.put(f"{path}/one", created)).made
    assert changed["metadata"]["generation"] == 1


async def test_without_a_status_subresource_every_field_counts(api: Api, namespace: str, gadgets: str) -> None:
    path = f"{gadgets}/namespaces/{namespace}/gadgets"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "one"}, "spec": {"name": "abc"}}
    created = (await api.post(path, body)).made
    assert created["metadata"]["generation"] == 1
    created["spec"]["count"] = 3
    assert (await api.put(f"{path}/one", created)).made["metadata"]["generation"] == 2


async def test_a_dry_run_of_a_replace_changes_nothing(api: Api, namespace: str) -> None:
    created = await made(api, namespace)
    answer = await api.put(f"{maps(namespace)}/one", configmap("one", {"b": "2"}), dryRun="All")
    assert answer.made["data"] == {"b": "2"}
    assert (await api.get(f"{maps(namespace)}/one")).body == created
