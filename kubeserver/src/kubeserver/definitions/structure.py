"""Whether a schema is structural: what Kubernetes asks of the shape of a custom resource's schema.

Every field must have a type, outside of `allOf`, `anyOf`, `oneOf` and `not`; those may only add constraints to what is
specified outside of them. Metadata may be restricted in its name and nothing else.
"""

from __future__ import annotations

from typing import Any, Final

from kubeserver.schemas.regex import PatternError, compile_go
from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNSUPPORTED: Final = (
    ("id", "id"),
    ("$schema", "schema"),
    ("$ref", "$ref"),
    ("patternProperties", "patternProperties"),
    ("dependencies", "dependencies"),
    ("additionalItems", "additionalItems"),
    ("definitions", "definitions"),
)
_LEVELS: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NOT_NESTED: Final = (
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, detail)


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, detail, value)


def children(schema: Json) -> dict[str, Json]:
    found: dict[str, Json] = schema.get("properties") or {}
    return found


def unsupported(schema: Any) -> str:
    """The first thing in a schema, or below it, that a structural schema cannot have at all."""
    if not isinstance(schema, dict):
        return ""
    for key, name in _UNSUPPORTED:
        if schema.get(key):
            return f"OpenAPIV3Schema '{name}' is not supported"
    if isinstance(schema.get("items"), list):
        return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    below: list[Any] = [schema.get("items"), schema.get("additionalProperties"), schema.get("not")]
    for key in ("allOf", "anyOf", "oneOf"):
        below += schema.get(key) or []
    below += children(schema).values()
    return next((problem for item in below if (problem := unsupported(item))), "")


def structural_errors(schema: Json, path: str) -> list[FieldError]:
    """What keeps a schema from being structural, in the order of the texts."""
    errors = [*_invariants(schema, "root", path), *_complete(schema, schema, path, path)]
    return sorted(errors, key=FieldError.text)


def _invariants(schema: Json, level: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    items = schema.get("items")
    if kind == "array" and items is None:
        errors.append(required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        errors += _invariants(items, "item", f"{path}.items")
    for name, child in children(schema).items():
        errors += _invariants(child, "field", f"{path}.properties[{name}]")
    additional = schema.get("additionalProperties")
    if additional is not None:
        if level == "root":
            errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(additional, dict):
            errors += _invariants(additional, "field", f"{path}.additionalProperties")
    errors += _extensions(schema, path)
    first_all = (schema.get("allOf") or [{}])[0]
    errors += _value_validation(
        schema,
        path,
        skip_any=schema.get("anyOf") == _INT_OR_STRING,
        skip_first_all=first_all.get("anyOf") == _INT_OR_STRING,
    )
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    errors += _type(schema, kind, level, path)
    if embedded and additional is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(f"{path}.additionalProperties", detail))
    errors += _meta(schema, level, path, embedded=embedded)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not children(schema):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        errors.append(required(f"{path}.properties", detail))
    return errors


def _extensions(schema: Json, path: str) -> list[FieldError]:
    if not schema.get("x-kubernetes-int-or-string"):
        return []
    detail = "must be false if x-kubernetes-int-or-string is true"
    names = ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
    return [invalid(f"{path}.{name}", True, detail) for name in names if schema.get(name)]


def _type(schema: Json, kind: str, level: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail))
    elif not kind and not free:
        errors.append(required(f"{path}.type", _LEVELS[level]))
    if level == "root" and kind and kind != "object":
        errors.append(invalid(f"{path}.type", kind, "must be object at the root"))
    return errors


def _meta(schema: Json, level: str, path: str, *, embedded: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    checked = level == "root" or embedded
    properties = children(schema)
    for name in ("kind", "apiVersion"):
        if checked and name in properties and properties[name].get("type") != "string":
            where = f"{path}.properties[{name}].type"
            errors.append(invalid(where, properties[name].get("type") or "", "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return errors
    where = f"{path}.properties[metadata]"
    if checked and metadata.get("type") != "object":
        errors.append(invalid(f"{where}.type", metadata.get("type") or "", "must be object"))
    if level == "root":
        inner = {key: each for key, each in metadata.items() if key not in ("type", "default", "description", "title")}
        if set(inner.get("properties") or {}) <= {"name", "generateName"}:
            inner.pop("properties", None)
        if metadata.get("description") or metadata.get("title") or inner:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(where, detail))
    return errors


def _value_validation(schema: Json, path: str, *, skip_any: bool, skip_first_all: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not skip_any:
        for index, branch in enumerate(schema.get("anyOf") or ()):
            errors += _nested(branch, f"{path}.anyOf[{index}]", skip_any=False)
    for index, branch in enumerate(schema.get("allOf") or ()):
        errors += _nested(branch, f"{path}.allOf[{index}]", skip_any=skip_first_all and index == 0)
    for index, branch in enumerate(schema.get("oneOf") or ()):
        errors += _nested(branch, f"{path}.oneOf[{index}]", skip_any=False)
    if schema.get("not") is not None:
        errors += _nested(schema["not"], f"{path}.not", skip_any=False)
    if schema.get("pattern"):
        try:
            compile_go(schema["pattern"])
        except PatternError as problem:
            detail = f"must be a valid regular expression, but isn't: {problem}"
            errors.append(invalid(f"{path}.pattern", schema["pattern"], detail))
    return errors


def _nested(schema: Json, path: str, *, skip_any: bool) -> list[FieldError]:
    errors = _value_validation(schema, path, skip_any=skip_any, skip_first_all=False)
    if isinstance(schema.get("items"), dict):
        errors += _nested(schema["items"], f"{path}.items", skip_any=False)
    for name, child in children(schema).items():
        errors += _nested(child, f"{path}.properties[{name}]", skip_any=False)
    if schema.get("type"):
        errors.append(forbidden(f"{path}.type", "must be empty to be structural"))
    if schema.get("additionalProperties") is not None:
        errors.append(forbidden(f"{path}.additionalProperties", "must be undefined to be structural"))
    errors += [forbidden(f"{path}.{key}", detail) for key, detail in _NOT_NESTED if schema.get(key)]
    if "metadata" in children(schema):
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return errors


def _complete(constraint: Json, schema: Json, path: str, from_path: str) -> list[FieldError]:
    """Fields that a combination constrains but the schema around it does not specify."""
    errors: list[FieldError] = []
    nested = [("not", constraint["not"])] if constraint.get("not") is not None else []
    for key in ("allOf", "anyOf", "oneOf"):
        nested += [(f"{key}[{index}]", branch) for index, branch in enumerate(constraint.get(key) or ())]
    for name, branch in nested:
        errors += _nested_complete(branch, schema, path, f"{from_path}.{name}")
    return errors


def _nested_complete(constraint: Json, schema: Json | None, path: str, from_path: str) -> list[FieldError]:
    if schema is None:
        return [required(path, f"because it is defined in {from_path}")]
    errors = _complete(constraint, schema, path, from_path)
    if isinstance(constraint.get("items"), dict):
        items = schema.get("items")
        errors += _nested_complete(constraint["items"], items, f"{path}.items", f"{from_path}.items")
    for name, child in children(constraint).items():
        inner = f"properties[{name}]"
        found = children(schema).get(name)
        errors += _nested_complete(child, found, f"{path}.{inner}", f"{from_path}.{inner}")
    return errors
