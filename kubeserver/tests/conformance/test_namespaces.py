"""The life of a namespace: what it has from the start, how it ends, what may not happen meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import configmap, widget
from conformance.wire import eventually, failure

if TYPE_CHECKING:
    from conformance.wire import Api


def maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public", "kube-node-lease"])
async def test_a_new_server_has_its_namespaces(api: Api, name: str) -> None:
    body = (await api.get(f"/api/v1/namespaces/{name}")).made
    assert body["status"] == {"phase": "Active"}


async def test_a_new_namespace_is_active_and_labelled(api: Api, unique: str) -> None:
    name = f"new-{unique}"
    body = (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).made
    assert body["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert body["spec"] == {"finalizers": ["kubernetes"]}
    assert body["status"] == {"phase": "Active"}
    assert "generation" not in body["metadata"]


async def test_the_name_label_comes_back(api: Api, namespace: str) -> None:
    patch = {"metadata": {"labels": {"kubernetes.io/metadata.name": None, "a": "b"}}}
    body = (await api.merge(f"/api/v1/namespaces/{namespace}", patch)).made
    assert body["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace, "a": "b"}


async def test_namespaces_are_selectable_by_phase(api: Api, namespace: str) -> None:
    active = (await api.get("/api/v1/namespaces", fieldSelector="status.phase=Active")).made
    assert namespace in {item["metadata"]["name"] for item in active["items"]}


async def test_a_namespace_gets_a_service_account(api: Api, namespace: str) -> None:
    async def there() -> bool:
        answer = await api.get(f"/api/v1/namespaces/{namespace}/serviceaccounts/default")
        return answer.status == 200

    await eventually(there, "the default service account appears")


async def test_deletion_empties_and_ends_a_namespace(api: Api, namespace: str, widgets: str) -> None:
    await api.post(maps(namespace), configmap("one"))
    await api.post(f"{widgets}/namespaces/{namespace}/widgets", widget("one"))
    answer = await api.delete(f"/api/v1/namespaces/{namespace}")
    assert answer.status == 200
    assert answer.body["kind"] == "Namespace"
    assert answer.body["status"]["phase"] == "Terminating"
    assert answer.body["metadata"]["deletionTimestamp"]

    async def ended() -> bool:
        return (await api.get(f"/api/v1/namespaces/{namespace}")).status == 404

    await eventually(ended, "the namespace ends")
    assert (await api.get(f"{maps(namespace)}/one")).status == 404
    assert (await api.get(f"{widgets}/namespaces/{namespace}/widgets/one")).status == 404


async def test_nothing_may_be_created_in_a_terminating_namespace(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("held", finalizers=["example.com/hold"]))
    await api.delete(f"/api/v1/namespaces/{namespace}")
    answer = await api.post(maps(namespace), configmap("new"))
    assert answer.body == failure(
        403,
        "Forbidden",
        f'configmaps "new" is forbidden: unable to create new content in namespace {namespace} because it is being '
        "terminated",
        name="new",
        kind="configmaps",
        causes=[
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
        ],
    )
    await api.merge(f"{maps(namespace)}/held", {"metadata": {"finalizers": None}})

    async def ended() -> bool:
        return (await api.get(f"/api/v1/namespaces/{namespace}")).status == 404

    await eventually(ended, "the namespace ends once its content has")


async def test_a_terminating_namespace_says_what_remains(api: Api, namespace: str) -> None:
    await api.post(maps(namespace), configmap("held", finalizers=["example.com/hold"]))
    await api.delete(f"/api/v1/namespaces/{namespace}")

    async def explained() -> bool:
        status = (await api.get(f"/api/v1/namespaces/{namespace}")).body["status"]
        conditions = {condition["type"]: condition for condition in status.get("conditions", [])}
        remaining = conditions.get("NamespaceFinalizersRemaining", {})
        return bool(
            remaining.get("status") == "True"
            and remaining["reason"] == "SomeFinalizersRemain"
            and remaining["message"]
            == "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
            and conditions["NamespaceContentRemaining"]["message"]
            == "Some resources are remaining: configmaps. has 1 resource instances"
        )

    await eventually(explained, "the conditions say what remains")
    await api.merge(f"{maps(namespace)}/held", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_cannot_be_deleted(api: Api, name: str) -> None:
    answer = await api.delete(f"/api/v1/namespaces/{name}")
    assert answer.body == failure(
        403,
        "Forbidden",
        f'namespaces "{name}" is forbidden: this namespace may not be deleted',
        name=name,
        kind="namespaces",
    )


async def test_namespaces_are_deleted_one_by_one(api: Api) -> None:
    answer = await api.delete("/api/v1/namespaces")
    assert answer.status == 405
    assert answer.body["reason"] == "MethodNotAllowed"
