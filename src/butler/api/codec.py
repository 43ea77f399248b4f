"""Between bytes and typed resources.

Decoding takes what it knows and steps over the rest: fields of newer versions, and `managedFields`, which it never
builds. It checks types, not limits (see `schema`). Encoding leaves out what holds its default, which the API server
fills in again.

Because unknown fields are stepped over, a decoded object must not be sent back whole: that would erase them. Write
with a patch. `merge_patch` makes one that says only what changed, and nothing when nothing did.
"""

from typing import Any, TypeVar, cast

import msgspec

from butler.api.meta import ListOf, ObjectMeta
from butler.api.schema import Part

Kind = TypeVar("Kind", bound=Part)
Json = dict[str, Any]

_decoders: dict[object, msgspec.json.Decoder[Any]] = {}
_encoder = msgspec.json.Encoder()


def _decoder(type_: object) -> msgspec.json.Decoder[Any]:
    if type_ not in _decoders:
        _decoders[type_] = msgspec.json.Decoder(cast("Any", type_))
    return _decoders[type_]


def decode(kind: type[Kind], data: bytes | str) -> Kind:
    """A resource, or part of one, from JSON. Raises `msgspec.ValidationError` naming the field that is wrong."""
    return cast("Kind", _decoder(kind).decode(data))


def decode_list(kind: type[Kind], data: bytes | str) -> ListOf[Kind]:
    """One page of resources from JSON."""
    return cast("ListOf[Kind]", _decoder(ListOf[kind]).decode(data))  # type: ignore[valid-type]


def from_json(kind: type[Kind], data: Json) -> Kind:
    """A resource from plain dicts and lists, as YAML gives them."""
    return msgspec.convert(data, kind)


def encode(part: Part) -> bytes:
    """A resource, or part of one, as JSON."""
    return _encoder.encode(part)


def to_json(part: Part) -> Json:
    """A resource, or part of one, as plain dicts and lists."""
    # Not `to_builtins`: it keeps tuples, and a tuple never equals the list that comes back from a server.
    return cast("Json", msgspec.json.decode(_encoder.encode(part)))


def merge_patch(before: Part, after: Part) -> Json:
    """The JSON merge patch (RFC 7386) from one to the other; empty when they are the same.

    A field that went back to its default is set to null, so that the server forgets it and fills the default in.
    """
    return {} if before == after else json_merge_patch(to_json(before), to_json(after))


def status_patch(metadata: ObjectMeta, before: Part, after: Part) -> Json | None:
    """The merge patch for a status, valid for exactly this version of the object; None when nothing changed."""
    changes = merge_patch(before, after)
    if not changes:
        return None
    return {
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "status": changes,
    }


def json_merge_patch(before: Json, after: Json) -> Json:
    """The JSON merge patch (RFC 7386) between two documents; null and absent are the same to it."""
    patch: Json = {key: None for key in before if key not in after}
    for key, value in after.items():
        old = before.get(key)
        if isinstance(old, dict) and isinstance(value, dict):
            if below := json_merge_patch(old, value):
                patch[key] = below
        elif old != value:
            patch[key] = value
    return patch
