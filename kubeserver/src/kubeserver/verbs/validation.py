"""Everything that is checked of a custom resource before it is stored.

In the order of kube-apiserver: the structure, the numbers behind the scale subresource, embedded resources, lists
that are sets or maps, and last the CEL rules. The rules run only if what was found before leaves the value in a
shape they can be asked about; otherwise one more problem says that they were not run.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kubeserver.cel.rules import check_rules
from kubeserver.resources import Resource
from kubeserver.schemas.schema import Schema
from kubeserver.schemas.structure import validate_structure
from kubeserver.schemas.traits import EMBEDDED, RULES, UNIQUE_ITEMS, traits_of
from kubeserver.wire.goformat import marshal
from kubeserver.wire.names import dns_1035_label, validate_metadata
from kubeserver.wire.status import FieldError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kubeserver.resources import ScaleSubresource

# With one of these, the value may not have the types that the rules were compiled for.
_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_NOT_RUN = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def validate(
    schema: Schema,
    obj: Any,
    old: Any = None,
    *,
    subresource: str = "",
    scale: ScaleSubresource | None = None,
    before: Sequence[FieldError] = (),
    warnings: list[str] | None = None,
) -> list[FieldError]:
    """What is wrong with a custom resource; `old` is what it replaces.

    With `subresource="status"` only the status is held against the schema, as Kubernetes does. `before` is what was
    found already (in metadata): it can keep the rules from being run. Rules that an update broke before it came
    along only warn, into `warnings`.
    """
    errors: list[FieldError] = []
    if subresource != "status":
        errors += validate_structure(schema, obj, old)
        if scale is not None:
            errors += _scale_number(obj, scale.spec_path)
    elif "status" in obj:
        status = schema.properties.get("status") or Schema()
        old_status = None if old is None else old.get("status")
        errors += validate_structure(status, obj["status"], old_status, path="status")
    if scale is not None:
        errors += _scale_status(obj, scale)
    traits = traits_of(schema)
    if traits & EMBEDDED and subresource != "status":
        errors += _embedded(schema, obj, "")
    if traits & UNIQUE_ITEMS:
        repeated = _repeated_in_map(schema, obj, "") if isinstance(obj, dict) else []
        if repeated and (old is None or not _repeated_in_map(schema, old, "")):
            errors += repeated
    if traits & RULES:
        if any(error.kind in _BLOCKING for error in (*before, *errors)):
            errors.append(FieldError("FieldValueInvalid", "<nil>", _NOT_RUN))
        else:
            errors += check_rules(schema, obj, old, warnings)
    return errors


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


# Lists that are sets or maps.


def _repeated(schema: Schema, value: Any, path: str) -> list[FieldError]:
    if not traits_of(schema) & UNIQUE_ITEMS:
        return []
    if isinstance(value, dict):
        return _repeated_in_map(schema, value, path)
    return _repeated_in_list(schema, value, path) if isinstance(value, list) else []


def _repeated_in_map(schema: Schema, value: dict[str, Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for key, each in value.items():
        child = schema.properties.get(key)
        if child is not None:
            errors += _repeated(child, each, _child(path, key))
        elif schema.additional is not None:
            errors += _repeated(schema.additional, each, f"{path}[{key}]")
    return errors


def _repeated_in_list(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if schema.list_type == "set":
        errors += [FieldError("FieldValueDuplicate", f"{path}[{i}]", "", value[i]) for i in _second_ones(value)]
    elif schema.list_type == "map":
        errors += _repeated_keys(schema, value, path)
    if schema.items is not None:
        for index, item in enumerate(value):
            errors += _repeated(schema.items, item, f"{path}[{index}]")
    return errors


def _repeated_keys(schema: Schema, value: list[Any], path: str) -> list[FieldError]:
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            detail = "must be an object for an array of list-type map"
            return [FieldError("FieldValueInvalid", f"{path}[{index}]", detail, each)]
    keys = [{name: item[name] for name in schema.list_map_keys if name in item} if item else {} for item in value]
    return [FieldError("FieldValueDuplicate", f"{path}[{index}]", "", keys[index]) for index in _second_ones(keys)]


def _second_ones(values: list[Any]) -> list[int]:
    """Where a value stands for the second time; a third time is not reported again."""
    if len(values) < 2:
        return []
    seen: dict[Any, int] = {}
    found: list[int] = []
    for index, value in enumerate(values):
        key = marshal(value) if isinstance(value, (dict, list)) else (value.__class__, value)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] == 2:
            found.append(index)
    return found


# Embedded resources.


def _embedded(schema: Schema, value: Any, path: str) -> list[FieldError]:
    if not traits_of(schema) & EMBEDDED:
        return []
    errors: list[FieldError] = []
    if isinstance(value, dict):
        if schema.embedded_resource:
            errors += _embedded_type(value, path)
            metadata = value.get("metadata")
            if isinstance(metadata, dict):
                errors += _embedded_metadata(metadata, _child(path, "metadata"))
        for key, each in value.items():
            child = schema.properties.get(key)
            if child is not None:
                errors += _embedded(child, each, _child(path, key))
            elif schema.additional is not None:
                errors += _embedded(schema.additional, each, f"{path}[{key}]")
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            errors += _embedded(schema.items, item, f"{path}[{index}]")
    return errors


# Stand-ins for the kind of an embedded resource: what its metadata must look like does not depend on it.
_NAMESPACED = Resource("", "", "", "", "", namespaced=True, schema=Schema(), name_rule="path-segment", custom=True)
_CLUSTERED = Resource("", "", "", "", "", namespaced=False, schema=Schema(), name_rule="path-segment", custom=True)


def _embedded_metadata(metadata: dict[str, Any], path: str) -> list[FieldError]:
    """What is wrong with the metadata of an object inside another; it needs no name there."""
    named = {**metadata, "name": metadata.get("name") or "fakename"}
    errors = validate_metadata(_NAMESPACED if metadata.get("namespace") else _CLUSTERED, named)
    return [replace(error, path=path + error.path.removeprefix("metadata")) for error in errors]


def _embedded_type(value: dict[str, Any], path: str) -> list[FieldError]:
    errors = [
        FieldError("FieldValueRequired", _child(path, name), "") for name in ("apiVersion", "kind") if name not in value
    ]
    version = value.get("apiVersion")
    if "apiVersion" in value:
        where = _child(path, "apiVersion")
        if not isinstance(version, str):
            errors.append(FieldError("FieldValueInvalid", where, "must be a string", version))
        elif not version:
            errors.append(FieldError("FieldValueInvalid", where, "must not be empty", version))
        elif version.count("/") > 1:
            detail = f"unexpected GroupVersion string: {version}"
            errors.append(FieldError("FieldValueInvalid", where, detail, version))
    if "kind" in value:
        kind, where = value["kind"], _child(path, "kind")
        if not isinstance(kind, str):
            errors.append(FieldError("FieldValueInvalid", where, "must be a string", kind))
        elif not kind:
            errors.append(FieldError("FieldValueInvalid", where, "must not be empty", kind))
        elif problems := dns_1035_label(kind.lower()):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(FieldError("FieldValueInvalid", where, detail, kind))
    return errors


# The numbers behind the scale subresource.


def _at(obj: Any, path: str, kind: type, words: str) -> tuple[Any, str]:
    """The value at a dotted path (None if there is none), and what is wrong with the way to it."""
    names = path.removeprefix(".").split(".")
    value = obj
    for name in names:
        if not isinstance(value, dict):
            return None, _no_way(names, value, "map[string]interface {}")
        if name not in value:
            return None, ""
        value = value[name]
    return (value, "") if value.__class__ is kind else (None, _no_way(names, value, words))


def _no_way(names: list[str], value: Any, wanted: str) -> str:
    return f".{'.'.join(names)} accessor error: {_go_value(value)} is of the type {_go_type(value)}, expected {wanted}"


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "int64", float: "float64", list: "[]interface {}", dict: "map[string]interface {}"}
    return names.get(value.__class__, "<nil>")


def _go_value(value: Any) -> str:
    return value if isinstance(value, str) else "<nil>" if value is None else marshal(value)


def _scale_number(obj: Any, path: str) -> list[FieldError]:
    value, problem = _at(obj, path, int, "int64")
    if problem:
        return [FieldError("FieldValueInvalid", path, problem, 0)]
    if value is not None and value < 0:
        return [FieldError("FieldValueInvalid", path, "should be a non-negative integer", value)]
    if value is not None and value > 2147483647:
        return [FieldError("FieldValueInvalid", path, "should be less than or equal to 2147483647", value)]
    return []


def _scale_status(obj: Any, scale: ScaleSubresource) -> list[FieldError]:
    errors = _scale_number(obj, scale.status_path)
    if scale.selector_path:
        _, problem = _at(obj, scale.selector_path, str, "string")
        if problem:
            errors.append(FieldError("FieldValueInvalid", scale.selector_path, problem, ""))
    return errors
