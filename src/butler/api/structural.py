"""From a struct to the structural schema that a CRD needs.

Kubernetes wants every schema spelled out in place: no references, no recursion, no unions except "an integer or a
string". The walk goes over msgspec's own description of the types, so what is decoded and what is published cannot
differ. It refuses what would make a poor CRD: a field without a description, a list that does not say how it
merges or how long it may get.

A default in the schema is the default of the struct's field. Status types should have none (but for a phase): the
API server fills defaults in on every read, and a default there looks as if a controller had written it.
"""

from typing import Any

import msgspec
from msgspec import inspect

from butler.api.schema import Part, rendered
from butler.api.text import TIME

Schema = dict[str, Any]

LIST_TYPE = "x-kubernetes-list-type"
RULES = "x-kubernetes-validations"
_ROOT_FIELDS = ("api_version", "kind", "metadata")


class NotStructuralError(Exception):
    """The type cannot be said in a CRD, or says too little for one."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


def structural_schema(type_: type[Part]) -> Schema:
    """The schema of a part with everything below it in place."""
    info = inspect.type_info(type_)
    assert isinstance(info, inspect.StructType)
    return _struct(info, type_.__name__, ())


def _struct(info: inspect.StructType, path: str, within: tuple[type, ...]) -> Schema:
    if info.cls in within:
        raise NotStructuralError(path, f"{info.cls.__name__} contains itself")
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for field in info.fields:
        if not within and field.name in _ROOT_FIELDS:
            continue
        here = f"{path}.{field.encode_name}"
        schema = _schema(field.type, here, (*within, info.cls))
        if not schema.get("description"):
            raise NotStructuralError(here, "has no description")
        default = _default(field, schema)
        if default is not None:
            schema["default"] = default
        properties[field.encode_name] = schema
        if field.required:
            required.append(field.encode_name)
    result: Schema = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    rules = [rendered(rule) for rule in getattr(info.cls, "validations", ())]
    if rules:
        result[RULES] = rules
    return result


def _default(field: inspect.Field, schema: Schema) -> object:
    """The default to publish, or None."""
    if field.required or field.default is msgspec.NODEFAULT or field.default in (None, ()):
        return None
    default = msgspec.to_builtins(field.default)
    if isinstance(default, dict):
        # Spelled out to the last leaf: the API server judges a default by the rules before it fills it in.
        below = {name: field["default"] for name, field in schema["properties"].items() if "default" in field}
        return {**below, **default} or None
    return default


def _schema(info: inspect.Type, path: str, within: tuple[type, ...]) -> Schema:
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=limits):
            return _with_limits(_schema(inner, path, within), limits or {}, path)
        case inspect.UnionType(types=types):
            return _union(types, path, within)
        case inspect.StructType():
            return _struct(info, path, within)
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return {"type": "array", "items": _schema(item, f"{path}[]", within)}
        case inspect.DictType(value_type=inspect.AnyType()):
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        case inspect.DictType(value_type=value):
            return {"type": "object", "additionalProperties": _schema(value, f"{path}[]", within)}
        case inspect.EnumType(cls=cls):
            return {"type": "string", "enum": [member.value for member in cls]}
        case inspect.StrType():
            return {"type": "string"}
        case inspect.DateTimeType():
            return {"type": "string", "format": "date-time", "pattern": TIME}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.IntType():
            return {"type": "integer", "format": "int32"}
        case _:
            raise NotStructuralError(path, f"{type(info).__name__} has no form in a CRD")


def _with_limits(schema: Schema, limits: Schema, path: str) -> Schema:
    if schema.get("type") == "array":
        for key, problem in (
            (LIST_TYPE, "a list must say how it merges"),
            ("maxItems", "a list must have a limit"),
        ):
            if key not in limits:
                raise NotStructuralError(path, problem)
    rules = [*schema.get(RULES, ()), *limits.get(RULES, ())]
    merged = {**schema, **limits}
    if rules:
        merged[RULES] = rules
    return merged


def _union(types: tuple[inspect.Type, ...], path: str, within: tuple[type, ...]) -> Schema:
    # "Or None" means that the field may be absent; Kubernetes has no null here.
    members = [member for member in types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        return _schema(members[0], path, within)
    if {type(member) for member in members} == {inspect.IntType, inspect.StrType}:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    raise NotStructuralError(path, "a union of types has no form in a CRD, except of int and str")
