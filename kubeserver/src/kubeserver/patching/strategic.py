"""Strategic merge patch: what kubectl sends for built-in kinds.

Maps merge, lists are replaced unless the schema gives them `patchStrategy: merge`: then lists of objects merge by
their merge key and lists of scalars are united. Directives inside the patch say more: `$patch` deletes or
replaces, `$retainKeys` clears everything else, `$deleteFromPrimitiveList/x` takes scalars out of x, and
`$setElementOrder/x` puts the merged list in order: first the patch's order, then that of the live list, with the
items only the server knows slotted in where they were.

Items are found by an index of their merge keys: lists of tens of thousands cost what they are long, whatever a patch
does with them. Nothing is changed in place. What the schema does not know is refused in the words of Kubernetes;
some of those refusals are plain 500s there, and so they are here.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubeserver.patching.patches import json_type
from kubeserver.schemas.schema import Schema
from kubeserver.wire.govalues import plain, type_name
from kubeserver.wire.status import ApiError, bad_request

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

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
    named = {key for key in keys if isinstance(key, str)}
    for key, value in rest.items():
        if value is not None and not key.startswith((_DELETE_FROM, _ORDER)) and key not in named:
            raise bad_request("invalid patch format of retainKeys")
    return {key: value for key, value in original.items() if key in named}, rest


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
        return [_without_nulls(item) for item in value]
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
            gone = {_token(item) for item in value}
            return [item for item in current if _token(item) not in gone]
        return _in_order(list(dict.fromkeys([*current, *value])), value, current, "")
    key = field.patch_merge_key
    if not key:
        raise _failure("cannot merge lists without merge key for struct")
    live, wanted = _without_special(current, value, key)
    return _in_order(_merge_items(field.items or _UNKNOWN, live, wanted, key), wanted, live, key)


def _holds_maps(*lists: list[Any]) -> bool:
    """Whether lists hold objects; they must hold one kind of thing, and no lists."""
    kind: str | None = None
    for entry in (item for items in lists for item in items):
        found = type_name(entry)
        if kind is None and isinstance(entry, list):
            raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})
        if kind is not None and kind != found:
            raise _failure(f"list element types are not identical: {plain(list(lists))}")
        kind = found
    if kind is None:
        raise _failure("no elements in any of the given slices")
    return kind == "map[string]interface {}"


def _without_special(current: list[Json], patch: list[Json], key: str) -> tuple[list[Json], list[Json]]:
    """The live items less those the patch deletes, and the patch less its directives."""
    wanted: list[Json] = []
    gone: set[Hashable] = set()
    replacing = False
    for item in patch:
        directive = item.get(_PATCH)
        if _PATCH not in item:
            wanted.append(item)
        elif directive == "delete":
            if key not in item:
                raise _no_merge_key(item, key)
            gone.add(_token(item[key]))
        elif directive == "replace":
            replacing = True
        elif directive == "merge":
            raise _failure("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(item)
    if replacing:
        return wanted, []
    live = [item for item in current if key not in item or _token(item[key]) not in gone] if gone else current
    return live, wanted


def _no_merge_key(item: Json, key: str) -> ApiError:
    return _failure(f"map: {plain(item)} does not contain declared merge key: {key}")


def _merge_items(schema: Schema, live: list[Json], wanted: list[Json], key: str) -> list[Json]:
    found = list(live)
    places = _places(found, key)
    for item in wanted:
        if key not in item:
            raise _no_merge_key(item, key)
        place = places.setdefault(_token(item[key]), len(found))
        if place == len(found):
            found.append(item)
        else:
            found[place] = _merge_map(schema, found[place], item)
    return found


def _token(value: Any) -> Hashable:
    """A value as a key of an index: what is equal has the same."""
    if isinstance(value, (dict, list)):
        return msgspec.json.encode(value, order="deterministic")
    return value  # type: ignore[no-any-return]  # scalars all are


def _tokens(items: Iterable[Any], key: str) -> list[Hashable]:
    """What identifies each item: its merge key, or, without one, the scalar itself."""
    return [_token(item.get(key) if key else item) for item in items]


def _places(items: Iterable[Any], key: str) -> dict[Hashable, int]:
    """Where in a list the first item of each merge key is."""
    found: dict[Hashable, int] = {}
    for place, token in enumerate(_tokens(items, key)):
        found.setdefault(token, place)
    return found


def _in_order(merged: list[Any], patch_order: list[Any], live_order: list[Any], key: str) -> list[Any]:
    """Items of the patch in its order, with the other items of the live list around them in theirs."""
    if key:
        for item in (*merged, *patch_order, *live_order):
            if key not in item:
                raise _no_merge_key(item, key)
    in_patch, in_live = _places(patch_order, key), _places(live_order, key)
    known = list(zip(_tokens(merged, key), merged, strict=True))
    wanted = [(token, item) for token, item in known if token in in_patch]
    others = [(token, item) for token, item in known if token not in in_patch]
    wanted = _sorted(wanted, [in_patch.get(token) for token, _ in wanted])
    waiting = deque(_sorted(others, [in_live.get(token) for token, _ in others]))
    found: list[Any] = []
    for token, item in wanted:
        place = in_live.get(token)
        # A live item comes before one of the patch only if it did so in the live list.
        while waiting and place is not None:
            before = in_live.get(waiting[0][0])
            if before is None or before >= place:
                break
            found.append(waiting.popleft()[1])
        found.append(item)
    return found + [item for _, item in waiting]


def _sorted(items: list[Any], places: list[int | None]) -> list[Any]:
    """Items by their places. One without a place goes before whatever stands left of it, as in Kubernetes.

    There they are put in one by one: an item without a place comes to the front, and one with a place comes right
    behind the last one whose place is not after its own, before anything that stood behind that one already.
    """
    known = sorted((place, index) for index, place in enumerate(places) if place is not None)
    if len(known) == len(items):
        return [items[index] for _, index in known]
    behind: list[list[int]] = [[] for _ in range(len(items) + 1)]  # who came right behind each; the last is the front
    left, right = _neighbours([index for _, index in known], front=len(items))
    for index in reversed(range(len(items))):  # when an item was put in, those of a higher index were not there
        if places[index] is None:
            behind[-1].append(index)
            continue
        behind[left[index]].append(index)
        right[left[index]], left[right[index]] = right[index], left[index]
    found: list[Any] = []
    waiting = list(reversed(behind[-1]))  # the one that came last stands first
    while waiting:
        index = waiting.pop()
        found.append(items[index])
        waiting += reversed(behind[index])
    return found


def _neighbours(order: list[int], *, front: int) -> tuple[dict[int, int], dict[int, int]]:
    """Who stands left and right of each in a row that begins and ends at `front`."""
    row = [front, *order, front]
    pairs = list(pairwise(row))
    return {right: left for left, right in pairs}, dict(pairs)


def _merge_ordered(schema: Schema, found: Json, rest: Json, directive: str) -> None:
    """Merge the list a `$setElementOrder` is about, and order it; takes both out of the patch."""
    order = rest.pop(directive)
    if not isinstance(order, list):
        raise _failure(f"expected a []interface {{}}, but received a {type_name(order)}")
    name = _directed(directive, _ORDER, "setElementOrder list")
    current, value = found.get(name, []), rest.get(name, [])
    for item in (current, value):
        if not isinstance(item, list):
            raise _failure(f"expected a []interface {{}}, but received a {type_name(item)}")
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
    known = _places(live, key)
    new = [item for item in wanted if _token(item[key]) not in known]
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
    for entry in (item, place):
        if not isinstance(entry, dict):
            raise _failure(f"expected a map[string]interface {{}}, but received a {type_name(entry)}")
        if key not in entry:
            raise _no_merge_key(entry, key)
    return bool(item[key] == place[key])
