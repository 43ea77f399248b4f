"""How large the values of a schema can get.

A rule is judged before any object comes, so what it may cost follows from what its schema allows: `maxItems`,
`maxProperties`, `maxLength`, the longest word of an enumeration, the length of a format. What has no limit is bounded
by the largest request, in which as many values fit as their shortest form allows. The numbers are those of
Kubernetes, because a definition must be accepted by both or by none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kubeserver.cel.types import escaped
from kubeserver.schemas.schema import MISSING

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

LARGEST_REQUEST: Final = 3 * 1024 * 1024
_LONGEST_TEXT: Final = LARGEST_REQUEST - 2  # without its quotes
_BYTES_PER_CHARACTER: Final = 4
_LONGEST_NAME: Final = 253  # of an object
_LONGEST_PREFIX: Final = 252  # what a name is generated from; one character is added at least
_EMPTY: Final = 2  # "", [] and {}
# the most characters of a format's values, and the fewest bytes they take in JSON
_FORMATS: Final = {"duration": (32, 3), "date": (12, 12), "date-time": (32, 21)}
_SCALARS: Final = {"boolean": 4, "number": 1, "integer": 1}


@dataclass(slots=True, frozen=True)
class Extent:
    """The most elements (or bytes) of a value, and the fewest bytes it takes in JSON; the same for what is in it."""

    most: int = 0
    fewest_bytes: int = _EMPTY
    fields: dict[str, Extent] = field(default_factory=dict)
    key: Extent | None = None
    item: Extent | None = None

    def at(self, path: tuple[str, ...]) -> Extent | None:
        """The extent of what a path of fields, `@items`, `@values` and `@keys` leads to."""
        found: Extent | None = self
        for name in path:
            if found is None:
                return None
            if name in ("@items", "@values"):
                found = found.item
            elif name == "@keys":
                found = found.key
            else:
                found = found.fields.get(name)
        return found


def extent_of(schema: Schema, *, root: bool = False) -> Extent | None:
    """The extent of a schema's values; None if expressions cannot see them."""
    if schema.int_or_string:
        return Extent(_length(schema, _LONGEST_TEXT), 1)
    if schema.type == "array":
        return _of_array(schema)
    if schema.type == "object":
        return _of_object(schema, root=root)
    if schema.type == "string":
        return _of_string(schema)
    return Extent(0, _SCALARS[schema.type]) if schema.type in _SCALARS else None


def most_repetitions(extent: Extent) -> int:
    """How often a value can occur in one request, if nothing else limits it."""
    return LARGEST_REQUEST // (extent.fewest_bytes + 1)


def _limit(limit: int | None, otherwise: int) -> int:
    return otherwise if limit is None else max(limit, 0)


def _length(schema: Schema, otherwise: int) -> int:
    return otherwise if schema.max_length is None else max(schema.max_length, 0) * _BYTES_PER_CHARACTER


def _of_array(schema: Schema) -> Extent | None:
    if schema.items is None:
        return None
    item = extent_of(schema.items, root=schema.items.embedded_resource)
    if item is None:
        return None
    return Extent(_limit(schema.max_items, (LARGEST_REQUEST - 2) // (item.fewest_bytes + 1)), item=item)


def _of_string(schema: Schema) -> Extent:
    if schema.format == "byte":
        return Extent(_limit(schema.max_length, _LONGEST_TEXT))
    if schema.format in _FORMATS:
        return Extent(*_FORMATS[schema.format])
    longest = _LONGEST_TEXT
    if schema.enum:
        longest = max((len(item.encode()) for item in schema.enum if isinstance(item, str)), default=0)
    return Extent(_length(schema, longest))


def _of_object(schema: Schema, *, root: bool) -> Extent | None:
    if schema.additional is not None and not root:
        value = extent_of(schema.additional, root=schema.additional.embedded_resource)
        if value is None:
            return None
        # a key with its quotes, a colon and a comma go with every value
        most = _limit(schema.max_properties, (LARGEST_REQUEST - 2) // (value.fewest_bytes + 6))
        return Extent(most, key=Extent(), item=value)
    known = {name: extent_of(child, root=child.embedded_resource) for name, child in schema.properties.items()}
    if root:
        known |= _resource_fields(schema)
    fields: dict[str, Extent] = {}
    fewest = _EMPTY
    for name, extent in known.items():
        if extent is None:
            continue
        known_as = escaped(name)
        if known_as is not None:
            fields[known_as] = extent
        if name in schema.required and not _has_default(schema, name):
            fewest += len(name.encode()) + extent.fewest_bytes + 4
    return Extent(0, fewest, fields)


def _has_default(schema: Schema, name: str) -> bool:
    child = schema.properties.get(name)
    return child is not None and child.default is not MISSING and child.default is not None


def _resource_fields(schema: Schema) -> dict[str, Extent | None]:
    """What every object has; a schema that declares all of it itself is taken at its word."""
    metadata = schema.properties.get("metadata")
    inner = {} if metadata is None else metadata.properties
    declared = [schema.properties.get("kind"), schema.properties.get("apiVersion")]
    declared += [inner.get("name"), inner.get("generateName")]
    if metadata is not None and metadata.type == "object" and all(item and item.type == "string" for item in declared):
        return {}
    text = Extent(_LONGEST_TEXT)
    names = {
        name: Extent(min(longest, _limit(inner[name].max_length if name in inner else None, longest)) * 4)
        for name, longest in (("name", _LONGEST_NAME), ("generateName", _LONGEST_PREFIX))
    }
    return {"kind": text, "apiVersion": text, "metadata": Extent(fields=names)}
