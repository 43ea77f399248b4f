"""Paths and scopes: rights in one namespace say nothing about objects outside it.

RBAC reads the namespace from the path. A path that names a namespace in front of a kind that has none
(CVE-2019-11247) would be authorised there and executed on the whole cluster, so there is no such path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yarl

from conformance.kinds import GROUP, configmap, widget
from conformance.test_access import RBAC, allow, can, subject
from conformance.wire import APPLY_PATCH, JSON, JSON_PATCH, MERGE_PATCH, eventually, failure

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from conformance.wire import Answer, Api

NOT_A_PAGE = "404 page not found\n"
NO_SUCH_RESOURCE = failure(404, "NotFound", "the server could not find the requested resource") | {"details": {}}
NOT_ALLOWED = failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource") | {
    "details": {}
}
REQUESTS = [
    ("GET", "", JSON),
    ("POST", "", JSON),
    ("DELETE", "", JSON),
    ("GET", "/victim", JSON),
    ("HEAD", "/victim", JSON),
    ("PUT", "/victim", JSON),
    ("PATCH", "/victim", MERGE_PATCH),
    ("PATCH", "/victim", JSON_PATCH),
    ("PATCH", "/victim", APPLY_PATCH),
    ("DELETE", "/victim", JSON),
    ("GET", "/victim/status", JSON),
    ("PUT", "/victim/status", JSON),
    ("PATCH", "/victim/status", MERGE_PATCH),
    ("PUT", "/victim/finalize", JSON),
    ("GET", "/victim/scale", JSON),
]


@pytest.fixture
async def master_of_one(api: Api, namespace: str) -> Api:
    """A user who may do everything in one namespace and nothing elsewhere."""
    binding = {
        "metadata": {"name": "master"},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject("jane")],
    }
    assert (await api.post(f"{RBAC}/namespaces/{namespace}/rolebindings", binding)).status == 201
    jane = api.acting_as("jane")
    await can(jane, namespace, "delete", "secrets")
    return jane


@pytest.fixture
async def cluster_kinds(api: Api, unique: str) -> AsyncIterator[str]:
    """Custom kinds outside namespaces, one of them called `namespaces`; gives their group."""
    group = f"scopes-{unique}.example.com"
    for plural, kind in (("planets", "Planet"), ("namespaces", "Namespace")):
        definition = {
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {
                "group": group,
                "scope": "Cluster",
                "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                    }
                ],
            },
        }
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await api.post(path, definition)).status == 201

    async def served() -> bool:
        answers = [await api.get(f"/apis/{group}/v1/{plural}") for plural in ("planets", "namespaces")]
        return all(answer.status == 200 for answer in answers)

    await eventually(served, "the definitions are served")
    yield group
    for plural in ("planets", "namespaces"):
        await api.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.{group}")


async def cluster_scoped(api: Api) -> list[str]:
    """`/api/v1/{}namespaces` and its like: every built-in kind that is in no namespace, as the server says itself."""
    groups = (await api.get("/apis")).made["groups"]
    roots = ["/api/v1", *(f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"])]
    found = []
    for root in roots:
        if "example.com" in root or "butlerlabs" in root:
            continue
        resources = (await api.get(root)).made["resources"]
        plurals = [
            resource["name"] for resource in resources if not resource["namespaced"] and "/" not in resource["name"]
        ]
        found += [f"{root}/{{}}{plural}" for plural in plurals]
    return found


async def ask(api: Api, method: str, path: str, content_type: str) -> Answer:
    query = {"fieldManager": "me"} if content_type == APPLY_PATCH else {}
    body: object = [] if content_type == JSON_PATCH else {"metadata": {"name": "victim"}}
    return await api.call(method, path, None if method in ("GET", "HEAD") else body, content_type=content_type, **query)


async def test_a_kind_outside_namespaces_has_no_path_inside_one(api: Api, master_of_one: Api, namespace: str) -> None:
    kinds = await cluster_scoped(api)
    assert {f"/api/v1/{{}}{plural}" for plural in ("namespaces", "nodes", "persistentvolumes")} <= set(kinds)
    assert len(kinds) > 12
    for kind in kinds:
        for method, suffix, content_type in REQUESTS:
            path = kind.format(f"namespaces/{namespace}/") + suffix
            for user in (api, master_of_one):
                answer = await ask(user, method, path, content_type)
                assert answer.status == 404, (method, path, answer.text)
                if method != "HEAD":
                    assert answer.body == NO_SUCH_RESOURCE, (method, path)


@pytest.mark.parametrize("plural", ["planets", "namespaces"])
async def test_a_custom_kind_outside_namespaces_has_no_path_inside_one(
    api: Api, master_of_one: Api, namespace: str, cluster_kinds: str, plural: str
) -> None:
    root = f"/apis/{cluster_kinds}/v1"
    for method, suffix, content_type in REQUESTS:
        for user in (api, master_of_one):
            path = f"{root}/namespaces/{namespace}/{plural}{suffix}"
            answer = await ask(user, method, path, content_type)
            assert answer.status == 404, (method, path, answer.text)
            if method != "HEAD":
                assert answer.text == NOT_A_PAGE, (method, path)


async def test_a_custom_kind_called_namespaces_has_no_objects_that_a_namespace_governs(
    api: Api, master_of_one: Api, namespace: str, cluster_kinds: str
) -> None:
    path = f"/apis/{cluster_kinds}/v1/namespaces"
    body = {"apiVersion": f"{cluster_kinds}/v1", "kind": "Namespace", "metadata": {"name": namespace}}
    assert (await api.post(path, body)).status == 201
    for suffix in ("", "/status"):
        for method in ("GET", "DELETE") if not suffix else ("GET",):
            answer = await master_of_one.call(method, f"{path}/{namespace}{suffix}")
            assert (answer.status, answer.text) == (404, NOT_A_PAGE), (method, suffix)
    assert len((await api.get(path)).made["items"]) == 1


async def test_rights_in_a_namespace_do_not_reach_other_namespaces(
    api: Api, master_of_one: Api, namespace: str, unique: str
) -> None:
    victim = f"victim-{unique}"
    assert (await api.post("/api/v1/namespaces", {"metadata": {"name": victim}})).status == 201
    inside = f"/api/v1/namespaces/{namespace}/namespaces"
    label = {"metadata": {"labels": {"taken": "over"}}}
    paths = [
        f"{inside}/{victim}",
        f"{inside}/{victim}/status",
        f"{inside}/{victim}/finalize",
        f"{inside}/{namespace}",  # not even the own one
        f"/api/v1/namespaces/{namespace}%2Fnamespaces%2F{victim}",
        f"/api/v1/namespaces%2F{namespace}/namespaces/{victim}",
        f"/api/v1/namespaces/{namespace}/status/{victim}",
        f"/api/v1/namespaces/{namespace}/finalize/{victim}",
    ]
    for path in paths:
        for user in (api, master_of_one):
            url = yarl.URL(user.url + path, encoded=True)
            for method in ("GET", "PUT", "PATCH", "DELETE"):
                headers = {**user.headers, "Content-Type": MERGE_PATCH if method == "PATCH" else JSON}
                data = None if method == "GET" else b'{"metadata":{"labels":{"taken":"over"}}}'
                async with user.session.request(method, url, headers=headers, data=data) as answer:
                    assert answer.status == 404, (method, path, await answer.text())
    for path in (f"/api/v1/namespaces/{victim}", f"/api/v1/namespaces/{victim}/status"):
        assert (await master_of_one.merge(path, label)).status == 403, path
    found = (await api.get(f"/api/v1/namespaces/{victim}")).made
    assert "taken" not in found["metadata"].get("labels", {})
    assert "deletionTimestamp" not in found["metadata"]
    await api.delete(f"/api/v1/namespaces/{victim}")


async def test_rights_in_a_namespace_govern_the_namespace_itself(master_of_one: Api, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    assert (await master_of_one.get(path)).status == 200
    assert (await master_of_one.get(f"{path}/status")).status == 200
    assert (await master_of_one.merge(path, {"metadata": {"labels": {"own": "label"}}})).status == 200
    assert (await master_of_one.merge(f"{path}/status", {"status": {}})).status == 200


@pytest.mark.parametrize("suffix", ["/one", "/one/status", "/one/scale"])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE"])
async def test_an_object_in_a_namespace_has_no_path_without_it(
    api: Api, namespace: str, widgets: str, method: str, suffix: str
) -> None:
    content_type = MERGE_PATCH if method == "PATCH" else JSON
    body = None if method in ("GET", "DELETE") else widget("one", namespace=namespace)
    answer = await api.call(method, f"{widgets}/widgets{suffix}", body, content_type=content_type)
    assert (answer.status, answer.text) == (404, NOT_A_PAGE)
    for path in (f"/apis/apps/v1/deployments{suffix}", f"/api/v1/services{suffix}"):
        answer = await api.call(method, path, body, content_type=content_type)
        assert (answer.status, answer.body) == (404, NO_SUCH_RESOURCE), path


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_nothing_is_created_or_deleted_across_namespaces(
    api: Api, namespace: str, widgets: str, method: str
) -> None:
    answer = await api.call(method, f"{widgets}/widgets", widget("one", namespace=namespace))
    assert (answer.status, answer.text) == (404, NOT_A_PAGE)
    answer = await api.call(method, "/api/v1/configmaps", configmap("one", namespace=namespace))
    assert (answer.status, answer.body) == (405, NOT_ALLOWED)


@pytest.mark.parametrize(
    "path",
    ["configmaps/one/status/more", "services/one/status/more", "pods/one/log/more", "serviceaccounts/one/token/more"],
)
async def test_a_path_that_goes_on_behind_a_subresource_leads_nowhere(api: Api, namespace: str, path: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{namespace}/{path}")
    assert (answer.status, answer.body) == (404, NO_SUCH_RESOURCE)


async def test_the_body_stays_in_the_namespace_of_the_url(api: Api, namespace: str, widgets: str, unique: str) -> None:
    elsewhere = "default"
    await allow(
        api,
        namespace,
        "jane",
        {"apiGroups": ["", GROUP], "resources": ["configmaps", "widgets"], "verbs": ["*"]},
    )
    jane = api.acting_as("jane")
    name = f"smuggled-{unique}"
    for path, body in (
        (f"/api/v1/namespaces/{namespace}/configmaps", configmap(name, namespace=elsewhere)),
        (f"{widgets}/namespaces/{namespace}/widgets", widget(name, namespace=elsewhere)),
    ):
        for answer in (
            await jane.post(path, body),
            await jane.put(f"{path}/{name}", body),
            await jane.apply(f"{path}/{name}", body),
        ):
            assert answer.status == 400, (path, answer.text)
            assert "namespace of the provided object does not match" in answer.body["message"]
        other = {**body, "metadata": {"name": "another"}}
        for answer in (await jane.put(f"{path}/{name}", other), await jane.apply(f"{path}/{name}", other)):
            assert answer.status == 400, (path, answer.text)
            assert "does not match the name on the URL" in answer.body["message"]
