"""Whether the schema of one version of a definition can be served.

Four layers, as in Kubernetes: it must be structural (`structure.py`), its defaults must be valid against the
schemas they stand in, it must follow the rules of list and map types, and its CEL rules must compile. Rules are
compiled only where the schema below them is in order, because otherwise their messages would mislead.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from kubeserver.cel import types as cel_types
from kubeserver.cel.amounts import times
from kubeserver.cel.extents import extent_of, most_repetitions
from kubeserver.cel.paths import PathError, field_path
from kubeserver.cel.rules import check_value, compile_rules
from kubeserver.definitions.costs import RuleCosts, occurrences_within
from kubeserver.definitions.structure import (
    children,
    forbidden,
    invalid,
    required,
    structural_errors,
    unsupported,
)
from kubeserver.definitions.values import SCHEMA_FIELDS, go_rule, go_schema
from kubeserver.schemas.pruning import prune_value
from kubeserver.schemas.schema import MISSING, Schema, parse
from kubeserver.schemas.structure import validate_structure
from kubeserver.wire.status import FieldError

Json = dict[str, Any]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_ROOT_FIELDS: Final = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_META_FIELDS: Final = ("metadata", "kind", "apiVersion")
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")


def validate_schema(schema: Json, path: str, *, has_status: bool, unchanged: bool = False) -> list[FieldError]:
    """What is wrong with an `openAPIV3Schema`; `path` is where it stands.

    In a schema that an update did not change, each rule may cost what it likes, but not all of them together.
    """
    errors = _root_errors(schema, path) if has_status else []
    if schema.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    impossible = unsupported(schema)
    parsed: Schema | None = None
    if not impossible:
        found = structural_errors(schema, path)
        if not found:
            parsed = parse(schema)
            found = _default_errors(parsed, path, at_root=True)
        errors += found
        if found:
            parsed = None
    walk = _Walk(RuleCosts(unchanged=unchanged))
    walk.visit(schema, path, _Context(parsed=parsed, root=True))
    errors += [*walk.errors, *walk.rule_errors]
    if impossible and not errors:
        errors.append(invalid(path, "", impossible))
    return [*errors, *walk.costs.errors(path)]


def _root_errors(schema: Json, path: str) -> list[FieldError]:
    allowed = _ROOT_FIELDS.split()
    for name, key, _ in SCHEMA_FIELDS:
        if schema.get(key) in (None, "", False, [], {}):
            continue
        if name == "Type" and schema["type"] != "object":
            detail = (
                'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            )
            return [invalid(f"{path}.type", schema["type"], detail)]
        if name not in allowed:
            detail = (
                f"only [{_ROOT_FIELDS}] fields are allowed at the root of the schema "
                "if the status subresource is enabled"
            )
            return [invalid(path, go_schema(schema), detail)]
    return []


def _default_errors(schema: Schema, path: str, *, at_root: bool = False) -> list[FieldError]:
    """Defaults that do not fit the schema they are defaults of."""
    errors: list[FieldError] = []
    if schema.default is not None and schema.default is not MISSING:
        where = f"{path}.default"
        if _unpruned(schema):
            errors.append(invalid(where, schema.default, "must not have unknown fields"))
        found = validate_structure(schema, schema.default, path=where)
        errors += found or check_value(schema, schema.default, where)
    if schema.items is not None:
        errors += _default_errors(schema.items, f"{path}.items")
    for name, child in schema.properties.items():
        if not (at_root and name in _META_FIELDS):
            errors += _default_errors(child, f"{path}.properties[{name}]")
    return errors


def _unpruned(schema: Schema) -> bool:
    copied = _copy(schema.default)
    return bool(prune_value(schema, copied))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(each) for key, each in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value


@dataclass(slots=True, frozen=True)
class _Context:
    """What the surroundings of a schema forbid or know."""

    parsed: Schema | None = None  # the same schema, parsed; None: do not compile rules here
    root: bool = False
    in_meta: bool = False
    no_defaults: str | None = None  # why defaults are forbidden
    uncorrelated: str = ""  # the list within which old and new items cannot be told to belong together
    occurrences: int | None = 1  # how often the schema may apply within one object; None: nothing limits it


class _Walk:
    def __init__(self, costs: RuleCosts) -> None:
        self.costs = costs
        self.errors: list[FieldError] = []
        self.rule_errors: list[FieldError] = []

    def visit(self, schema: Any, path: str, context: _Context) -> None:
        if not isinstance(schema, dict):
            return
        before = len(self.errors)
        self.errors += _plain_errors(schema, path, context)
        self._below(schema, path, context)
        self.errors += _extension_errors(schema, path)
        rules = schema.get("x-kubernetes-validations") or []
        for index, rule in enumerate(rules):
            self.errors += _rule_form_errors(rule, schema, f"{path}.x-kubernetes-validations[{index}]")
        if rules and context.parsed is not None and len(self.errors) == before:
            self.rule_errors += _rule_errors(rules, path, context, self.costs)

    def _below(self, schema: Json, path: str, context: _Context) -> None:
        parsed = context.parsed
        within = replace(context, root=False, occurrences=occurrences_within(schema, context.occurrences))
        additional = schema.get("additionalProperties")
        if additional is not None:
            if children(schema) and additional is not True:
                detail = "additionalProperties and properties are mutual exclusive"
                self.errors.append(forbidden(f"{path}.additionalProperties", detail))
            below = replace(within, parsed=None if parsed is None else parsed.additional)
            if context.in_meta:
                below = replace(below, no_defaults="inside additionalProperties applying to object metadata")
            self.visit(additional, f"{path}.additionalProperties", below)
        for name, child in children(schema).items():
            below = replace(within, parsed=None if parsed is None else parsed.properties.get(name))
            if (context.root or schema.get("x-kubernetes-embedded-resource")) and name in _META_FIELDS:
                below = replace(below, in_meta=True)
                if context.root:
                    below = replace(below, no_defaults=f"in top-level {name}")
            self.visit(child, f"{path}.properties[{name}]", below)
        unparsed = replace(within, parsed=None)
        self.visit(schema.get("not"), f"{path}.not", unparsed)
        for key in ("allOf", "oneOf", "anyOf"):
            for index, branch in enumerate(schema.get(key) or ()):
                self.visit(branch, f"{path}.{key}[{index}]", unparsed)
        below = replace(within, parsed=None if parsed is None else parsed.items)
        if schema.get("x-kubernetes-list-type") != "map" and not context.uncorrelated:
            below = replace(below, uncorrelated=path)
        self.visit(schema.get("items"), f"{path}.items", below)


def _plain_errors(schema: Json, path: str, context: _Context) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        errors.append(FieldError("FieldValueNotSupported", f"{path}.type", "", kind, _TYPES))
    if schema.get("default") is not None and context.no_defaults is not None:
        errors.append(forbidden(f"{path}.default", f"must not be set {context.no_defaults}".rstrip()))
    errors += [
        forbidden(f"{path}.{key}", f"{key} is not supported")
        for key in _NOT_SUPPORTED
        if schema.get(key) not in (None, "", {})
    ]
    if kind == "null":
        errors.append(forbidden(f"{path}.type", "type cannot be set to null, use nullable as an alternative"))
    if isinstance(schema.get("items"), list) and schema["items"]:
        errors.append(forbidden(f"{path}.items", "items must be a schema object and not an array"))
    if context.in_meta and schema.get("x-kubernetes-embedded-resource"):
        where = f"{path}.x-kubernetes-embedded-resource"
        errors.append(forbidden(where, "must not be used inside of resource meta"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{path}.uniqueItems", detail))
    return errors


def _extension_errors(schema: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schema.get("type") or ""
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        errors.append(invalid(where, False, "must be true or undefined"))
    map_type, list_type = schema.get("x-kubernetes-map-type"), schema.get("x-kubernetes-list-type")
    for found, wanted, name in ((map_type, "object", "map"), (list_type, "array", "list")):
        if found is not None and kind != wanted:
            detail = f"must be {wanted} if x-kubernetes-{name}-type is specified"
            errors.append(invalid(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail))
        elif name == "list" and found == "set":
            errors += _set_errors(schema, path)
        allowed = ("atomic", "granular") if name == "map" else ("atomic", "set", "map")
        if found is not None and found not in allowed:
            where = f"{path}.x-kubernetes-{name}-type"
            errors.append(FieldError("FieldValueNotSupported", where, "", found, allowed))
    keys = schema.get("x-kubernetes-list-map-keys") or []
    where = f"{path}.x-kubernetes-list-type"
    if keys and list_type is None:
        errors.append(required(where, "must be map if x-kubernetes-list-map-keys is non-empty"))
    elif keys and list_type != "map":
        errors.append(invalid(where, list_type, "must be map if x-kubernetes-list-map-keys is non-empty"))
    if list_type == "map":
        errors += _map_list_errors(schema, keys, path)
    if list_type in ("set", "map") and isinstance(schema.get("items"), dict):
        errors += _item_errors(schema["items"], keys, list_type, f"{path}.items")
    return errors


def _set_errors(schema: Json, path: str) -> list[FieldError]:
    items = schema.get("items")
    if not isinstance(items, dict):
        return []
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    kind = items.get("type")
    inner = items.get("x-kubernetes-list-type")
    if kind == "array" and inner not in (None, "atomic"):
        return [invalid(f"{path}.items.x-kubernetes-list-type", inner, detail)]
    if kind == "object" and items.get("x-kubernetes-map-type") != "atomic":
        return [invalid(f"{path}.items.x-kubernetes-map-type", inner, detail)]
    return []


def _map_list_errors(schema: Json, keys: list[str], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        errors.append(required(where, "must not be empty if x-kubernetes-list-type is map"))
    items = schema.get("items")
    if items is None:
        return [*errors, required(f"{path}.items", "must have a schema if x-kubernetes-list-type is map")]
    if not isinstance(items, dict):
        return errors
    kind = items.get("type") or ""
    if kind != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        return [*errors, invalid(f"{path}.items.type", kind, detail)]
    seen: set[str] = set()
    for key in keys:
        child = children(items).get(key)
        if child is None:
            errors.append(invalid(where, keys, "entries must all be names of item properties"))
        elif child.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            errors.append(invalid(f"{path}.items.properties[{key}].type", kind, detail))
        if key in seen:
            errors.append(invalid(where, keys, "must not contain duplicate entries"))
        seen.add(key)
    return errors


def _item_errors(items: Json, keys: list[str], list_type: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if items.get("nullable"):
        errors.append(forbidden(f"{path}.nullable", f"cannot be nullable when x-kubernetes-list-type is {list_type}"))
    for key in keys if list_type == "map" else ():
        child = children(items).get(key)
        if child is None:
            continue
        where = f"{path}.properties[{key}]"
        if key not in (items.get("required") or ()) and child.get("default") is None:
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            errors.append(required(f"{where}.default", detail))
        if child.get("nullable"):
            detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable"
            errors.append(forbidden(f"{where}.nullable", detail))
    return errors


def _rule_form_errors(rule: Json, schema: Json, path: str) -> list[FieldError]:
    """The errors in a rule that are found before it is compiled."""
    errors: list[FieldError] = []
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _lines(message.strip()):
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _lines(text) and not message.strip():
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    expression = rule.get("messageExpression") or ""
    if expression and not expression.strip():
        errors.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(FieldError("FieldValueNotSupported", f"{path}.reason", "", reason, _REASONS))
    where = rule.get("fieldPath") or ""
    if where and not where.strip():
        errors.append(invalid(f"{path}.fieldPath", where, "must be non-empty if specified"))
    if _lines(where):
        errors.append(invalid(f"{path}.fieldPath", where, "must not contain line breaks"))
    if where and not unsupported(schema):
        try:
            field_path(where, parse(schema))
        except PathError:
            errors.append(invalid(f"{path}.fieldPath", where, "must be a valid path"))
    return errors


def _lines(text: str) -> bool:
    return re.search(r"[\n\r]", text) is not None


def _rule_errors(rules: list[Json], path: str, context: _Context, costs: RuleCosts) -> list[FieldError]:
    schema = context.parsed
    assert schema is not None
    where = f"{path}.x-kubernetes-validations"
    root = context.root or schema.embedded_resource
    kind, extent = cel_types.of_schema(schema, root=root), extent_of(schema, root=root)
    if kind is None or extent is None:
        detail = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: "
            "unable to convert structural schema to CEL declarations"
        )
        return [FieldError("InternalError", where, detail)]
    errors: list[FieldError] = []
    often = most_repetitions(extent) if context.occurrences is None else context.occurrences
    compiled_rules = compile_rules(schema.rules, kind, schema, extent)
    for index, (compiled, rule) in enumerate(zip(compiled_rules, rules, strict=True)):
        at = f"{where}[{index}]"
        errors += costs.observed(f"{at}.rule", times(compiled.cost, often), "estimated rule cost")
        if compiled.problem:
            errors.append(invalid(f"{at}.rule", go_rule(rule), compiled.problem))
        if compiled.message_problem:
            errors.append(invalid(f"{at}.messageExpression", go_rule(rule), compiled.message_problem))
        elif compiled.message is not None:
            name = "estimated messageExpression cost"
            errors += costs.observed(f"{at}.messageExpression", compiled.message_cost, name)
        if compiled.uses_old:
            if context.uncorrelated:
                detail = (
                    f"oldSelf cannot be used on the uncorrelatable portion of the schema within {context.uncorrelated}"
                )
                errors.append(invalid(f"{at}.rule", rule["rule"], detail))
        elif rule.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            errors.append(invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], detail))
    return errors
