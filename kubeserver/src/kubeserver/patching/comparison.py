"""Two objects side by side: which fields were added, changed or removed, and which fields an object holds.

These walks decide who owns what, so they follow structured-merge-diff to the letter, including its two ways of
counting the same value: a field that a write *adds* is counted together with every map and list on the way
(`added`), while an applied configuration counts leaves, map entries and list items, but not the structs around
them (`field_set`).

Every write of the server passes here. What two objects share is recognised by identity and skipped, so code
that changes an object should keep the branches it did not touch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kubeserver.patching.fieldsets import LEAF, SELF, FieldSet
from kubeserver.patching.shapes import ATOMIC, DEDUCED, NoElementError, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable


class Comparison(NamedTuple):
    removed: FieldSet
    modified: FieldSet
    added: FieldSet


def compare(shape: Shape, old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """What changed from one object to the other."""
    found = Comparison({}, {}, {})
    _compare_maps(shape, old, new, found)
    return found


def same(left: object, right: object) -> bool:
    """Whether two JSON values are equal; unlike ==, 1 is not true."""
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(same(mine, theirs) for mine, theirs in zip(left, right, strict=True))
    return isinstance(left, bool) == isinstance(right, bool)


def _compare_maps(shape: Shape, old: dict[str, Any], new: dict[str, Any], found: Comparison) -> None:
    removed, _, added = found
    fields, element = shape.fields, shape.element or DEDUCED
    for name, value in new.items():
        if name not in old:
            added[f"f:{name}"] = whole(fields.get(name, element), value)
            continue
        before = old[name]
        if before is value:
            continue
        child = fields.get(name, element)
        if before == value and not child.untyped_inside:
            continue
        _compare_children(child, before, value, f"f:{name}", found)
    for name, before in old.items():
        if name not in new:
            removed[f"f:{name}"] = whole(fields.get(name, element), before)


def _compare_children(shape: Shape, old: object, new: object, element: str, found: Comparison) -> None:
    """Compare two values that are both there, and hang what differs under `element`."""
    below = Comparison({}, {}, {})
    if _compare(shape, old, new, below):
        found.modified[element] = {SELF: LEAF, **below.modified} if below.modified else LEAF
    elif below.modified:
        found.modified[element] = below.modified
    if below.removed:
        found.removed[element] = below.removed
    if below.added:
        found.added[element] = below.added


def _compare(shape: Shape, old: object, new: object, below: Comparison) -> bool:
    """Compare two values; True if the value itself is modified, as a leaf is."""
    if shape.map:
        old_map = old if isinstance(old, dict) else None
        new_map = new if isinstance(new, dict) else None
        if old_map or new_map:
            if not shape.atomic_map:
                _compare_maps(shape, old_map or {}, new_map or {}, below)
            # A map on one side only and a value of another kind on the other: the kind changed.
            return (shape.atomic_map and not same(old, new)) or _kind_changed(old, new)
    if shape.list:
        old_list = old if isinstance(old, list) else None
        new_list = new if isinstance(new, list) else None
        if (old_list or new_list) and shape.list_type != ATOMIC:
            _compare_lists(shape, old_list or [], new_list or [], below)
            return _kind_changed(old, new)
    return not same(old, new)


def _kind_changed(old: object, new: object) -> bool:
    """Whether one side is a container and the other a scalar; null takes whatever kind the other side has."""
    if old is None or new is None:
        return False
    return isinstance(old, dict) != isinstance(new, dict) or isinstance(old, list) != isinstance(new, list)


def _compare_lists(shape: Shape, old: list[Any], new: list[Any], found: Comparison) -> None:
    removed, modified, added = found
    items = shape.items or DEDUCED
    before, after = grouped(shape, old), grouped(shape, new)
    for element, theirs in after.items():
        ours = before.get(element, ())
        if not ours and len(theirs) == 1:
            added[element] = whole(items, theirs[0])
        elif len(ours) == 1 and len(theirs) == 1:
            if ours[0] is not theirs[0] and (items.untyped_inside or ours[0] != theirs[0]):
                _compare_children(items, ours[0], theirs[0], element, found)
        elif len(ours) > 1 and len(theirs) > 1:
            if not same(list(ours), list(theirs)):
                modified[element] = LEAF
        elif len(ours) > 1:
            # Duplicates have one owner together; a single item is owned field by field.
            added[element] = whole(items, theirs[0])
            removed[element] = LEAF
        else:
            if ours:
                removed[element] = whole(items, ours[0])
            added[element] = LEAF
    for element, ours in before.items():
        if element not in after:
            removed[element] = whole(items, ours[0]) if len(ours) == 1 else LEAF


def grouped(shape: Shape, items: Iterable[object]) -> dict[str, list[Any]]:
    """The items of a set or keyed list by their path element; items that have none are left out."""
    found: dict[str, list[Any]] = {}
    for item in items:
        try:
            element = shape.path_element(item)
        except NoElementError:
            continue
        if element in found:
            found[element].append(item)
        else:
            found[element] = [item]
    return found


def whole(shape: Shape, value: object) -> FieldSet:
    """The node of a value that is there on one side only: itself and everything in it."""
    if isinstance(value, dict):
        if not value or not shape.map or shape.atomic_map:
            return LEAF
        node: FieldSet = {SELF: LEAF}
        fields, element = shape.fields, shape.element or DEDUCED
        for name, each in value.items():
            if isinstance(each, (dict, list)):
                node[f"f:{name}"] = whole(fields.get(name, element), each)
            else:
                node[f"f:{name}"] = LEAF
        return node
    if isinstance(value, list):
        if not value or not shape.list or shape.list_type == ATOMIC:
            return LEAF
        items = shape.items or DEDUCED
        node = {SELF: LEAF}
        for element_text, several in grouped(shape, value).items():
            node[element_text] = whole(items, several[0]) if len(several) == 1 else LEAF
        return node
    return LEAF


def field_set(shape: Shape, value: dict[str, Any]) -> FieldSet:
    """The fields a configuration speaks of: leaves, entries of maps and items of lists."""
    return _map_fields(shape, value)


def _map_fields(shape: Shape, value: dict[str, Any]) -> FieldSet:
    found: FieldSet = {}
    fields, element = shape.fields, shape.element or DEDUCED
    for name, each in value.items():
        child = fields.get(name)
        below, leaf = _fields(child or element, each)
        # Fields of a struct are owned through what is in them; entries of a map are things of their own.
        itself = leaf or child is None or each is None or each == {}
        if itself:
            found[f"f:{name}"] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            found[f"f:{name}"] = below
    return found


def _fields(shape: Shape, value: object) -> tuple[FieldSet, bool]:
    """The fields below a value, and whether the value itself is one."""
    if isinstance(value, dict) and shape.map:
        return (LEAF, True) if shape.atomic_map else (_map_fields(shape, value), False)
    if isinstance(value, list) and shape.list:
        if shape.list_type == ATOMIC:
            return LEAF, True
        found: FieldSet = {}
        items = shape.items or DEDUCED
        for element, several in grouped(shape, value).items():
            below = _fields(items, several[0])[0] if len(several) == 1 else LEAF
            found[element] = {SELF: LEAF, **below} if below else LEAF
        return found, False
    return LEAF, True


def with_structs(shape: Shape | None, fields: FieldSet) -> FieldSet:
    """The set together with the struct fields on the way to its members, which are otherwise not counted."""
    found: FieldSet = {}
    for element, node in fields.items():
        if element == SELF or not node:
            found[element] = node
            continue
        child, named = _descend(shape, element)
        below = with_structs(child, node)
        found[element] = {SELF: LEAF, **below} if named and SELF not in below else below
    return found


def _descend(shape: Shape | None, element: str) -> tuple[Shape | None, bool]:
    if shape is None:
        return None, False
    if element[0] == "f" and shape.map:
        field = shape.fields.get(element[2:])
        return field or shape.element, field is not None
    if element[0] == "k" and shape.list:
        return shape.items, False
    return None, False
