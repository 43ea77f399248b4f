"""Whether a value fits a schema: yes or "look closer", as fast as plain Python allows.

Nearly every write is valid, so the question asked on each write is not "what is wrong" but "is it fine". A schema
is compiled once into nested closures that answer only that; they build no paths and no messages. A `False` may be
wrong (a float where an integer is wanted might be 3.0), a `True` never is: on `False`, `validation.py` walks the
value again, slowly and exactly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeserver.schemas.formats import FORMATS, effective, normalized
from kubeserver.schemas.linear import TooCostly
from kubeserver.schemas.regex import PatternError, compile_go

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubeserver.schemas.schema import Schema


def compiled(schema: Schema) -> Callable[[Any], bool]:
    """The check of a schema, made at first use and kept on its node."""
    if schema.check is None:
        # A node that contains itself is checked by looking its check up again.
        schema.check = lambda value: compiled(schema)(value)  # noqa: PLW0108 - it is another function by then
        schema.check = _node(schema) or _anything
    return schema.check


def _anything(_: Any) -> bool:
    return True


def _node(schema: Schema) -> Callable[[Any], bool] | None:
    """The check for a node, or None if everything fits."""
    if schema.authored is not None:
        return _node(schema.authored)
    if schema.not_ is not None or schema.one_of or schema.unique_items or schema.multiple_of is not None:
        return _look_closer
    parts = [part for part in (_by_type(schema), _enumerated(schema), *_combined(schema)) if part is not None]
    if not parts:
        return None
    check = parts[0] if len(parts) == 1 else _all(parts)
    if schema.nullable and not schema.enum:
        return lambda value: value is None or check(value)
    return check


def _look_closer(_: Any) -> bool:
    return False


def _all(parts: list[Callable[[Any], bool]]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        for part in parts:  # noqa: SIM110 - a generator would cost more than the checks
            if not part(value):
                return False
        return True

    return check


def _combined(schema: Schema) -> list[Callable[[Any], bool]]:
    parts = [compiled(item) for item in schema.all_of]
    if schema.any_of:
        choices = [compiled(item) for item in schema.any_of]
        parts.append(lambda value: any(choice(value) for choice in choices))
    return parts


def _enumerated(schema: Schema) -> Callable[[Any], bool] | None:
    if not schema.enum:
        return None
    texts = frozenset(item for item in schema.enum if isinstance(item, str))
    return lambda value: value.__class__ is str and value in texts


def _by_type(schema: Schema) -> Callable[[Any], bool] | None:
    if schema.int_or_string:
        text, whole = _string(schema), _number(schema, int)
        return lambda value: text(value) or whole(value)
    if schema.type == "string":
        return _string(schema)
    if schema.type == "integer":
        return _number(schema, int)
    if schema.type == "number":
        decimal, whole = _number(schema, float), _number(schema, int)
        return lambda value: decimal(value) or whole(value)
    if schema.type == "boolean":
        return lambda value: value is True or value is False
    if schema.type == "array":
        return _array(schema)
    if schema.type == "object":
        return _object(schema)
    return _look_closer if _constrained(schema) else None


def _constrained(schema: Schema) -> bool:
    """Whether a node without a type says anything that a value might break."""
    return bool(
        schema.properties
        or schema.required
        or schema.additional
        or schema.items
        or schema.pattern
        or schema.format
        or schema.minimum is not None
        or schema.maximum is not None
        or schema.min_length is not None
        or schema.max_length is not None
        or schema.min_items is not None
        or schema.max_items is not None
        or schema.min_properties is not None
        or schema.max_properties is not None
    )


def _string(schema: Schema) -> Callable[[Any], bool]:
    low = schema.min_length or 0
    high = schema.max_length if schema.max_length is not None else 1 << 62
    search = _patiently(schema.pattern) if schema.pattern else None
    kind = "" if schema.int_or_string else schema.type
    name = effective(kind, schema.format)
    is_format = FORMATS[normalized(name)] if name else None
    if search is None and is_format is None:
        if low == 0 and schema.max_length is None:
            return lambda value: value.__class__ is str
        return lambda value: value.__class__ is str and low <= len(value) <= high

    def check(value: Any) -> bool:
        return (
            value.__class__ is str
            and low <= len(value) <= high
            and (search is None or search(value))
            and (is_format is None or is_format(value))
        )

    return check


def _patiently(pattern: str) -> Callable[[str], bool]:
    """A match that is too costly is none, and so is one of a wrong pattern; the closer look says why.

    The compiled pattern is not kept here: those of all definitions together may not fit into memory.
    """

    def search(text: str) -> bool:
        try:
            return compile_go(pattern).search(text)
        except (PatternError, TooCostly):
            return False

    return search


def _number(schema: Schema, kind: type[float]) -> Callable[[Any], bool]:
    if schema.type == "integer" and any(
        bound is not None and (bound != int(bound) or abs(bound) >= 1 << 31)
        for bound in (schema.minimum, schema.maximum)
    ):
        return _look_closer  # Kubernetes finds fault with such a bound, whatever the value
    low, high = float("-inf"), float("inf")
    if schema.format == "int32" and schema.type == "integer":
        low, high = -(1 << 31), (1 << 31) - 1
    if schema.format == "float" and schema.type == "number":
        low, high = -3.4e38, 3.4e38
    if schema.minimum is not None:
        low = max(low, schema.minimum)
    if schema.maximum is not None:
        high = min(high, schema.maximum)
    if schema.exclusive_minimum or schema.exclusive_maximum:
        return lambda value: value.__class__ is kind and low < value < high
    return lambda value: value.__class__ is kind and low <= value <= high


def _array(schema: Schema) -> Callable[[Any], bool]:
    low = schema.min_items or 0
    high = schema.max_items if schema.max_items is not None else 1 << 62
    item = compiled(schema.items) if schema.items is not None else _anything

    def check(value: Any) -> bool:
        if value.__class__ is not list or not low <= len(value) <= high:
            return False
        for entry in value:  # noqa: SIM110
            if not item(entry):
                return False
        return True

    return check


def _object(schema: Schema) -> Callable[[Any], bool]:
    low = schema.min_properties or 0
    high = schema.max_properties if schema.max_properties is not None else 1 << 62
    required = schema.required
    children = {name: compiled(child) for name, child in schema.properties.items()}
    known = {name: child for name, child in children.items() if child is not _anything}
    find = known.get
    rest = compiled(schema.additional) if schema.additional is not None else _anything

    def check(value: Any) -> bool:
        if value.__class__ is not dict or not low <= len(value) <= high:
            return False
        for name in required:
            if name not in value:
                return False
        for name, each in value.items():
            child = find(name)
            if child is not None and not child(each):
                return False
        return True

    def check_map(value: Any) -> bool:
        if not check(value):
            return False
        return all(rest(child) for name, child in value.items() if name not in children)

    return check if rest is _anything else check_map
