"""Filling in what a schema says about absent fields.

Defaults apply when an object is written and again when it is read, so that objects written before a default was
added show it too. The rules are those of Kubernetes: a default is copied in where the field is absent, or null
while the schema is not nullable; what is copied in is defaulted in turn; a null that is neither allowed nor has a
default is dropped first, as if it had never been sent.

`apply_defaults` changes the object in place and is a fixpoint: a second run changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.schemas.schema import MISSING
from kubeserver.schemas.traits import DEFAULTS, traits_of

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema


def apply_defaults(schema: Schema, obj: Any) -> None:
    """Drop nulls that may not be, then fill in defaults."""
    drop_nulls(schema, obj)
    fill(schema, obj)


def drop_nulls(schema: Schema | None, value: Any) -> None:
    """Remove map entries that are null although the schema is not nullable and has no default."""
    if isinstance(value, dict):
        properties = schema.properties if schema is not None else {}
        additional = schema.additional if schema is not None else None
        dropped: list[str] | None = None
        for key, each in value.items():
            if each is None:
                child = properties.get(key) or additional
                if child is not None and not child.nullable and _default(child) is None:
                    dropped = dropped or []
                    dropped.append(key)
            elif isinstance(each, (dict, list)):
                child = properties.get(key) or additional
                if child is None or child.authored is None:  # metadata lost its nulls when it was decoded
                    drop_nulls(child, each)
        for key in dropped or ():
            del value[key]
    elif isinstance(value, list):
        items = schema.items if schema is not None else None
        for item in value:
            if isinstance(item, (dict, list)):
                drop_nulls(items, item)


def fill(schema: Schema, value: Any) -> None:
    """Copy defaults into a value, in place."""
    if not schema.name and not traits_of(schema) & DEFAULTS:
        return
    if isinstance(value, dict):
        for key, child in defaulted_properties(schema):
            if key not in value or (value[key] is None and not child.nullable):
                value[key] = _copy(child.default)
        properties = schema.properties
        additional = schema.additional
        for key, each in value.items():
            found = properties.get(key) or additional
            if found is None:
                continue
            if found.authored is not None:
                continue
            if isinstance(each, (dict, list)):
                fill(found, each)
            elif each is None and not found.nullable and key not in properties:
                value[key] = _copy(_default(found))
                fill(found, value[key])
    elif isinstance(value, list) and schema.items is not None:
        items = schema.items
        for index, item in enumerate(value):
            if item is None and not items.nullable:
                value[index] = _copy(_default(items))
            if isinstance(value[index], (dict, list)):
                fill(items, value[index])


def defaulted_properties(schema: Schema) -> tuple[tuple[str, Schema], ...]:
    """The properties that have a default, found once per node: most nodes have none."""
    if schema.defaulted is None:
        schema.defaulted = tuple(
            (name, child) for name, child in schema.properties.items() if _default(child) is not None
        )
    return schema.defaulted


def _default(schema: Schema) -> Any:
    return None if schema.default is MISSING else schema.default


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(child) for key, child in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
