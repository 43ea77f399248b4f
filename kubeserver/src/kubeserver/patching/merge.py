"""An applied configuration and a live object become one; fields that are given up go.

`merge` never takes anything away: the configuration's leaves win, everything else of the live object stays.
`remove` takes away exactly the items of a field set. Both keep the order of lists as structured-merge-diff does:
the configuration's order among its own items, with the live object's other items around them.

Results share branches with their arguments, which are never changed. `check` says what is wrong with a
configuration before any of this runs, in Kubernetes' words.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from kubeserver.patching.fieldsets import SELF, FieldSet, text
from kubeserver.patching.shapes import ATOMIC, DEDUCED, NoElementError, Shape
from kubeserver.wire.govalues import plain, syntax, type_name

Json = dict[str, Any]


def merge(shape: Shape, live: Json, config: Json) -> Json:
    """The live object with the configuration on top."""
    return _merge_maps(shape, live, config)


def _merge_maps(shape: Shape, live: Json, config: Json) -> Json:
    found = dict(live)
    fields, element = shape.fields, shape.element or DEDUCED
    for name, value in config.items():
        if name in found:
            found[name] = _merge(fields.get(name, element), found[name], value)
        else:
            found[name] = value
    return found


def _merge(shape: Shape, live: Any, config: Any) -> Any:
    if shape.map and not shape.atomic_map and isinstance(live, dict) and live:
        if isinstance(config, dict):
            return _merge_maps(shape, live, config)
        if config is None:
            # An explicit null takes no field away; only giving up its ownership does.
            return live
    if shape.list and shape.list_type != ATOMIC and isinstance(live, list) and live:
        if isinstance(config, list):
            return _merge_lists(shape, live, config)
        if config is None and not shape.map:
            return live
    return config


def _merge_lists(shape: Shape, live: list[Any], config: list[Any]) -> list[Any]:
    items = shape.items or DEDUCED
    wanted = {shape.path_element(item): item for item in config}
    order = [(shape.path_element(item), item) for item in live]
    known: dict[str, Any] = {}
    for element, item in order:
        # Duplicates of the live object are replaced by the one item that is applied, not merged with it.
        known[element] = None if element in known else item
    found: list[Any] = []
    left = deque(order)
    right = deque(wanted)
    shared = deque(element for element in wanted if element in known)
    merged: set[str] = set()

    def take(element: str) -> None:
        merged.add(element)
        mine = known.get(element)
        found.append(wanted[element] if mine is None else _merge(items, mine, wanted[element]))
        if shared and shared[0] == element:
            shared.popleft()

    while left or right:
        if left and right:
            element = left[0][0]
            if element == right[0]:
                left.popleft()
                take(right.popleft())
                continue
            if element in wanted and shared and shared[0] != element:
                left.popleft()  # it comes later, where the configuration has it
                continue
        if left:
            element, item = left[0]
            if element not in wanted:
                found.append(item)
                left.popleft()
                continue
            if element in merged:
                left.popleft()
        if right:
            take(right.popleft())
    return found


def remove(shape: Shape, value: Json, fields: FieldSet) -> Json:
    """The object without the items of a field set; a map or list that loses all it had becomes null."""
    return _remove(shape, value, fields) or {}


def _remove(shape: Shape, value: Any, fields: FieldSet) -> Any:
    if isinstance(value, dict) and shape.map:
        return _remove_from_map(shape, value, fields)
    if isinstance(value, list) and shape.list:
        return _remove_from_list(shape, value, fields)
    return value if shape.scalar and not isinstance(value, (dict, list)) else None


def _remove_from_map(shape: Shape, value: Json, fields: FieldSet) -> Json | None:
    if shape.atomic_map:
        return None
    found: Json = {}
    element = shape.element or DEDUCED
    for name, each in value.items():
        node = fields.get(f"f:{name}")
        if node is None:
            found[name] = each
        elif node and SELF not in node:
            found[name] = _remove(shape.fields.get(name, element), each, node)
    return found or None


def _remove_from_list(shape: Shape, value: list[Any], fields: FieldSet) -> list[Any] | None:
    if shape.list_type == ATOMIC:
        return None
    found = []
    items = shape.items or DEDUCED
    for item in value:
        node = fields.get(shape.path_element(item))
        if node is None:
            found.append(item)
        elif node and SELF not in node:
            found.append(_remove(items, item, node))
    return found or None


def without_new_nulls(shape: Shape, value: Json, before: Json) -> Json:
    """The object without the nulls that `remove` left behind where the schema allows none."""
    found: Json = {}
    element = shape.element or DEDUCED
    for name, each in value.items():
        was = before.get(name)
        child = shape.fields.get(name, element)
        if each is None and was is not None:
            if child.nullable:
                found[name] = None
        elif isinstance(each, dict) and isinstance(was, dict) and each is not was and not child.atomic_map:
            found[name] = without_new_nulls(child, each, was)
        elif isinstance(each, list) and isinstance(was, list) and each is not was and child.list_type != ATOMIC:
            found[name] = _items_without_new_nulls(child, each, was)
        else:
            found[name] = each
    return found


def _items_without_new_nulls(shape: Shape, value: list[Any], before: list[Any]) -> list[Any]:
    items = shape.items or DEDUCED
    were = {shape.path_element(item): item for item in before}
    found = []
    for item in value:
        was = were.get(shape.path_element(item)) if item is not None else None
        if isinstance(item, dict) and isinstance(was, dict) and item is not was:
            found.append(without_new_nulls(items, item, was))
        else:
            found.append(item)
    return found


def check(shape: Shape, value: Any, *, duplicates: bool = False) -> list[str]:
    """What is wrong with a value, one `path: problem` each; `duplicates` of live lists may be forgiven."""
    problems: list[tuple[tuple[str, ...], str]] = []
    _check(shape, value, (), duplicates, problems)
    return [f"{text(path)}: {problem}" if path else problem for path, problem in problems]


def _check(
    shape: Shape,
    value: Any,
    path: tuple[str, ...],
    duplicates: bool,
    problems: list[tuple[tuple[str, ...], str]],
) -> None:
    if value is None:
        return
    if isinstance(value, dict) and shape.map:
        _check_map(shape, value, path, duplicates, problems)
    elif isinstance(value, list) and shape.list:
        _check_list(shape, value, path, duplicates, problems)
    elif isinstance(value, (dict, list)) or not _scalar_fits(shape, value):
        problems.append((path, _misfit(shape, value)))


def _check_map(
    shape: Shape, value: Json, path: tuple[str, ...], duplicates: bool, problems: list[tuple[tuple[str, ...], str]]
) -> None:
    # Opaque maps have no shape of entries, and need none.
    element = shape.element if not shape.atomic_map or shape.fields or shape.element else DEDUCED
    for name in sorted(value):
        child = shape.fields.get(name, element)
        if child is None:
            problems.append(((*path, f"f:{name}"), "field not declared in schema"))
            return  # Kubernetes stops at the first
        _check(child, value[name], (*path, f"f:{name}"), duplicates, problems)


def _check_list(
    shape: Shape,
    value: list[Any],
    path: tuple[str, ...],
    duplicates: bool,
    problems: list[tuple[tuple[str, ...], str]],
) -> None:
    items = shape.items or DEDUCED
    seen: set[str] = set()
    for index, item in enumerate(value):
        if shape.list_type == ATOMIC:
            element = f"i:{index}"
        else:
            try:
                element = shape.path_element(item)
            except NoElementError as error:
                problems.append((path, f"element {index}: {error}"))
                return
            if element in seen and not duplicates:
                problems.append((path, f"duplicate entries for key {text((element,))}"))
            seen.add(element)
        _check(items, item, (*path, element), duplicates, problems)


def _scalar_fits(shape: Shape, value: object) -> bool:
    if shape.scalar == "untyped":
        return True
    if shape.scalar == "string":
        return isinstance(value, str)
    if shape.scalar == "boolean":
        return isinstance(value, bool)
    return shape.scalar == "numeric" and isinstance(value, (int, float)) and not isinstance(value, bool)


def _misfit(shape: Shape, value: object) -> str:
    if shape.map:
        return f"expected map, got &{{{plain(value)}}}"
    if shape.scalar == "numeric":
        return f"expected numeric (int or float), got {type_name(value)}"
    if shape.scalar == "string":
        return f"expected string, got &value.valueUnstructured{{Value:{syntax(value)}}}"
    if shape.scalar == "boolean":
        return f"expected boolean, got &{{{plain(value)}}}"
    if shape.scalar:
        return f"expected any scalar, got &{{{plain(value)}}}"
    return f"expected list, got &{{{plain(value)}}}"
