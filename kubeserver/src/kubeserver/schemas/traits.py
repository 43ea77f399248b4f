"""What occurs anywhere in a schema, so that whole passes over an object can be left out.

Most schemas have no embedded resources, many have no rules. Each trait is one bit, gathered once per node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubeserver.schemas.schema import MISSING

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema

RULES: Final = 1
UNIQUE_ITEMS: Final = 2  # lists that are sets or maps
EMBEDDED: Final = 4
DEFAULTS: Final = 8


def traits_of(schema: Schema) -> int:
    """The traits of a node and of everything below it. For schemas of custom resources, which are trees."""
    if schema.traits < 0:
        if schema.authored is not None:
            # What is shown of a definition's metadata is not what is asked of it.
            schema.traits = traits_of(schema.authored)
            return schema.traits
        schema.traits = 0  # should a node be inside itself after all: what it adds is added by the outer visit
        schema.traits = _own(schema)
        for child in (*schema.properties.values(), schema.additional, schema.items):
            if child is not None:
                schema.traits |= traits_of(child)
    return schema.traits


def _own(schema: Schema) -> int:
    found = RULES if schema.rules else 0
    if schema.list_type in ("set", "map"):
        found |= UNIQUE_ITEMS
    if schema.embedded_resource:
        found |= EMBEDDED
    if schema.default is not MISSING:
        found |= DEFAULTS
    return found
