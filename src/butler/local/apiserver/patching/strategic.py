"""Strategic merge patch: what kubectl sends for built-in kinds.

Maps merge, lists are replaced unless the schema gives them `patchStrategy: merge`: then lists of objects merge by
their merge key and lists of scalars are united. Directives inside the patch say more: `$patch` deletes or
replaces, `$retainKeys` clears everything else, `$deleteFromPrimitiveList/x` takes scalars out of x, and
`$setElementOrder/x` puts the merged list in order: first the patch's order, then that of the live list, with the
items only the server knows slotted in where they were.

Nothing is changed in place. What the schema does not know is refused in the words of Kubernetes; some of those
refusals are plain 500s there, and so they are here.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Final

from butler.local.apiserver.patching.patches import json_type
from butler.local.apiserver.schemas.schema import Schema
from butler.local.apiserver.wire.govalues import plain, type_name
from butler.local.apiserver.wire.status import ApiError, bad_request

Json = dict[str, Any]

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList"
_ORDER: Final = "$setElementOrder"

_OBJECT: Final = "map[string]interface {}"
_UNKNOWN: Final = Schema()


def strategic_merge(schema: Schema, document: Json, patch: object) -> Json:
    """The document after the patch, which is an object (or null, which changes nothing)."""
    if patch is None:
        return document
    if not isinstance(patch, dict):
        kind = json_type(patch)
        raise bad_request(f"error decoding patch: json: cannot unmarshal {kind} into Go value of type {_OBJECT}")
    return _merge_map(schema, document, patch)


def _failure(message: str) -> ApiError:
    return ApiError(500, "", message)


def _merge_map(schema: Schema, original: Json, patch: Json) -> Json:
    if _PATCH in patch:
        return _directive(patch)
    found, rest = _retained(original, patch)
    for key in [key for key in rest if key.startswith(_ORDER)]:
        _merge_ordered(schema, found, rest, key)
    for key, value in rest.items():
        deleting = key.startswith(_DELETE_FROM)
        name = _directed(key, _DELETE_FROM, "primitive list") if deleting else key
        if value is None:
            found.pop(name, None)
            continue
        current = found.get(name)
        if isinstance(current, dict) and isinstance(value, dict):
            found[name] = _merge_field(schema, name, current, value)
        elif isinstance(current, list) and isinstance(value, list):
            found[name] = _merge_list(schema, name, current, value, deleting=deleting)
        elif not deleting:
            _put(found, name, value)
    return found


def _directive(patch: Json) -> Json:
    if patch[_PATCH] == "replace":
        return {key: value for key, value in patch.items() if key != _PATCH}
    if patch[_PATCH] == "delete":
        return {}
    raise _bad_directive(patch)


def _bad_directive(patch: Json) -> ApiError:
    return _failure(f"unknown patch type: {plain(patch[_PATCH])} in map: {plain(patch)}")


def _retained(original: Json, patch: Json) -> tuple[Json, Json]:
    """Copies of both, with `$retainKeys` done."""
    rest = dict(patch)
    if _RETAIN not in rest:
        return dict(original), rest
    keys = rest.pop(_RETAIN)
    if not isinstance(keys, list):
        raise bad_request("invalid patch format of retainKeys")
    for key, value in rest.items():
        if value is not None and not key.startswith((_DELETE_FROM, _ORDER)) and key not in keys:
            raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in keys}, rest


def _directed(key: str, prefix: str, what: str) -> str:
    """The field a parallel list is about."""
    before, slash, name = key.partition("/")
    if not slash or before != prefix:
        raise bad_request(f"invalid patch format of {what}")
    return name


def _put(found: Json, name: str, value: object) -> None:
    """Take a value as it is, less its nulls and directives."""
    kept, keep = _without_directives(_without_nulls(value))
    if keep:
        found[name] = kept
    else:
        found.pop(name, None)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    return value


def _without_directives(value: Any) -> tuple[Any, bool]:
    """The value without what carries a directive, and whether anything of it is left."""
    if isinstance(value, dict):
        if _PATCH in value:
            return None, False
        pairs = {key: _without_directives(each) for key, each in value.items()}
        return {key: each for key, (each, keep) in pairs.items() if keep}, True
    if isinstance(value, list):
        return [each for each, keep in map(_without_directives, value) if keep], True
    return value, True


def _field(schema: Schema, name: str) -> Schema:
    """The schema of a struct's field."""
    if schema is _UNKNOWN:
        return _UNKNOWN
    found = schema.properties.get(name)
    if found is None:
        if not schema.properties:
            kind = "map" if schema.type in ("object", "") else "slice" if schema.type == "array" else schema.type
            raise _failure(f"merging an object in json but data type is not struct, instead is: {kind}")
        raise _failure(f'unable to find api field in struct {schema.go_name} for the json field "{name}"')
    return found


def _merge_field(schema: Schema, name: str, current: Json, value: Json) -> Json:
    field = _field(schema, name)
    return value if "replace" in field.patch_strategy else _merge_map(field, current, value)


def _merge_list(
    schema: Schema, name: str, current: list[Any], value: list[Any], *, deleting: bool = False
) -> list[Any]:
    field = _field(schema, name)
    if "merge" not in field.patch_strategy and not deleting:
        return value
    if not current and not value:
        return current
    if not _holds_maps(current, value):
        if deleting:
            return [each for each in current if each not in value]
        return _in_order(list(dict.fromkeys([*current, *value])), value, current, "")
    key = field.patch_merge_key
    if not key:
        raise _failure("cannot merge lists without merge key for struct")
    live, wanted = _without_special(current, value, key)
    return _in_order(_merge_items(field.items or _UNKNOWN, live, wanted, key), wanted, live, key)


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether lists hold objects; they must hold one kind of thing, and no lists."""
    kind: str | None = None
    for each in (item for items in lists for item in items):
        found = type_name(each)
        if kind is None and isinstance(each, list):
            raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})
        if kind is not None and kind != found:
            raise _failure(f"list element types are not identical: {plain(list(lists))}")
        kind = found
    if kind is None:
        raise _failure("no elements in any of the given slices")
    return kind == "map[string]interface {}"


def _without_special(current: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """The live items less those the patch deletes, and the patch less its directives."""
    live = current
    wanted: list[Json] = []
    replacing = False
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item:
            wanted.append(item)
        elif directive == "delete":
            if key not in item:
                raise _no_merge_key(item, key)
            live = [each for each in live if not (key in each and each[key] == item[key])]
        elif directive == "replace":
            replacing = True
        elif directive == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(item)
    return (wanted, []) if replacing else (live, wanted)


def _no_merge_key(item: Json, key: str) -> ApiError:
    return _failure(f"map: {plain(item)} does not contain declared merge key: {key}")


def _merge_items(schema: Schema, live: list[Json], wanted: list[Json], key: str) -> list[Json]:
    found = list(live)
    for item in wanted:
        if key not in item:
            raise _no_merge_key(item, key)
        place = _place(found, item[key], key)
        if place is None:
            found.append(item)
        else:
            found[place] = _merge_map(schema, found[place], item)
    return found


def _place(items: list[Any], value: object, key: str) -> int | None:
    """Where in a list the item with this merge key (or, without one, this scalar) is."""
    for index, item in enumerate(items):
        if (item.get(key) if key else item) == value:
            return index
    return None


def _in_order(merged: list[Any], patch_order: list[Any], live_order: list[Any], key: str) -> list[Any]:
    """Items of the patch in its order, with the other items of the live list around them in theirs."""
    if key:
        for item in (*merged, *patch_order, *live_order):
            if key not in item:
                raise _no_merge_key(item, key)

    def value_of(item: Any) -> Any:
        return item[key] if key else item

    def places(items: list[Any], order: list[Any]) -> list[int | None]:
        return [_place(order, value_of(item), key) for item in items]

    in_patch = [place is not None for place in places(merged, patch_order)]
    wanted = [item for item, named in zip(merged, in_patch, strict=True) if named]
    others = [item for item, named in zip(merged, in_patch, strict=True) if not named]
    wanted = _sorted(wanted, places(wanted, patch_order))
    waiting = deque(_sorted(others, places(others, live_order)))
    found: list[Any] = []
    for item, place in zip(wanted, places(wanted, live_order), strict=True):
        # A live item comes before one of the patch only if it did so in the live list.
        while waiting and place is not None:
            before = _place(live_order, value_of(waiting[0]), key)
            if before is None or before >= place:
                break
            found.append(waiting.popleft())
        found.append(item)
    return found + list(waiting)


def _sorted(items: list[Any], places: list[int | None]) -> list[Any]:
    """Items by their places. One without a place goes before whatever stands left of it, as in Kubernetes."""
    known = [place for place in places if place is not None]
    if len(known) == len(items):
        pairs = sorted(zip(known, range(len(items)), strict=True))
        return [items[index] for _, index in pairs]
    found: list[tuple[int | None, Any]] = []
    for place, item in zip(places, items, strict=True):
        at = len(found)
        while at and _goes_before(place, found[at - 1][0]):
            at -= 1
        found.insert(at, (place, item))
    return [item for _, item in found]


def _goes_before(place: int | None, other: int | None) -> bool:
    return place is None or other is None or place < other


def _merge_ordered(schema: Schema, found: Json, rest: Json, directive: str) -> None:
    """Merge the list a `$setElementOrder` is about, and order it; takes both out of the patch."""
    order = rest.pop(directive)
    if not isinstance(order, list):
        raise _failure(f"expected a []interface {{}}, but received a {type_name(order)}")
    name = _directed(directive, _ORDER, "setElementOrder list")
    current, value = found.get(name, []), rest.get(name, [])
    for each in (current, value):
        if not isinstance(each, list):
            raise _failure(f"expected a []interface {{}}, but received a {type_name(each)}")
    field = _field(schema, name)
    if field.type not in ("array", ""):
        raise _failure("expected slice or array type, but got: struct")
    key = field.patch_merge_key
    _check_order(value, order, key)
    if name in found and name in rest:
        merged = _merge_list(schema, name, current, value)
    elif name in rest:
        merged = _without_directives(value)[0]
    elif name in found:
        merged = current
    else:
        return
    _holds_maps(current, value)
    found[name] = _in_order(merged, order, _live_order(current, value, key), key)
    rest.pop(name, None)


def _live_order(current: list[Any], patch: list[Any], key: str) -> list[Any]:
    """The order of the live list when its merged items are put in order.

    Kubernetes merges in place: where items were deleted, new ones have taken their room by then, and count as live.
    """
    if not key or not any(item.get(_PATCH) == "delete" for item in patch):
        return current
    live, wanted = _without_special(current, patch, key)
    new = [item for item in wanted if _place(live, item[key], key) is None]
    return [*live, *new][: len(current)]


def _check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """The items of the patch must stand in the ordering list, in the same order."""
    if not order or not patch:
        return
    waiting = patch
    if key:
        for item in patch:
            if not isinstance(item, dict):
                raise _failure(f"expected a map[string]interface {{}}, but received a {type_name(item)}")
        waiting = [item for item in patch if item.get(_PATCH) != "delete"]
    place = met = 0
    while met < len(waiting) and place < len(order):
        item = waiting[met]
        if isinstance(item, dict) and _PATCH in item:
            met += 1
            continue
        met += _matches(item, order[place], key)
        place += 1
    if met < len(waiting):
        raise _failure(f"The order in patch list:\n{plain(patch)}\n doesn't match {_ORDER} list:\n{plain(order)}\n")


def _matches(item: Any, place: Any, key: str) -> bool:
    if not key:
        return bool(item == place)
    for each in (item, place):
        if not isinstance(each, dict):
            raise _failure(f"expected a map[string]interface {{}}, but received a {type_name(each)}")
        if key not in each:
            raise _no_merge_key(each, key)
    return bool(item[key] == place[key])
