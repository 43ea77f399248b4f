"""What occurs anywhere in a schema, so that whole passes over an object can be left out.

Most schemas have no embedded resources, many have no rules. Each trait is one bit, gathered once per node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from butler.local.apiserver.schema import Schema

RULES: Final = 1
UNIQUE_ITEMS: Final = 2  # lists that are sets or maps
EMBEDDED: Final = 4


def traits_of(schema: Schema) -> int:
    """The traits of a node and of everything below it."""
    if schema.traits < 0:
        schema.traits = 0  # what a node inside itself adds is added by the outer visit
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
    # What is shown of a definition's metadata is not what is validated of it.
    return found if schema.authored is None else traits_of(schema.authored)
