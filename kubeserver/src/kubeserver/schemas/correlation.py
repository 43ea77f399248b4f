"""Which old value a new value is compared with when an object is updated.

Kubernetes forgives an update what the update did not touch: an invalid value that was there before stays accepted
as long as it is unchanged ("ratcheting"), and transition rules see the old value as `oldSelf`. Both need to know
which old value belongs to a new one. Map entries belong together by key and items of a `list-type: map` by their
map keys; items of other lists belong to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema


class Correlated:
    """A new value next to its old one. Equality is worked out once, from the children up."""

    __slots__ = ("_equal", "_index", "new", "old", "schema")

    def __init__(self, schema: Schema, new: Any, old: Any) -> None:
        self.schema = schema
        self.new = new
        self.old = old
        self._equal: bool | None = None
        self._index: dict[Any, Any] | None = None

    def key(self, name: str) -> Correlated | None:
        """The child under a map's key, if both sides have it."""
        if not isinstance(self.new, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.new or name not in self.old:
            return None
        schema = self.schema.properties.get(name) or self.schema.additional
        return None if schema is None else Correlated(schema, self.new[name], self.old[name])

    def item(self, index: int) -> Correlated | None:
        """The item of a list that is a map by its keys, if the old list has the same key."""
        if self.schema.items is None or not isinstance(self.new, list) or not isinstance(self.old, list):
            return None
        if self._index is None:
            self._index = keyed_items(self.schema, self.old)
        key = map_key(self.schema, self.new[index])
        if key is None or key not in self._index:
            return None
        return Correlated(self.schema.items, self.new[index], self._index[key])

    def equal(self) -> bool:
        if self._equal is None:
            self._equal = self._compare()
        return self._equal

    def _compare(self) -> bool:
        new, old = self.new, self.old
        if isinstance(new, list) and isinstance(old, list) and self.schema.list_type == "map":
            if len(new) != len(old):
                return False
            children = [self.item(index) for index in range(len(new))]
            return all(child is not None and child.equal() for child in children)
        if isinstance(new, dict) and isinstance(old, dict):
            if len(new) != len(old):
                return False
            for name in new:
                child = self.key(name)
                if child is None or not child.equal():
                    return False
            return True
        return same(new, old)


def same(left: Any, right: Any) -> bool:
    """Equality of JSON values in which `true` is not 1 and `1` is not 1.0."""
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, dict):
        return len(left) == len(right) and all(key in right and same(each, right[key]) for key, each in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(same(one, other) for one, other in zip(left, right, strict=True))
    return bool(left == right)


def map_key(schema: Schema, item: Any) -> Any:
    """The key of an item of a `list-type: map`; None where it has none."""
    if schema.list_type != "map" or not schema.list_map_keys or not isinstance(item, dict):
        return None
    key: list[Any] = []
    for name in schema.list_map_keys:
        value = item.get(name)
        if not isinstance(value, (str, int, float, bool)):
            return None
        key.append((value.__class__, value))
    return tuple(key)


def keyed_items(schema: Schema, items: list[Any]) -> dict[Any, Any]:
    """The items of a `list-type: map` by key; the first of several with one key counts."""
    found: dict[Any, Any] = {}
    for item in items:
        key = map_key(schema, item)
        if key is not None and key not in found:
            found[key] = item
    return found
