"""The OpenAPI v3 documents: one per group and version, and an index that names them.

`kubectl explain` prints them, `kubectl apply` looks in them for how to merge lists and for whether the server
understands `fieldValidation`, and editors complete from them. The types come from the same `Schema` nodes that
validate objects, so a document cannot promise what the server refuses. The paths are in `openapi_paths.py`.

A document refers to nothing outside itself. The index carries a hash of each document's content in its address:
a client that has seen a hash need not ask again. All functions are pure, so encoded results can be kept for as
long as the set of resources stays the same.

OpenAPI v2 is served as an empty document. kubectl still asks for it (as protobuf) when a file holds a `kind: List`,
and fails if there is none; finding nothing in it, it leaves validation to the server, which does it better.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubeserver.schemas.builtin_descriptions import NO_DESCRIPTIONS, Descriptions, read_table
from kubeserver.schemas.schema import MISSING, Schema
from kubeserver.views.openapi_paths import PATCH, SCALE, paths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kubeserver.resources import Resource
    from kubeserver.schemas.schema import ValidationRule

Json = dict[str, Any]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_OBJECT_META: Final = f"{_META}.ObjectMeta"
_LIST_META: Final = f"{_META}.ListMeta"
_NEEDED_FOR: Final = {
    "list": (_LIST_META,),
    "delete": (f"{_META}.DeleteOptions", f"{_META}.Status"),
    "deletecollection": (f"{_META}.DeleteOptions", f"{_META}.Status"),
}

_V2_PROTOBUF: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_TITLE: Final = "kubeserver"

_API_VERSION: Final[Json] = {
    "description": "Which group and version of the API this object is written in, such as apps/v1.",
    "type": "string",
}
_KIND: Final[Json] = {
    "description": "Which kind of object this is, in CamelCase. It never changes.",
    "type": "string",
}


def type_name(resource: Resource) -> str:
    """The name of a resource's type in a document: `com.example.v1.Widget`."""
    if resource.custom or not resource.schema.name:
        return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])
    return resource.schema.name


def index(resources: Iterable[Resource], types: Mapping[str, Schema]) -> Json:
    """`/openapi/v3`: where each document is."""
    served: dict[tuple[str, str], list[Resource]] = {}
    for resource in resources:
        served.setdefault((resource.group, resource.version), []).append(resource)
    found = {}
    for (group, version), listed in sorted(served.items()):
        place = f"apis/{group}/{version}" if group else f"api/{version}"
        found[place] = {"serverRelativeURL": f"/openapi/v3/{place}?hash={_hash(tuple(listed), _Types(types))}"}
    return {"paths": found}


class _Types:
    """The named types, as an argument to remember by: there is one table of them per process."""

    def __init__(self, types: Mapping[str, Schema]) -> None:
        self.types = types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Types) and other.types is self.types

    def __hash__(self) -> int:
        return id(self.types)


@lru_cache(maxsize=256)
def _hash(resources: tuple[Resource, ...], types: _Types) -> str:
    body = msgspec.json.encode(_document(list(resources), types.types))
    return hashlib.sha512(body).hexdigest().upper()


def document(group: str, version: str, resources: Iterable[Resource], types: Mapping[str, Schema]) -> Json | None:
    """`/openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`; None if nothing of it is served."""
    listed = [resource for resource in resources if (resource.group, resource.version) == (group, version)]
    return _document(listed, types) if listed else None


def _document(resources: list[Resource], types: Mapping[str, Schema]) -> Json:
    custom = all(entry.custom for entry in resources)
    names = {resource: type_name(resource) for resource in resources}
    return {
        "openapi": "3.0.0",
        "info": {"title": f"{_TITLE} custom resources" if custom else _TITLE, "version": "v1"},
        "paths": {path: item for resource in resources for path, item in paths(resource, names[resource]).items()},
        "components": {"schemas": dict(sorted(_schemas(names, types).items()))},
    }


def _schemas(names: dict[Resource, str], types: Mapping[str, Schema]) -> Json:
    writer = _Writer(types, Descriptions(read_table()))
    found: Json = {}
    for resource, name in names.items():
        body = _custom_root(resource.schema, writer) if resource.custom else writer.body(resource.schema)
        found[name] = {**body, "x-kubernetes-group-version-kind": [_gvk(resource, resource.kind)]}
        if selectable := resource.strategy.selectable if resource.custom else None:
            found[name]["x-kubernetes-selectable-fields"] = [{"fieldPath": text} for text in selectable]
        if "list" in resource.verbs:
            list_kind = resource.list_kind or f"{resource.kind}List"
            found[f"{name.rpartition('.')[0]}.{list_kind}"] = _list_type(resource, name, list_kind)
        for needed in (text for verb in resource.verbs for text in _NEEDED_FOR.get(verb, ())):
            writer.refer(needed)
        if "patch" in resource.verbs:
            found[PATCH] = {"description": "A change, in one of the forms of a patch.", "type": "object"}
        if resource.scale:
            writer.refer(SCALE)
    while writer.wanted:
        name = writer.wanted.pop()
        if name not in found and name in types:
            found[name] = writer.body(types[name])
    if SCALE in found:
        found[SCALE]["x-kubernetes-group-version-kind"] = [{"group": "autoscaling", "kind": "Scale", "version": "v1"}]
    return found


def _gvk(resource: Resource, kind: str) -> Json:
    return {"group": resource.group, "kind": kind, "version": resource.version}


def _list_type(resource: Resource, name: str, list_kind: str) -> Json:
    return {
        "description": f"{list_kind} is a list of {resource.kind}.",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": _API_VERSION,
            "items": {
                "description": f"The {resource.plural} of the list.",
                "type": "array",
                "items": {"$ref": f"#/components/schemas/{name}"},
            },
            "kind": _KIND,
            "metadata": {
                **_described_ref(_LIST_META, "Metadata of the list."),
                **({} if resource.custom else {"default": {}}),
            },
        },
        "x-kubernetes-group-version-kind": [_gvk(resource, list_kind)],
    }


def _described_ref(name: str, description: str) -> Json:
    return {"description": description, "allOf": [{"$ref": f"#/components/schemas/{name}"}]}


def _custom_root(schema: Schema, writer: _Writer) -> Json:
    """A custom resource: what its author wrote, and the three fields every object has."""
    body = writer.body(schema)
    writer.refer(_OBJECT_META)
    body["type"] = "object"
    body["properties"] = dict(sorted({**body.get("properties", {}), **_object_fields()}.items()))
    return body


def _object_fields() -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": _KIND,
        "metadata": _described_ref(_OBJECT_META, "Name, labels, owners and all else that every object has."),
    }


def to_openapi(schema: Schema, types: Mapping[str, Schema] | None = None) -> Json:
    """A schema node as OpenAPI v3 JSON; named types inside it become references."""
    return _Writer(types or {}).node(schema)


_PLAIN: Final[tuple[tuple[str, str, Any], ...]] = (
    # attribute, key, and the value that says nothing
    ("description", "description", ""),
    ("type", "type", ""),
    ("format", "format", ""),
    ("nullable", "nullable", False),
    ("pattern", "pattern", ""),
    ("minimum", "minimum", None),
    ("exclusive_minimum", "exclusiveMinimum", False),
    ("maximum", "maximum", None),
    ("exclusive_maximum", "exclusiveMaximum", False),
    ("multiple_of", "multipleOf", None),
    ("min_length", "minLength", None),
    ("max_length", "maxLength", None),
    ("min_items", "minItems", None),
    ("max_items", "maxItems", None),
    ("unique_items", "uniqueItems", False),
    ("min_properties", "minProperties", None),
    ("max_properties", "maxProperties", None),
    ("preserve_unknown", "x-kubernetes-preserve-unknown-fields", False),
    ("embedded_resource", "x-kubernetes-embedded-resource", False),
    ("int_or_string", "x-kubernetes-int-or-string", False),
    ("list_type", "x-kubernetes-list-type", "atomic"),
    ("map_type", "x-kubernetes-map-type", "granular"),
    ("patch_merge_key", "x-kubernetes-patch-merge-key", ""),
)
# What a field may say about itself on top of the named type it has.
_OF_THE_FIELD: Final = frozenset({"description", "nullable", "patch_merge_key", "list_type", "map_type"})


class _Writer:
    """Writes nodes as JSON and remembers which named types they refer to."""

    def __init__(self, types: Mapping[str, Schema], descriptions: Descriptions = NO_DESCRIPTIONS) -> None:
        self._types = types
        self._descriptions = descriptions
        self._seen: set[str] = set()
        self.wanted: list[str] = []

    def refer(self, name: str) -> Json:
        if name not in self._seen:
            self._seen.add(name)
            self.wanted.append(name)
        return {"$ref": f"#/components/schemas/{name}"}

    def node(self, schema: Schema, description: str = "") -> Json:
        """A node where it is used: a reference if its type has a name."""
        said: Json = {"description": description} if description else {}
        named = self._types.get(schema.name) if schema.name else None
        if named is None:
            return said | self.body(schema)
        reference = self.refer(schema.name)
        if named is schema:
            return {**said, "allOf": [reference]} if said else reference
        extra: Json = said | {
            key: getattr(schema, attribute)
            for attribute, key, _ in _PLAIN
            if attribute in _OF_THE_FIELD and getattr(schema, attribute) != getattr(named, attribute)
        }
        if schema.default is not MISSING and schema.default is not named.default:
            extra["default"] = schema.default
        if schema.patch_strategy != named.patch_strategy:
            extra["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategy)
        return {**extra, "allOf": [reference]}

    def body(self, schema: Schema) -> Json:
        """A node in full."""
        text = self._descriptions.of_type(schema.name)
        found: Json = {"description": text} if text else {}
        found |= {key: value for attribute, key, empty in _PLAIN if (value := getattr(schema, attribute)) != empty}
        if schema.default is not MISSING:
            found["default"] = schema.default
        if schema.enum:
            found["enum"] = list(schema.enum)
        if schema.required:
            found["required"] = list(schema.required)
        if schema.list_map_keys:
            found["x-kubernetes-list-map-keys"] = list(schema.list_map_keys)
        if schema.patch_strategy:
            found["x-kubernetes-patch-strategy"] = ",".join(schema.patch_strategy)
        if schema.rules:
            found["x-kubernetes-validations"] = [_rule(rule) for rule in schema.rules]
        return found | self._children(schema)

    def _children(self, schema: Schema) -> Json:
        found: Json = {}
        said = self._descriptions.of_fields(schema.name) if schema.name else {}
        properties = {
            field: self.node(property_schema, said.get(field, ""))
            for field, property_schema in schema.properties.items()
        }
        if schema.embedded_resource:
            self.refer(_OBJECT_META)
            properties |= _object_fields()
        if properties:
            found["properties"] = properties
        if schema.additional is not None:
            found["additionalProperties"] = self.node(schema.additional)
        if schema.items is not None:
            found["items"] = self.node(schema.items)
        if schema.not_ is not None:
            found["not"] = self.node(schema.not_)
        for key, nodes in (("allOf", schema.all_of), ("anyOf", schema.any_of), ("oneOf", schema.one_of)):
            if nodes:
                found[key] = [self.node(node) for node in nodes]
        if schema.int_or_string and not {"anyOf", "allOf", "oneOf"} & found.keys():
            found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
        return found


def _rule(rule: ValidationRule) -> Json:
    found = {
        "rule": rule.rule,
        "message": rule.message,
        "messageExpression": rule.message_expression,
        "reason": rule.reason,
        "fieldPath": rule.field_path,
        "optionalOldSelf": rule.optional_old_self,
    }
    return {key: value for key, value in found.items() if value not in ("", None)}


def empty_v2(accept: str) -> tuple[bytes, str]:
    """`/openapi/v2`: the body and its content type, as protobuf for kubectl and as JSON for other clients."""
    if "protobuf" in accept:
        information = _protobuf(1, _TITLE.encode()) + _protobuf(2, b"v1")
        return _protobuf(1, b"2.0") + _protobuf(2, information), _V2_PROTOBUF
    body = {"swagger": "2.0", "info": {"title": _TITLE, "version": "v1"}, "paths": {}, "definitions": {}}
    return msgspec.json.encode(body), "application/json"


def _protobuf(field: int, value: bytes) -> bytes:
    """A field of a protobuf message that holds text or another message."""
    assert len(value) < 128, "longer values need a longer length prefix"
    return bytes([field << 3 | 2, len(value)]) + value
