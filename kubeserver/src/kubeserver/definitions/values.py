"""Parts of a definition as Kubernetes prints them in errors: as the Go structs it holds them in, not as they were
sent. The names and the order of the fields are Go's, and absent ones show."""

from __future__ import annotations

from typing import Any, Final

from kubeserver.wire.goformat import Raw, marshal

Json = dict[str, Any]

# Go's name of each field of a schema, in order: name in JSON, and what Go prints if it is absent
SCHEMA_FIELDS: Final = (
    ("ID", "id", '""'),
    ("Schema", "$schema", '""'),
    ("Ref", "$ref", "null"),
    ("Description", "description", '""'),
    ("Type", "type", '""'),
    ("Nullable", "nullable", "false"),
    ("Format", "format", '""'),
    ("Title", "title", '""'),
    ("Default", "default", "null"),
    ("Maximum", "maximum", "null"),
    ("ExclusiveMaximum", "exclusiveMaximum", "false"),
    ("Minimum", "minimum", "null"),
    ("ExclusiveMinimum", "exclusiveMinimum", "false"),
    ("MaxLength", "maxLength", "null"),
    ("MinLength", "minLength", "null"),
    ("Pattern", "pattern", '""'),
    ("MaxItems", "maxItems", "null"),
    ("MinItems", "minItems", "null"),
    ("UniqueItems", "uniqueItems", "false"),
    ("MultipleOf", "multipleOf", "null"),
    ("Enum", "enum", "null"),
    ("MaxProperties", "maxProperties", "null"),
    ("MinProperties", "minProperties", "null"),
    ("Required", "required", "null"),
    ("Items", "items", "null"),
    ("AllOf", "allOf", "null"),
    ("OneOf", "oneOf", "null"),
    ("AnyOf", "anyOf", "null"),
    ("Not", "not", "null"),
    ("Properties", "properties", "null"),
    ("AdditionalProperties", "additionalProperties", "null"),
    ("PatternProperties", "patternProperties", "null"),
    ("Dependencies", "dependencies", "null"),
    ("AdditionalItems", "additionalItems", "null"),
    ("Definitions", "definitions", "null"),
    ("ExternalDocs", "externalDocs", "null"),
    ("Example", "example", "null"),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", "null"),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", "false"),
    ("XIntOrString", "x-kubernetes-int-or-string", "false"),
    ("XListMapKeys", "x-kubernetes-list-map-keys", "null"),
    ("XListType", "x-kubernetes-list-type", "null"),
    ("XMapType", "x-kubernetes-map-type", "null"),
    ("XValidations", "x-kubernetes-validations", "null"),
)
_RULE_FIELDS: Final = (
    ("Rule", "rule", '""'),
    ("Message", "message", '""'),
    ("MessageExpression", "messageExpression", '""'),
    ("Reason", "reason", "null"),
    ("FieldPath", "fieldPath", '""'),
    ("OptionalOldSelf", "optionalOldSelf", "null"),
)
_COLUMN_FIELDS: Final = (
    ("Name", "name", '""'),
    ("Type", "type", '""'),
    ("Format", "format", '""'),
    ("Description", "description", '""'),
    ("Priority", "priority", "0"),
    ("JSONPath", "jsonPath", '""'),
)


def _struct(fields: tuple[tuple[str, str, str], ...], value: Json) -> str:
    parts = []
    for name, key, empty in fields:
        found = value.get(key)
        parts.append(f'"{name}":{empty if found is None else _printed(key, found)}')
    return "{" + ",".join(parts) + "}"


def _printed(key: str, value: Any) -> str:
    if key in ("allOf", "oneOf", "anyOf"):
        return "[" + ",".join(_struct(SCHEMA_FIELDS, item) for item in value) + "]"
    if key == "not":
        return _struct(SCHEMA_FIELDS, value)
    if key in ("properties", "patternProperties", "definitions"):
        entries = (f"{marshal(name)}:{_struct(SCHEMA_FIELDS, value[name])}" for name in sorted(value))
        return "{" + ",".join(entries) + "}"
    if key == "items":
        if isinstance(value, list):
            return f'{{"Schema":null,"JSONSchemas":[{",".join(_struct(SCHEMA_FIELDS, item) for item in value)}]}}'
        return f'{{"Schema":{_struct(SCHEMA_FIELDS, value)},"JSONSchemas":null}}'
    if key in ("additionalProperties", "additionalItems"):
        if isinstance(value, bool):
            return f'{{"Allows":{marshal(value)},"Schema":null}}'
        return f'{{"Allows":true,"Schema":{_struct(SCHEMA_FIELDS, value)}}}'
    if key == "x-kubernetes-validations":
        return "[" + ",".join(_struct(_RULE_FIELDS, item) for item in value) + "]"
    return marshal(value)


def go_schema(schema: Json) -> Raw:
    return Raw(_struct(SCHEMA_FIELDS, schema))


def go_rule(rule: Json) -> Raw:
    return Raw(_struct(_RULE_FIELDS, rule))


def go_versions(versions: list[Json]) -> Raw:
    return Raw("[" + ",".join(_version(version) for version in versions) + "]")


def _version(version: Json) -> str:
    schema = version.get("schema")
    inner = (schema or {}).get("openAPIV3Schema")
    shown_schema = "null"
    if schema is not None:
        shown_schema = f'{{"OpenAPIV3Schema":{"null" if inner is None else _struct(SCHEMA_FIELDS, inner)}}}'
    columns = version.get("additionalPrinterColumns")
    shown_columns = "null"
    if columns:
        shown_columns = "[" + ",".join(_struct(_COLUMN_FIELDS, column) for column in columns) + "]"
    selectable = version.get("selectableFields")
    shown_fields = "null"
    if selectable:
        paths = (f'{{"JSONPath":{marshal(item.get("jsonPath") or "")}}}' for item in selectable)
        shown_fields = "[" + ",".join(paths) + "]"
    parts = (
        f'"Name":{marshal(version.get("name") or "")}',
        f'"Served":{marshal(bool(version.get("served")))}',
        f'"Storage":{marshal(bool(version.get("storage")))}',
        f'"Deprecated":{marshal(bool(version.get("deprecated")))}',
        f'"DeprecationWarning":{marshal(version.get("deprecationWarning"))}',
        f'"Schema":{shown_schema}',
        f'"Subresources":{_subresources(version.get("subresources"))}',
        f'"AdditionalPrinterColumns":{shown_columns}',
        f'"SelectableFields":{shown_fields}',
    )
    return "{" + ",".join(parts) + "}"


def _subresources(value: Json | None) -> str:
    if value is None:
        return "null"
    status = "{}" if isinstance(value.get("status"), dict) else "null"
    scale = value.get("scale")
    shown = "null"
    if scale:
        shown = (
            f'{{"SpecReplicasPath":{marshal(scale.get("specReplicasPath") or "")},'
            f'"StatusReplicasPath":{marshal(scale.get("statusReplicasPath") or "")},'
            f'"LabelSelectorPath":{marshal(scale.get("labelSelectorPath"))}}}'
        )
    return f'{{"Status":{status},"Scale":{shown}}}'
