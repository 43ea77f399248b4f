"""What field ownership needs to know of a schema, and nothing else.

Server-side apply sees a value as one of three things: a scalar, a map or a list; maps are granular (each key has
its own owners) or atomic, lists are atomic, sets, or keyed by fields of their items. A `Shape` says which of them
a value may be. It is compiled from a `Schema` once and then kept with it, because every write walks it.

Shapes add what the schema of a custom resource leaves out: `metadata` is always ObjectMeta, and where anything
goes (preserve-unknown-fields, an untyped node) maps are granular and lists atomic. For built-in kinds a shape also
knows the `empty` object: the fields Go writes even when no client set them, which are therefore never "added".

Shapes may contain cycles, as schemas do. They are never changed once `shape_of` has returned them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubeserver.patching.fieldsets import element_of_key, element_of_value
from kubeserver.schemas.schema import MISSING, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

ATOMIC: Final = "atomic"
SET: Final = "set"
KEYED: Final = "map"


class NoElementError(Exception):
    """A list item that cannot be told from its siblings, and why."""


class Shape:
    """What a value may be, seen by ownership. `scalar`, `map` and `list` may all be allowed at once."""

    __slots__ = (
        "atomic_map",
        "element",
        "fields",
        "items",
        "key_defaults",
        "keys",
        "list",
        "list_type",
        "map",
        "nullable",
        "scalar",
        "untyped_inside",
    )

    def __init__(self) -> None:
        self.scalar = ""  # numeric, string, boolean, untyped; empty: no scalar allowed
        self.map = False
        self.atomic_map = False
        self.fields: dict[str, Shape] = {}
        self.element: Shape | None = None  # of keys that are no fields; None: there may be none
        self.list = False
        self.list_type = ATOMIC
        self.keys: tuple[str, ...] = ()
        self.key_defaults: dict[str, Any] = {}
        self.items: Shape | None = None
        self.nullable = False
        self.untyped_inside = True  # a 1 may become true below here: plain == would not see it

    def child(self, name: str) -> Shape | None:
        return self.fields.get(name) or self.element

    def path_element(self, item: object) -> str:
        """The path element of a list item; raises NoElementError in Kubernetes' words if it has none."""
        if self.list_type == SET:
            return _set_element(item)
        if item is None:
            raise NoElementError("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise NoElementError("associative list with keys may not have non-map elements")
        found = []
        for name in self.keys:
            value = item.get(name, MISSING)
            if value is MISSING:
                value = self.key_defaults.get(name, MISSING)
            if value is not MISSING:
                found.append((name, value))
        if not found:
            listed = " ".join(f'"{name}"' for name in self.keys)
            raise NoElementError(
                f"associative list with keys has an element that omits all key fields [{listed}] "
                "(and doesn't have default values for any key fields)"
            )
        found.sort()
        return element_of_key(tuple(found))


def _set_element(item: object) -> str:
    if isinstance(item, dict):
        raise NoElementError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise NoElementError("not supported: associative list with lists as elements")
    if item is None:
        raise NoElementError("associative list without keys has an element that's an explicit null")
    return element_of_value(item)


def _scalar(kind: str) -> Shape:
    found = Shape()
    found.scalar = kind
    found.untyped_inside = kind == "untyped"
    return found


def _granular(fields: dict[str, Shape], element: Shape | None = None) -> Shape:
    found = Shape()
    found.map = True
    found.fields = fields
    found.element = element
    found.untyped_inside = False
    return found


def _untyped(*, granular: bool) -> Shape:
    found = Shape()
    found.scalar = "untyped"
    found.map = True
    found.atomic_map = not granular
    found.list = True
    found.nullable = True
    found.element = found if granular else None
    return found


# Anything at all: where a schema says nothing, maps are granular, lists and what is in them atomic.
DEDUCED: Final = _untyped(granular=True)
OPAQUE: Final = _untyped(granular=False)
_STRING: Final = _scalar("string")
_TIME: Final = _scalar("untyped")
_TIME.untyped_inside = False


def _list(list_type: str, items: Shape, keys: tuple[str, ...] = ()) -> Shape:
    found = Shape()
    found.list = True
    found.list_type = list_type
    found.items = items
    found.keys = keys
    found.untyped_inside = False
    return found


def _object_meta() -> Shape:
    reference = _granular(
        {
            "apiVersion": _STRING,
            "blockOwnerDeletion": _scalar("boolean"),
            "controller": _scalar("boolean"),
            "kind": _STRING,
            "name": _STRING,
            "uid": _STRING,
        }
    )
    reference.atomic_map = True
    entry = _untyped(granular=False)
    entry.untyped_inside = False
    texts = ("generateName", "name", "namespace", "resourceVersion", "selfLink", "uid")
    fields: dict[str, Shape] = dict.fromkeys(texts, _STRING)
    fields["annotations"] = _granular({}, _STRING)
    fields["labels"] = _granular({}, _STRING)
    fields["creationTimestamp"] = _TIME
    fields["deletionTimestamp"] = _TIME
    fields["deletionGracePeriodSeconds"] = _scalar("numeric")
    fields["generation"] = _scalar("numeric")
    fields["finalizers"] = _list(SET, _STRING)
    fields["ownerReferences"] = _list(KEYED, reference, ("uid",))
    fields["ownerReferences"].key_defaults = {"uid": ""}
    fields["managedFields"] = _list(ATOMIC, entry)
    return _granular(fields)


OBJECT_META: Final = _object_meta()


@lru_cache(maxsize=1024)
def shape_of(schema: Schema) -> Shape:
    """The shape of a kind's objects. Schemas are told apart by identity, so this is a cheap lookup."""
    return _Compiler().kind(schema)


class _Compiler:
    def __init__(self) -> None:
        self._done: dict[tuple[int, bool], Shape] = {}

    def kind(self, schema: Schema) -> Shape:
        root = Shape()
        self._fill(root, schema, preserve=False)
        root.map = True
        root.scalar = ""
        root.list = False
        root.fields = {**root.fields, "apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}
        _mark_typed(root)
        return root

    def node(self, schema: Schema, *, preserve: bool) -> Shape:
        key = (id(schema), preserve)
        found = self._done.get(key)
        if found is None:
            self._done[key] = found = Shape()
            self._fill(found, schema, preserve=preserve)
        return found

    def _fill(self, shape: Shape, schema: Schema, *, preserve: bool) -> None:
        shape.nullable = schema.nullable
        # A number where text was is another type here, but never a true where a 1 was.
        shape.untyped_inside = not schema.int_or_string
        preserve = preserve or schema.preserve_unknown
        if schema.go_name == "Quantity":
            shape.scalar = "untyped"
            return
        if schema.go_name == "RawExtension":
            shape.scalar = "untyped"
            shape.map = shape.list = shape.atomic_map = True
            return
        if schema.type in ("object", ""):
            self._fill_map(shape, schema, preserve=preserve)
        if schema.type in ("array", ""):
            self._fill_list(shape, schema, preserve=preserve)
        if schema.type not in ("object", "array"):
            shape.scalar = _scalar_kind(schema)

    def _fill_map(self, shape: Shape, schema: Schema, *, preserve: bool) -> None:
        shape.map = True
        shape.atomic_map = schema.map_type == ATOMIC
        shape.fields = {name: self.node(field, preserve=preserve) for name, field in schema.properties.items()}
        if schema.additional is not None:
            shape.element = self.node(schema.additional, preserve=preserve)
        elif preserve or not schema.properties:
            shape.element = DEDUCED
        if schema.embedded_resource:
            shape.fields = {**shape.fields, "apiVersion": _STRING, "kind": _STRING, "metadata": OBJECT_META}

    def _fill_list(self, shape: Shape, schema: Schema, *, preserve: bool) -> None:
        shape.list = True
        shape.items = self.node(schema.items, preserve=preserve) if schema.items is not None else OPAQUE
        if schema.list_type in (SET, KEYED):
            shape.list_type = schema.list_type
            shape.keys = schema.list_map_keys
            properties = schema.items.properties if schema.items is not None else {}
            shape.key_defaults = {
                name: properties[name].default
                for name in schema.list_map_keys
                if name in properties and properties[name].default not in (MISSING, None)
            }


def _scalar_kind(schema: Schema) -> str:
    if schema.int_or_string:
        return "untyped"
    if schema.type in ("integer", "number"):
        return "numeric"
    if schema.type == "boolean":
        return "boolean"
    if schema.type == "string" and schema.format in ("", "byte"):
        return "string"
    return "untyped"


def _mark_typed(root: Shape) -> None:
    """Find the shapes below which every scalar has one type, so that == may compare them whole."""
    seen: dict[int, Shape] = {}
    pending = [root]
    while pending:
        shape = pending.pop()
        if id(shape) not in seen:
            seen[id(shape)] = shape
            pending.extend(_children(shape))
    mixed = {
        identity
        for identity, shape in seen.items()
        if shape.untyped_inside and ((shape.map and shape.scalar) or shape in (DEDUCED, OPAQUE))
    }
    spreading = True
    while spreading:
        more = {
            identity
            for identity, shape in seen.items()
            if identity not in mixed and any(id(child) in mixed for child in _children(shape))
        }
        mixed |= more
        spreading = bool(more)
    for identity, shape in seen.items():
        shape.untyped_inside = identity in mixed


def _children(shape: Shape) -> Iterable[Shape]:
    yield from shape.fields.values()
    if shape.element is not None:
        yield shape.element
    if shape.items is not None:
        yield shape.items


def empty_object(schema: Schema, api_version: str, kind: str) -> Json:
    """What an object is before any field is set: the other side of a creation.

    Custom resources start with nothing. A built-in kind is a Go struct: structs inside it and required fields are
    always written, so the published schema's `default: {}` and its required fields tell what is there.
    """
    if not schema.name:
        return {"apiVersion": api_version, "kind": kind}
    # a copy: what is made of it may be changed, and the next object must start empty again
    return {**_copied(_empty_struct(schema)), "apiVersion": api_version, "kind": kind}


def _copied(struct: Json) -> Json:
    return {name: _copied(field) if isinstance(field, dict) else field for name, field in struct.items()}


@lru_cache(maxsize=1024)
def _empty_struct(schema: Schema) -> Json:
    found: Json = {}
    for name, field in schema.properties.items():
        if field.default == {} and field.default is not MISSING:
            found[name] = {} if name == "metadata" else _empty_struct(field)
        elif name in schema.required:
            found[name] = None if field.default is MISSING else field.default
    return found
