"""Sets of field paths, kept in the very form Kubernetes writes them: the `fieldsV1` document.

`{"f:spec": {"f:ports": {".": {}, "k:{\\"port\\":80}": {}}}}` is a tree of path elements. An element is text:
`f:name` a field, `k:{...}` the list item with these keys, `v:...` the item of a set, `i:3` an index. An empty
node is a field in the set; a node with children is in the set only if it also holds `.`; the root is no field.
Because the tree *is* the document, reading ownership from an object and writing it back cost nothing, and
two sets are compared at the speed of dict lookups.

Sets are values: no function here changes its arguments, and results share branches with them. Do not change
a set after it was made. Elements are compared as text, so every element must be in canonical form: what
`element_of_key` and `element_of_value` make, or `canonical` for documents that strangers wrote.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from kubeserver.wire.goformat import marshal, number, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

# A tree of path elements. Recursive types buy nothing here: the values are always trees.
FieldSet = dict[str, Any]

SELF: Final = "."
LEAF: Final[FieldSet] = {}  # shared by every set: it is never changed


class BadFieldSetError(ValueError):
    """A `fieldsV1` document that names no fields."""


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in either set."""
    if not left:
        return right
    if not right or left is right:
        return left
    found = dict(left)
    for element, theirs in right.items():
        ours = found.get(element)
        if ours is None:
            found[element] = theirs
        elif ours is not theirs and element != SELF:
            found[element] = _union_node(ours, theirs)
    return found


def _union_node(ours: FieldSet, theirs: FieldSet) -> FieldSet:
    if not ours:
        return theirs if not theirs or SELF in theirs else {SELF: LEAF, **theirs}
    if not theirs:
        return ours if SELF in ours else {SELF: LEAF, **ours}
    return union(ours, theirs)


def intersection(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in both sets."""
    found: FieldSet = {}
    for element, ours in left.items():
        theirs = right.get(element)
        if theirs is None or element == SELF:
            continue
        both = intersection(ours, theirs) if ours and theirs else {}
        if (not ours or SELF in ours) and (not theirs or SELF in theirs):
            found[element] = {SELF: LEAF, **both} if both else LEAF
        elif both:
            found[element] = both
    return found


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` and not in `right`; the children of a removed field stay."""
    if not right:
        return left
    found: FieldSet = {}
    changed = False
    for element, ours in left.items():
        theirs = right.get(element)
        if theirs is None or element == SELF:
            found[element] = ours
            continue
        rest = _difference_node(ours, theirs)
        if rest is not ours:
            changed = True
        if rest is not None:
            found[element] = rest
    return found if changed else left


def _difference_node(ours: FieldSet, theirs: FieldSet) -> FieldSet | None:
    """What is left of a node; None if nothing is."""
    if not ours:
        return None if not theirs or SELF in theirs else ours
    if not theirs:
        return {element: node for element, node in ours.items() if element != SELF} if SELF in ours else ours
    rest = difference(ours, theirs)
    if SELF not in rest:
        return rest or None
    if SELF not in theirs:
        return LEAF if len(rest) == 1 else rest
    rest = {element: node for element, node in rest.items() if element != SELF}
    return rest or None


def without(left: FieldSet, right: FieldSet) -> FieldSet:
    """What is in `left` and neither in `right` nor below a field of it."""
    if not right:
        return left
    found: FieldSet = {}
    changed = False
    for element, ours in left.items():
        theirs = right.get(element)
        if theirs is None or element == SELF:
            found[element] = ours
        elif not theirs or SELF in theirs:
            changed = True
        else:
            rest = without(ours, theirs) if ours else ours
            changed = changed or rest is not ours
            if rest or not ours:
                found[element] = LEAF if len(rest) == 1 and SELF in rest else rest
    return found if changed else left


def contains(fields: FieldSet, path: tuple[str, ...]) -> bool:
    """Whether the field at a path of elements is in the set."""
    node = fields
    for element in path:
        child = node.get(element)
        if child is None:
            return False
        node = child
    return bool(path) and (not node or SELF in node)


def of_path(*elements: str) -> FieldSet:
    """The set that holds one path of elements."""
    found: FieldSet = LEAF
    for element in reversed(elements):
        found = {element: found}
    return found


@lru_cache(maxsize=256)
def of_dotted(*paths: str) -> FieldSet:
    """The set of plain fields, written with dots: `of_dotted("spec", "metadata.labels")`."""
    found: FieldSet = {}
    for path in paths:
        found = union(found, of_path(*(f"f:{name}" for name in path.split("."))))
    return found


def paths(fields: FieldSet) -> Iterator[tuple[str, ...]]:
    """Every path in the set, in the order in which Kubernetes lists conflicts: a node's own before deeper ones."""
    yield from _paths(fields, ())


def _paths(fields: FieldSet, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    elements = sorted((element for element in fields if element != SELF), key=_order)
    for element in elements:
        node = fields[element]
        if not node or SELF in node:
            yield (*above, element)
    for element in elements:
        yield from _paths(fields[element], (*above, element))


def _order(element: str) -> tuple[int, Any]:
    """Fields come before keyed items, those before values, those before indexes; each kind by its content."""
    kind, content = element[0], element[2:]
    if kind == "f":
        return 0, content
    if kind == "k":
        return 1, [(name, _value_order(value)) for name, value in json.loads(content).items()]
    if kind == "v":
        return 2, _value_order(json.loads(content))
    return 3, int(content)


def _value_order(value: object) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, (int, float)):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, json.dumps(value, sort_keys=True)


def text(path: tuple[str, ...]) -> str:
    """A path as conflicts show it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    kind, content = element[0], element[2:]
    if kind == "f":
        return f".{content}"
    if kind == "k":
        return f"[{','.join(f'{name}={_shown(value)}' for name, value in json.loads(content).items())}]"
    if kind == "v":
        return f"[={_shown(json.loads(content))}]"
    return f"[{content}]"


def _shown(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return number(value)
    return marshal(value)


def ordered(fields: FieldSet) -> FieldSet:
    """The same set with its elements sorted, as Kubernetes writes it out."""
    if len(fields) == 1:
        for element, node in fields.items():
            return {element: ordered(node)} if node else fields
    return {element: (ordered(fields[element]) or LEAF) if fields[element] else LEAF for element in sorted(fields)}


@lru_cache(maxsize=8192)
def _json_text(value: str) -> str:
    """Names and keys repeat in every object of a kind, so their text is remembered."""
    return marshal(value)


def element_of_value(value: object) -> str:
    """The element of an item in a set."""
    return f"v:{_value_text(value)}"


def element_of_key(key: tuple[tuple[str, object], ...]) -> str:
    """The element of the list item with these key fields, which must come sorted by name."""
    return "k:{" + ",".join(f"{_json_text(name)}:{_value_text(value)}" for name, value in key) + "}"


def _value_text(value: object) -> str:
    return _json_text(value) if isinstance(value, str) else marshal(value)


def canonical(document: object) -> FieldSet:
    """A `fieldsV1` document that a client wrote, with every element in canonical form.

    Elements of an unknown kind are dropped, as a later Kubernetes may have written them.
    """
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise BadFieldSetError(f"expected an object, got {marshal(document)}")
    found: FieldSet = {}
    for key, below in document.items():
        if key == SELF:
            found[SELF] = LEAF
            continue
        element = _canonical_element(key)
        if element is not None:
            node = canonical(below)
            found[element] = LEAF if not node or (len(node) == 1 and SELF in node) else node
    return found


def of_document(document: object) -> FieldSet:
    """The set a `fieldsV1` document stands for: its root is no field, whatever it says of itself."""
    found = canonical(document)
    return {element: node for element, node in found.items() if element != SELF} if SELF in found else found


def _canonical_element(key: str) -> str | None:
    if len(key) < 2:
        raise BadFieldSetError("key must be 2 characters long:")
    if key[1] != ":":
        raise BadFieldSetError(f"missing colon: {key}")
    content = key[2:]
    try:
        if key[0] == "f":
            return key
        if key[0] == "v":
            return element_of_value(json.loads(content))
        if key[0] == "k":
            fields = json.loads(content)
            if not isinstance(fields, dict):
                raise BadFieldSetError(f"expected an object of key fields: {key}")
            return element_of_key(tuple(sorted(fields.items())))
        if key[0] == "i":
            return f"i:{int(content)}"
    except ValueError as error:
        raise BadFieldSetError(str(error)) from error
    return None
