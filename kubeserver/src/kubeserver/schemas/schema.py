"""The shape of a kind, as one tree of nodes that everything else reads.

Both sources of shape end here: the `openAPIV3Schema` of a CustomResourceDefinition, and the compact table of
built-in kinds in `builtin_schemas.json`. Validation, pruning, defaulting, strategic merge, field ownership,
`kubectl explain` and Table columns all walk the same `Schema` nodes, so a fact about a field is written once.

A node may be shared and the graph may contain cycles (JSONSchemaProps contains itself), so walk it along an
object, never on its own. Nodes are never changed after `parse` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


class NoDefault:
    """The absence of a default: `None` is a default that a nullable field may really have."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = NoDefault()


@dataclass(slots=True, frozen=True)
class ValidationRule:
    """One `x-kubernetes-validations` entry."""

    rule: str
    message: str = ""
    message_expression: str = ""
    reason: str = ""
    field_path: str = ""
    optional_old_self: bool | None = None


@dataclass(slots=True, eq=False)
class Schema:
    type: str = ""  # empty: anything goes (int-or-string, preserve-unknown-fields or an untyped node)
    description: str = ""
    format: str = ""
    properties: dict[str, Schema] = field(default_factory=dict)
    additional: Schema | None = None  # what every value of a map looks like
    items: Schema | None = None
    required: tuple[str, ...] = ()
    nullable: bool = False
    default: Any = MISSING
    enum: tuple[Any, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: bool = False
    exclusive_maximum: bool = False
    multiple_of: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    min_properties: int | None = None
    max_properties: int | None = None
    all_of: tuple[Schema, ...] = ()
    any_of: tuple[Schema, ...] = ()
    one_of: tuple[Schema, ...] = ()
    not_: Schema | None = None
    rules: tuple[ValidationRule, ...] = ()
    preserve_unknown: bool = False
    embedded_resource: bool = False
    int_or_string: bool = False
    list_type: str = "atomic"  # atomic, set or map
    list_map_keys: tuple[str, ...] = ()
    map_type: str = "granular"  # granular or atomic
    patch_strategy: tuple[str, ...] = ()  # of strategic merge patch: merge, replace, retainKeys
    patch_merge_key: str = ""
    name: str = ""  # of a named built-in type, such as io.k8s.api.core.v1.PodSpec
    go: str = ""  # what Go calls the type of a built-in field, where OpenAPI has no name for it: v1.ServiceType
    omit: frozenset[str] = frozenset()  # fields of a built-in type that vanish when they are empty
    # What to validate against instead, where this node says more than the author of a definition wrote: the
    # metadata of a custom resource is shown and merged as ObjectMeta, but validated as written.
    authored: Schema | None = None
    # What others found out about this node and keep here, because a node lives as long as what they found.
    defaulted: tuple[tuple[str, Schema], ...] | None = None  # the properties with a default
    check: Callable[[Any], bool] | None = None  # whether a value fits, compiled by fits.py
    traits: int = -1  # what occurs in this node or below it, as bits of traits.py; -1: not looked yet
    program: Any = None  # the compiled rules of this node and below it, made by cel/rules.py

    @property
    def go_name(self) -> str:
        """The last part of the type's name, as the error messages of Kubernetes print it."""
        return self.name.rsplit(".", 1)[-1]


_SAME_NAME: Final = {
    "type": "type",
    "description": "description",
    "format": "format",
    "nullable": "nullable",
    "pattern": "pattern",
    "minimum": "minimum",
    "maximum": "maximum",
    "exclusiveMinimum": "exclusive_minimum",
    "exclusiveMaximum": "exclusive_maximum",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "uniqueItems": "unique_items",
    "minProperties": "min_properties",
    "maxProperties": "max_properties",
    "x-kubernetes-preserve-unknown-fields": "preserve_unknown",
    "x-kubernetes-embedded-resource": "embedded_resource",
    "x-kubernetes-int-or-string": "int_or_string",
    "x-kubernetes-list-type": "list_type",
    "x-kubernetes-map-type": "map_type",
    "x-kubernetes-patch-merge-key": "patch_merge_key",
    "go": "go",
}


def parse(document: Json, named: dict[str, Json] | None = None) -> Schema:
    """Turn an OpenAPI v3 schema into nodes; `$ref` is looked up in `named` by its last path element."""
    return _Parser(named or {}).node(document)


def parse_named(named: dict[str, Json]) -> dict[str, Schema]:
    """Parse a whole table of named types, sharing nodes between them."""
    parser = _Parser(named)
    return {name: parser.reference(name) for name in named}


class _Parser:
    def __init__(self, named: dict[str, Json]) -> None:
        self._named = named
        self._done: dict[str, Schema] = {}

    def reference(self, name: str) -> Schema:
        if name not in self._done:
            self._done[name] = node = Schema(name=name)
            self._fill(node, self._named[name])
        return self._done[name]

    def node(self, document: Json) -> Schema:
        if "$ref" in document:
            return self.reference(str(document["$ref"]).rsplit("/", 1)[-1])
        node = Schema()
        self._fill(node, document)
        return node

    def _fill(self, node: Schema, document: Json) -> None:
        inherited = document.get("allOf") or []
        if len(inherited) == 1 and "$ref" in inherited[0]:
            # The published form of "this named type, with a description or a default of its own".
            self._copy(self.node(inherited[0]), node)
            document = {key: value for key, value in document.items() if key != "allOf"}
        for key, attribute in _SAME_NAME.items():
            if document.get(key) is not None:
                setattr(node, attribute, document[key])
        if "default" in document:
            node.default = document["default"]
        for key, attribute in (("allOf", "all_of"), ("anyOf", "any_of"), ("oneOf", "one_of")):
            if document.get(key):
                setattr(node, attribute, tuple(self.node(item) for item in document[key]))
        if document.get("not"):
            node.not_ = self.node(document["not"])
        self._fill_children(node, document)

    def _fill_children(self, node: Schema, document: Json) -> None:
        if document.get("properties"):
            node.properties = {name: self.node(field) for name, field in document["properties"].items()}
        additional = document.get("additionalProperties")
        if isinstance(additional, dict):
            node.additional = self.node(additional)
        elif additional is True:
            node.additional = Schema(preserve_unknown=True)
        if isinstance(document.get("items"), dict):
            node.items = self.node(document["items"])
        if document.get("required"):
            node.required = tuple(document["required"])
        if document.get("omit"):
            node.omit = frozenset(document["omit"])
        if document.get("enum"):
            node.enum = tuple(document["enum"])
        if document.get("x-kubernetes-list-map-keys"):
            node.list_map_keys = tuple(document["x-kubernetes-list-map-keys"])
        if document.get("x-kubernetes-patch-strategy"):
            node.patch_strategy = tuple(str(document["x-kubernetes-patch-strategy"]).split(","))
        node.rules = tuple(
            ValidationRule(
                rule=xkubernetesvalidation["rule"],
                message=xkubernetesvalidation.get("message", ""),
                message_expression=xkubernetesvalidation.get("messageExpression", ""),
                reason=xkubernetesvalidation.get("reason", ""),
                field_path=xkubernetesvalidation.get("fieldPath", ""),
                optional_old_self=xkubernetesvalidation.get("optionalOldSelf"),
            )
            for xkubernetesvalidation in document.get("x-kubernetes-validations") or ()
        )

    @staticmethod
    def _copy(source: Schema, target: Schema) -> None:
        for attribute in Schema.__slots__:
            setattr(target, attribute, getattr(source, attribute))
