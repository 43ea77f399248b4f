"""OpenAPI v3: what `kubectl explain` and client-side validation read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.kinds import GROUP
from conformance.wire import eventually

if TYPE_CHECKING:
    from conformance.wire import Api, Object

PATHS = [
    "api/v1",
    "apis/apps/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/coordination.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/admissionregistration.k8s.io/v1",
]


async def document(api: Api, path: str) -> Object:
    async def indexed() -> bool:
        return path in (await api.get("/openapi/v3")).made["paths"]

    await eventually(indexed, f"{path} is in the index")
    index = (await api.get("/openapi/v3")).made["paths"]
    relative, _, digest = index[path]["serverRelativeURL"].partition("?hash=")
    assert relative == f"/openapi/v3/{path}"
    body: Object = (await api.get(relative, hash=digest)).made
    return body


@pytest.mark.parametrize("path", PATHS)
async def test_the_index_names_a_document_for_each_version(api: Api, path: str) -> None:
    body = await document(api, path)
    assert body["openapi"].startswith("3.0")
    assert body["components"]["schemas"]


def by_kind(body: Object, kind: str) -> Object:
    for schema in body["components"]["schemas"].values():
        for item in schema.get("x-kubernetes-group-version-kind", []):
            if item["kind"] == kind:
                found: Object = schema
                return found
    raise AssertionError(f"no schema for {kind}")


@pytest.mark.parametrize(
    ("path", "kind", "fields"),
    [
        ("api/v1", "ConfigMap", {"apiVersion", "kind", "metadata", "data", "binaryData", "immutable"}),
        ("api/v1", "Secret", {"apiVersion", "kind", "metadata", "data", "stringData", "type", "immutable"}),
        ("api/v1", "Service", {"apiVersion", "kind", "metadata", "spec", "status"}),
        ("apis/apps/v1", "Deployment", {"apiVersion", "kind", "metadata", "spec", "status"}),
        (
            "apis/rbac.authorization.k8s.io/v1",
            "RoleBinding",
            {"apiVersion", "kind", "metadata", "roleRef", "subjects"},
        ),
    ],
)
async def test_a_built_in_kind_is_described(api: Api, path: str, kind: str, fields: set[str]) -> None:
    schema = by_kind(await document(api, path), kind)
    assert set(schema["properties"]) == fields


async def test_a_custom_kind_is_described_as_it_was_defined(api: Api, widgets: str) -> None:
    body = await document(api, f"apis/{GROUP}/v1")
    schema = by_kind(body, "Widget")
    assert schema["x-kubernetes-group-version-kind"] == [{"group": GROUP, "version": "v1", "kind": "Widget"}]
    assert set(schema["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    spec = schema["properties"]["spec"]["properties"]
    assert spec["size"] == {"type": "integer"}
    assert spec["ports"]["x-kubernetes-list-type"] == "map"
    assert spec["ports"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["free"]["x-kubernetes-preserve-unknown-fields"] is True
    assert "com.example.conformance.v1.Widget" in body["components"]["schemas"]
    assert "com.example.conformance.v1.WidgetList" in body["components"]["schemas"]


async def test_the_paths_of_a_custom_kind_are_listed(api: Api, widgets: str) -> None:
    body = await document(api, f"apis/{GROUP}/v1")
    one = f"/apis/{GROUP}/v1/namespaces/{{namespace}}/widgets/{{name}}"
    assert {f"/apis/{GROUP}/v1/widgets", one, f"{one}/status", f"{one}/scale"} <= set(body["paths"])
    assert {"get", "put", "patch", "delete"} <= set(body["paths"][one])
    assert body["paths"][one]["patch"]["x-kubernetes-action"] == "patch"
    assert body["paths"][one]["get"]["x-kubernetes-group-version-kind"] == {
        "group": GROUP,
        "version": "v1",
        "kind": "Widget",
    }


async def test_patches_say_that_they_validate_fields(api: Api) -> None:
    """What kubectl looks for before it asks the server to validate."""
    body = await document(api, "api/v1")
    parameters = body["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]["parameters"]
    assert {"fieldValidation", "fieldManager", "force", "dryRun"} <= {parameter["name"] for parameter in parameters}


async def test_an_unknown_document_is_not_found(api: Api) -> None:
    assert (await api.get("/openapi/v3/apis/unknown.example.com/v1")).status == 404
