"""JSON patch (RFC 6902) and JSON merge patch (RFC 7396), with the habits of the library Kubernetes uses.

Kubernetes is not strict where the RFCs are: `replace` adds a missing member, a negative index counts from the
end, `copy` of a missing member copies null, whatever stands before the first slash is ignored, and nulls inside
what a merge patch adds are dropped, also below lists. Clients rely on it, so this module does the same.

A patch that cannot be applied is refused with the one sentence Kubernetes has for all of them. Results share
branches with the document, which is never changed; callers compare what they kept by identity.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kubeserver.wire.messages import decode, encode
from kubeserver.wire.status import ApiError, bad_request

Json = dict[str, Any]

MOST_OPERATIONS: Final = 10_000
MOST_COPIED: Final = 3 * 1024 * 1024  # bytes, by all copies together: each could double the document

_INDEX: Final = re.compile(r"[+-]?[0-9]+")
_TEXTS: Final = ("op", "path", "from")
_MEMBERS: Final = frozenset({"op", "path", "from", "value"})


class _Inapplicable(Exception):
    """An operation that does not fit the document."""


def json_patch(document: Json, operations: object) -> Any:
    """The document after all operations; a list that does not apply as a whole is refused."""
    if operations is None:
        return document
    if not isinstance(operations, list):
        raise _wrong_type(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        _check_operation(operation)
    if len(operations) > MOST_OPERATIONS:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(operations)}",
        )
    edits = _Edits(document)
    try:
        for operation in operations:
            edits.step(operation or {})
    except _Inapplicable:
        raise ApiError(
            422, "Invalid", "the server rejected our request due to an error in our request", details={}
        ) from None
    return edits.document


def _check_operation(operation: object) -> None:
    if operation is None:
        return
    if not isinstance(operation, dict):
        raise _wrong_type(operation, "Go value of type handlers.jsonPatchOp")
    for name in _TEXTS:
        value = operation.get(name)
        if value is not None and not isinstance(value, str):
            raise _wrong_type(value, f"Go struct field jsonPatchOp.{name} of type string")


def _wrong_type(value: object, target: str) -> ApiError:
    return bad_request(f"error decoding patch: json: cannot unmarshal {json_type(value)} into {target}")


def json_type(value: object) -> str:
    """The kind of a JSON value as Go's decoder names it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


class _Edits:
    """A document on its way through a patch. What was not made here is copied before its first edit, and only then."""

    def __init__(self, document: Any) -> None:
        self.document = document
        self._own: dict[int, Any] = {}  # by id; holding them keeps ids from being used again
        self._copied = 0

    def step(self, operation: Json) -> None:
        op, path = operation.get("op"), operation.get("path")
        if op == "move":
            pointer = _pointer(operation.get("from"))
            moved = _value_at(self.document, pointer)
            _removed(self._container(pointer), pointer[-1])
            self._add(_pointer(path), moved)
        elif op == "copy":
            self._add(_pointer(path), self._copy(_value_at(self.document, _pointer(operation.get("from")))))
        elif path == "" and op in ("replace", "test"):
            self.document = _whole(self.document, op, operation.get("value"))
        else:
            self._plain_step(op, _pointer(path), operation.get("value"))

    def _plain_step(self, op: Any, pointer: list[str], value: Any) -> None:
        if op == "add":
            self._add(pointer, value)
        elif op == "remove":
            _removed(self._container(pointer), pointer[-1])
        elif op == "replace":
            _replaced(self._container(pointer), pointer[-1], value)
        elif op != "test" or not _alike(_value_at(self.document, pointer), value):
            raise _Inapplicable

    def _add(self, pointer: list[str], value: Any) -> None:
        _added(self._container(pointer), pointer[-1], value)

    def _copy(self, value: Any) -> Any:
        """A value of its own, so that an edit in one place does not show in the other."""
        text = encode(value)
        self._copied += len(text)
        if self._copied > MOST_COPIED:
            raise _Inapplicable
        return decode(text)

    def _container(self, pointer: list[str]) -> Any:
        """What a pointer's last part is in, ours to change, and all above it."""
        at = self.document = self._mine(self.document)
        for part in pointer[:-1]:
            below = _get(at, part)
            mine = self._mine(below)
            if mine is not below:
                _replaced(at, part, mine)
            at = mine
        return at

    def _mine(self, value: Any) -> Any:
        if not isinstance(value, (dict, list)):
            raise _Inapplicable
        if id(value) in self._own:
            return value
        mine = value.copy()
        self._own[id(mine)] = mine
        return mine


def _whole(document: Any, op: str, value: Any) -> Any:
    if op == "test":
        if not _alike(document, value):
            raise _Inapplicable
        return document
    if not isinstance(value, (dict, list)):
        raise _Inapplicable
    return value


def _pointer(path: str | None) -> list[str]:
    if path is None:
        raise _Inapplicable
    parts = path.split("/")
    if len(parts) < 2:
        raise _Inapplicable
    return [part.replace("~1", "/").replace("~0", "~") for part in parts[1:]]


def _value_at(document: Any, pointer: list[str]) -> Any:
    """What a pointer leads to; a missing member of an object reads as null."""
    at = document
    for part in pointer[:-1]:
        at = _get(at, part)
        if at is None:
            raise _Inapplicable
    return _get(at, pointer[-1])


def _get(at: Any, key: str) -> Any:
    if isinstance(at, dict):
        return at.get(key)
    if isinstance(at, list):
        return at[_index(key, len(at))]
    raise _Inapplicable


def _index(key: str, size: int) -> int:
    """The place a key means in a list with `size` places."""
    if not _INDEX.fullmatch(key):
        raise _Inapplicable
    index = int(key)
    if index >= size or index < -size:
        raise _Inapplicable
    return index + size if index < 0 else index


def _added(at: Any, key: str, value: Any) -> None:
    if isinstance(at, dict):
        at[key] = value
    elif key == "-":
        at.append(value)
    else:
        at.insert(_index(key, len(at) + 1), value)


def _removed(at: Any, key: str) -> None:
    if isinstance(at, dict):
        if key not in at:
            raise _Inapplicable
        del at[key]
    else:
        del at[_index(key, len(at))]


def _replaced(at: Any, key: str, value: Any) -> None:
    if isinstance(at, dict):
        at[key] = value
    else:
        at[_index(key, len(at))] = value


def _alike(left: Any, right: Any) -> bool:
    """Equal as texts: 1 is neither 1.0 nor true."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_alike(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_alike, left, right))
    return type(left) is type(right) and bool(left == right)


def merge_patch(document: Json, patch: object) -> Json:
    """The document with the patch merged into it: null removes, objects merge, all else replaces."""
    if patch is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(patch, dict):
        raise _wrong_type(patch, "Go value of type map[string]interface {}")
    return _merged(document, patch)


def _merged(document: Json, patch: Json) -> Json:
    found = dict(document)
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
            continue
        current = found.get(name)
        if not isinstance(current, dict):
            found[name] = _without_nulls(value)
        elif isinstance(value, dict):
            found[name] = _merged(current, value)
        else:
            found[name] = value
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
