"""OpenAPI documents: complete, closed under references, and what kubectl looks for in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kubeserver.builtin.catalog import builtin_resources
from kubeserver.resources import Resource, ScaleSubresource, Strategy
from kubeserver.schemas.builtin_types import builtin_types
from kubeserver.schemas.schema import parse
from kubeserver.views.openapi import document, empty_v2, index, to_openapi, type_name

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC = {
    "type": "object",
    "description": "What is wanted.",
    "required": ["s"],
    "properties": {
        "s": {"type": "string", "default": "x", "maxLength": 20, "pattern": "^[a-z]*$", "description": "A text."},
        "i": {"type": "integer", "format": "int32", "minimum": 0, "exclusiveMinimum": True, "maximum": 10},
        "e": {"type": "string", "enum": ["a", "b"]},
        "n": {"type": "string", "nullable": True},
        "l": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "k": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
        "m": {"type": "object", "additionalProperties": {"type": "integer"}, "x-kubernetes-map-type": "atomic"},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "ios": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
        "zero": {"type": "integer", "minimum": 0, "default": 0},
    },
    "x-kubernetes-validations": [{"rule": "self.s != 'no'", "message": "no no", "optionalOldSelf": True}],
}
THING = Resource(
    group="zoo.example.com",
    version="v1",
    plural="things",
    singular="thing",
    kind="Thing",
    namespaced=True,
    schema=parse({"type": "object", "description": "A thing.", "properties": {"spec": SPEC}}),
    list_kind="ThingList",
    status=True,
    scale=ScaleSubresource(".spec.i", ".status.i"),
    custom=True,
    strategy=Strategy(selectable={"spec.s": str}),
)


@pytest.fixture(scope="module")
def resources() -> list[Resource]:
    return [*builtin_resources(builtin_types().__getitem__), THING]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def made(group: str, version: str, resources: list[Resource]) -> dict[str, Any]:
    found = document(group, version, resources, builtin_types())
    assert found is not None
    return found


def test_the_index_names_every_group_and_version(resources: list[Resource]) -> None:
    found = index(resources, builtin_types())["paths"]
    assert set(found) == {
        f"apis/{resource.group}/{resource.version}" if resource.group else "api/v1" for resource in resources
    }
    assert found["apis/apps/v1"]["serverRelativeURL"].startswith("/openapi/v3/apis/apps/v1?hash=")


def test_the_hash_changes_with_the_document_and_with_nothing_else(resources: list[Resource]) -> None:
    before = index(resources, builtin_types())["paths"]
    other = Resource(
        group="zoo.example.com",
        version="v1",
        plural="cages",
        singular="cage",
        kind="Cage",
        namespaced=False,
        schema=parse({"type": "object"}),
        custom=True,
    )
    after = index([*resources, other], builtin_types())["paths"]
    assert {place for place in before if before[place] != after[place]} == {"apis/zoo.example.com/v1"}


def test_every_document_refers_only_to_itself(resources: list[Resource]) -> None:
    for group, version in {(resource.group, resource.version) for resource in resources}:
        found = made(group, version, resources)
        known = {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
        assert set(references(found)) <= known, (group, version)


def test_what_is_not_served_has_no_document(resources: list[Resource]) -> None:
    assert document("nowhere", "v1", resources, builtin_types()) is None


def test_a_custom_type_is_named_by_its_group_backwards() -> None:
    assert type_name(THING) == "com.example.zoo.v1.Thing"


def test_a_schema_comes_out_as_it_went_in() -> None:
    assert to_openapi(parse(SPEC)) == SPEC


def test_a_custom_resource_has_the_fields_that_every_object_has(resources: list[Resource]) -> None:
    thing = made("zoo.example.com", "v1", resources)["components"]["schemas"]["com.example.zoo.v1.Thing"]
    assert list(thing["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert thing["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    assert thing["description"] == "A thing."
    assert thing["x-kubernetes-group-version-kind"] == [{"group": "zoo.example.com", "kind": "Thing", "version": "v1"}]
    assert thing["x-kubernetes-selectable-fields"] == [{"fieldPath": "spec.s"}]


def test_an_embedded_resource_shows_its_metadata() -> None:
    schema = parse({"type": "object", "x-kubernetes-embedded-resource": True})
    assert set(to_openapi(schema)["properties"]) == {"apiVersion", "kind", "metadata"}


def test_a_built_in_field_keeps_its_own_facts_beside_its_type(resources: list[Resource]) -> None:
    schemas = made("apps", "v1", resources)["components"]["schemas"]
    assert schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"] == {
        "description": "How old pods are replaced by new ones.",
        "default": {},
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    }
    assert schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"] == {
        "description": "The containers, at least one; they run side by side.",
        "type": "array",
        "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"},
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "name",
        "x-kubernetes-patch-strategy": "merge",
    }


def test_types_may_contain_themselves(resources: list[Resource]) -> None:
    schemas = made("apiextensions.k8s.io", "v1", resources)["components"]["schemas"]
    name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    assert f"#/components/schemas/{name}" in set(references(schemas[name]))


def test_patch_takes_the_parameters_kubectl_looks_for(resources: list[Resource]) -> None:
    for resource in resources:
        if "patch" not in resource.verbs:
            continue
        found = made(resource.group, resource.version, resources)["paths"]
        gvk = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        patches = [
            value["patch"]
            for value in found.values()
            if "patch" in value and value["patch"]["x-kubernetes-group-version-kind"] == gvk
        ]
        assert patches, resource.plural
        for patch in patches:
            assert {"dryRun", "fieldManager", "fieldValidation", "force"} == {
                parameter["name"] for parameter in patch["parameters"]
            }
            strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
            assert strategic is not resource.custom


def test_a_namespaced_resource_has_these_paths(resources: list[Resource]) -> None:
    found = made("zoo.example.com", "v1", resources)["paths"]
    root = "/apis/zoo.example.com/v1"
    assert {path: sorted(set(item) - {"parameters"}) for path, item in found.items()} == {
        f"{root}/namespaces/{{namespace}}/things": ["delete", "get", "post"],
        f"{root}/namespaces/{{namespace}}/things/{{name}}": ["delete", "get", "patch", "put"],
        f"{root}/namespaces/{{namespace}}/things/{{name}}/scale": ["get", "patch", "put"],
        f"{root}/namespaces/{{namespace}}/things/{{name}}/status": ["get", "patch", "put"],
        f"{root}/things": ["get"],
    }
    identities = [
        operation["operationId"]
        for item in found.values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(identities) == len(set(identities))
    assert "listZooExampleComV1ThingForAllNamespaces" in identities
    assert "deleteZooExampleComV1CollectionNamespacedThing" in identities


def test_kinds_that_are_only_created_have_one_path(resources: list[Resource]) -> None:
    found = made("authorization.k8s.io", "v1", resources)["paths"]
    review = found["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"]
    assert set(review) == {"post", "parameters"}


def test_the_old_form_is_empty_but_readable() -> None:
    body, content_type = empty_v2("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
    assert content_type == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert body == b"\n\x032.0\x12\x10\n\nkubeserver\x12\x02v1"
    body, content_type = empty_v2("application/json")
    assert content_type == "application/json"
    assert b'"swagger":"2.0"' in body
