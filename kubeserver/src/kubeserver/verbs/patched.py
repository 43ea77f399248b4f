"""What Kubernetes says of a patch whose result is no object of its kind.

A body that cannot be decoded is a bad request; the same mistake made through a patch is an invalid one, told as a
fault of the field `patch`. Clients act on the difference: after the first `kubectl edit` gives up, after the second
it opens the editor again with the message on top. A strategic merge patch is not even decoded from text, so that
its messages come from another part of Go and show the patch where others show the object it led to.

Nothing here decides whether a patch is refused; it only finds the words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from kubeserver.wire.goformat import printed
from kubeserver.wire.status import ApiError, FieldError, invalid

if TYPE_CHECKING:
    from kubeserver.resources import Resource

Json = dict[str, Any]

_PREFIX: Final = re.compile(
    r'[^"]* in version "[^"]*" cannot be handled as a \S+: (?:metadata: Invalid value: .*?: (?=json: ))?'
    r"|the object provided is unrecognized \(must be of type \S+\): ",
    re.DOTALL,
)
_EXCERPT: Final = re.compile(r" \([^()]*\)$")
_MISTYPED: Final = re.compile(r"json: cannot unmarshal (\S+)(?: (\S+))? into Go struct field \S+ of type (.+)")
_IN_MEMORY: Final = {"array": "slice", "object": "map[string]interface {}", "number": "int64"}


def refusal_of_result(resource: Resource, name: str, sent: bytes, refusal: ApiError) -> ApiError:
    """The refusal for a JSON or merge patch: `sent` is the object it led to, `refusal` what decoding said of it."""
    if refusal.code != 400:
        return refusal
    found = re.match(r"the API version in the data \((.*?)\) does not match", refusal.message)
    if found and resource.custom:
        error = FieldError("FieldValueInvalid", "apiVersion", f"must be {resource.api_version}", found[1])
        return invalid(resource.group, resource.kind, name, [error])
    text = sent.decode()
    return _fault(_why(refusal).replace("missing in ''", f"missing in '{text}'"), text)


def refusal_of_changes(changes: Json, refusal: ApiError) -> ApiError:
    """The refusal for a strategic merge patch."""
    if refusal.code != 400:
        return refusal
    return _fault(_converted(_why(refusal)), printed(changes))


def _fault(why: str, shown: str) -> ApiError:
    return invalid("", "", "", [FieldError("FieldValueInvalid", "patch", why, shown)])


def _why(refusal: ApiError) -> str:
    prefix = _PREFIX.match(refusal.message)
    if prefix is None:
        return refusal.message
    why = refusal.message[prefix.end() :]
    return _EXCERPT.sub("", why) if prefix[0].startswith("the object") else why


def _converted(why: str) -> str:
    """A complaint of Go's JSON decoder in the words of the conversion from maps to structs."""
    if why.startswith("illegal base64"):
        return f"error decoding from json: {why}"
    found = _MISTYPED.fullmatch(why)
    if found is None:
        return why
    value, literal, wanted = found.groups()
    is_ = "float64" if literal and "." in literal else _IN_MEMORY.get(value, value)
    if wanted.startswith("map["):
        return f"cannot restore map from {is_}"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {is_}"
    if "." in wanted:
        return f"cannot restore struct from: {is_}"
    if (is_, wanted) == ("int64", "string") or (literal and wanted.startswith("int")):
        return f"cannot convert {is_} to {wanted}"
    return f"unrecognized type: {wanted}"
