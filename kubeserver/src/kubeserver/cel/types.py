"""What values are to an expression.

A schema gives every field a type; the checker gives every expression one. An object with `properties` is a type of
its own with named fields, an object with `additionalProperties` a map, `x-kubernetes-int-or-string` is dynamic and
what has no schema does not exist. Strings of the formats date, date-time, duration and byte are what their format
says, not strings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kubeserver.cel.syntax import RESERVED

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema


@dataclass(slots=True, frozen=True, eq=False)
class Type:
    kind: str
    parameters: tuple[Type, ...] = ()
    # of an object: the type of each field by the name expressions know it by, and that name's field in JSON
    fields: dict[str, Type] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    schema: Schema | None = None

    def __str__(self) -> str:
        if self.kind == "object":
            return "object"
        if self.kind == "null_type":
            return "null"
        if self.parameters:
            return f"{self.kind}({', '.join(str(parameter) for parameter in self.parameters)})"
        return self.kind


INT: Final = Type("int")
UINT: Final = Type("uint")
DOUBLE: Final = Type("double")
BOOL: Final = Type("bool")
STRING: Final = Type("string")
BYTES: Final = Type("bytes")
NULL: Final = Type("null_type")
DYN: Final = Type("dyn")
TIMESTAMP: Final = Type("timestamp")
DURATION: Final = Type("duration")
IP: Final = Type("net.IP")
CIDR: Final = Type("net.CIDR")
URL: Final = Type("kubernetes.URL")
QUANTITY: Final = Type("kubernetes.Quantity")
SEMVER: Final = Type("kubernetes.Semver")
FORMAT: Final = Type("kubernetes.NamedFormat")
A: Final = Type("A")
B: Final = Type("B")
VARIABLES: Final = frozenset({"A", "B"})


def list_of(item: Type, schema: Schema | None = None) -> Type:
    return Type("list", (item,), schema=schema)


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", (value,))


def escaped(name: str) -> str | None:
    """A field's name as expressions write it; None if they cannot."""
    if not re.fullmatch(r"[A-Za-z_./-][A-Za-z0-9_./-]*", name):
        return None
    if name in RESERVED or name in ("true", "false", "null", "in"):
        return f"__{name}__"
    for plain, words in (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")):
        name = name.replace(plain, words)
    return name


_FORMATS: Final = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_SCALARS: Final = {"boolean": BOOL, "number": DOUBLE, "integer": INT}


def of_schema(schema: Schema, *, root: bool = False) -> Type | None:
    """The type of a schema's values; None if expressions cannot see them."""
    if schema.int_or_string:
        return DYN
    if schema.type == "array":
        if schema.items is None:
            return None
        item = of_schema(schema.items, root=schema.items.embedded_resource)
        return None if item is None else list_of(item, schema)
    if schema.type == "object":
        return _of_object(schema, root=root)
    if schema.type == "string":
        return _FORMATS.get(schema.format, STRING)
    return _SCALARS.get(schema.type)


def _of_object(schema: Schema, *, root: bool) -> Type | None:
    if schema.additional is not None and not root:
        value = of_schema(schema.additional, root=schema.additional.embedded_resource)
        return None if value is None else map_of(STRING, value)
    fields: dict[str, Type] = {}
    keys: dict[str, str] = {}
    for name, child in schema.properties.items():
        if root and name in ("apiVersion", "kind", "metadata"):
            continue
        known_as = escaped(name)
        kind = of_schema(child, root=child.embedded_resource)
        if known_as is not None and kind is not None:
            fields[known_as] = kind
            keys[known_as] = name
    if root:
        meta = Type("object", fields={"name": STRING, "generateName": STRING}, keys=_same("name", "generateName"))
        fields |= {"apiVersion": STRING, "kind": STRING, "metadata": meta}
        keys |= _same("apiVersion", "kind", "metadata")
    return Type("object", fields=fields, keys=keys, schema=schema)


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


class Bindings(dict[str, Type]):
    """What the type variables of one call stand for."""

    def resolved(self, kind: Type) -> Type:
        if kind.kind in VARIABLES:
            return self.get(kind.kind, DYN)
        if kind.parameters:
            return Type(kind.kind, tuple(self.resolved(parameter) for parameter in kind.parameters), schema=kind.schema)
        return kind

    def assignable(self, wanted: Type, given: Type) -> bool:
        """Whether a value of one type may stand where another is wanted; binds variables on the way."""
        if wanted.kind in VARIABLES:
            bound = self.get(wanted.kind)
            if bound is None or bound.kind in ("dyn", "null_type"):
                self[wanted.kind] = given
                return True
            return self.assignable(bound, given) or (given.kind == "null_type" and bound.kind not in PRIMITIVE)
        if wanted.kind == "dyn" or given.kind in ("dyn", "A", "B"):
            return True
        if given.kind == "null_type" and wanted.kind not in PRIMITIVE:
            return True
        if wanted.kind != given.kind:
            return False
        if wanted.kind == "object":
            return wanted is given or (wanted.schema is not None and wanted.schema is given.schema)
        return all(self.assignable(one, other) for one, other in zip(wanted.parameters, given.parameters, strict=False))


# null is no value of these
PRIMITIVE: Final = frozenset({"int", "uint", "double", "bool", "string", "bytes", "list", "map", "type"})


def joined(left: Type, right: Type) -> Type | None:
    """One type for values of two, if there is one."""
    if Bindings().assignable(left, right):
        return right if left.kind == "null_type" else left
    if Bindings().assignable(right, left):
        return right
    return None
