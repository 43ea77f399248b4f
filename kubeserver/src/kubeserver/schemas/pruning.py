"""Dropping what a schema does not know.

Kubernetes keeps only the fields that a kind's schema names. `prune` removes the others in place and says where they
were, in the words of strict decoding (`spec.list[2].foo`), so that the caller can ignore, warn or refuse as the
request's `fieldValidation` asks. A node marked `x-kubernetes-preserve-unknown-fields` keeps unknown fields, but
what it does specify is still pruned inside.

The root object and every embedded resource carry `apiVersion`, `kind` and `metadata` whatever their schema says;
`metadata` is cleaned by decoding it (see `decode.py`), never here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.schemas.builtin_types import OBJECT_META, builtin_types

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

META_FIELDS = frozenset({"apiVersion", "kind", "metadata"})


def prune(schema: Schema, obj: Any) -> list[str]:
    """Remove the unknown fields of an object in place; returns their paths, sorted."""
    unknown: list[str] = []
    if isinstance(obj, dict):
        _prune_map(schema, obj, "", unknown, embedded=True)
    unknown.sort()
    return unknown


def prune_value(schema: Schema, value: Any) -> list[str]:
    """As `prune`, for a value that is no object of its own, such as a default."""
    unknown: list[str] = []
    _prune(schema, value, "", unknown)
    return unknown


def _prune(schema: Schema | None, value: Any, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        if schema is None:
            unknown.extend(f"{path}.{key}" for key in value)
            value.clear()
        else:
            _prune_map(schema, value, path, unknown, embedded=schema.embedded_resource)
    elif isinstance(value, list):
        if schema is not None and schema.preserve_unknown and schema.items is None:
            return
        items = schema.items if schema is not None else None
        for index, item in enumerate(value):
            if isinstance(item, (dict, list)):
                _prune(items, item, f"{path}[{index}]", unknown)


def _prune_map(schema: Schema, value: dict[str, Any], path: str, unknown: list[str], *, embedded: bool) -> None:
    properties = schema.properties
    additional = schema.additional
    dropped: list[str] | None = None
    for key, each in value.items():
        if embedded and key in META_FIELDS:
            if path and key == "metadata":  # of the object itself, decoding has taken care already
                _prune(builtin_types()[OBJECT_META], each, f"{path}.{key}", unknown)
            continue
        child = properties.get(key) or additional
        if child is not None:
            if isinstance(each, (dict, list)):
                _prune(child, each, f"{path}.{key}" if path else key, unknown)
        elif not schema.preserve_unknown:
            if dropped is None:
                dropped = []
            dropped.append(key)
    for key in dropped or ():
        del value[key]
        unknown.append(f"{path}.{key}" if path else key)
