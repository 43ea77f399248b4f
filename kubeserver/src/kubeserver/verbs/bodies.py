"""Reading what a client sent: the right format, the right kind, and every field known or spoken of.

How strictly unknown and repeated fields are taken is the client's choice (`fieldValidation`): refused, answered with a
warning, or dropped in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kubeserver.patching.patches import json_type
from kubeserver.schemas.decode import MOST_COMPLAINTS, Decoded, read, read_protobuf, strict_error, take
from kubeserver.wire.gojson import TextError, read_json, read_yaml
from kubeserver.wire.messages import JSON, YAML, Request
from kubeserver.wire.protobuf import PROTOBUF, ProtobufError, TypeMeta, decode_kubernetes
from kubeserver.wire.status import ApiError, bad_request, unsupported_media_type

if TYPE_CHECKING:
    from kubeserver.resources import Resource

Json = dict[str, Any]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


_GO_TYPES: Final = {dict: "object", list: "[]string", int: "int64", str: "string"}
_ALL_PATCHES: Final = frozenset({JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH})


class PatchTypes(NamedTuple):
    """Which content types ask for which kind of patch."""

    apply: frozenset[str]
    strategic: frozenset[str]


PATCHES: Final = PatchTypes(frozenset({APPLY_PATCH}), frozenset({STRATEGIC_PATCH}))


def read_object(
    request: Request, resource: Resource, field_validation: str, warnings: list[str], obj: Json | None = None
) -> Json:
    """The object of a request's body (or one that a patch led to), decoded as one of the resource's kind."""
    if obj is not None:
        decoded = take(obj, resource)
    else:
        decoded = _decoded(request, resource, strict=field_validation != "Ignore")
    if decoded.complaints and field_validation == "Strict":
        raise strict_error(decoded, resource)
    if field_validation == "Warn":
        warnings += decoded.complaints[:MOST_COMPLAINTS]
    return decoded.obj


def _decoded(request: Request, resource: Resource, *, strict: bool) -> Decoded:
    if request.content_type == PROTOBUF:
        if resource.custom:  # there is no message for it; a real kube-apiserver drops the connection
            raise unsupported_media_type([JSON, YAML])
        return read_protobuf(request.body, resource)
    if request.content_type not in ("", JSON, YAML):
        raise unsupported_media_type([JSON, YAML, PROTOBUF])
    return read(request.body, resource, yaml=request.content_type == YAML, strict=strict)


def read_any(request: Request, default: TypeMeta | None = None) -> Json:
    """A body whose kind the path decides; `default` is what it is in protobuf if it does not say so itself."""
    if request.content_type not in ("", JSON, YAML, PROTOBUF):
        raise unsupported_media_type([JSON, YAML, PROTOBUF])
    if request.content_type == PROTOBUF:
        try:
            return decode_kubernetes(request.body, default)
        except ProtobufError as error:
            raise bad_request(str(error)) from None
    try:
        found = read_yaml(request.body)[0] if request.content_type == YAML else read_json(request.body)
    except TextError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("the body of the request is not an object")
    return found


def part(body: Json, path: str, kind: type, of: str) -> Any:
    """The value at a dotted path of a body that has no schema here; None if it is not given, refused if misshapen."""
    at: Any = body
    *above, last = path.split(".")
    for name, wanted in (*((text, dict) for text in above), (last, kind)):
        at = at.get(name)
        if at is None:
            return None
        if not isinstance(at, wanted) or (isinstance(at, bool) and wanted is not bool):
            where = f"Go struct field {of}.{path} of type {_GO_TYPES.get(wanted, wanted.__name__)}"
            raise bad_request(f"json: cannot unmarshal {json_type(at)} into {where}")
    return at


def read_apply(request: Request, field_validation: str, warnings: list[str]) -> Json:
    """The configuration of a server-side apply: YAML, of which JSON is a part."""
    try:
        found, repeated = read_yaml(request.body)
    except TextError as error:
        raise bad_request(f"error encoding patch: {_line_one(str(error))}") from None
    if not isinstance(found, dict):
        raise bad_request("an apply configuration is an object")
    if repeated and field_validation == "Strict":
        raise bad_request(f"error strict decoding YAML: {', '.join(repeated)}")
    if field_validation == "Warn":
        warnings += repeated
    if not isinstance(found.get("metadata"), dict):
        found["metadata"] = {}
    return found


def _line_one(problem: str) -> str:
    """A problem with YAML, with the place that people look for first."""
    return problem if "line " in problem else problem.replace("yaml: ", "yaml: line 1: ", 1)


def read_patch(request: Request, resource: Resource) -> Any:
    """The body of a JSON, merge or strategic merge patch."""
    supported = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not resource.custom:
        supported.insert(2, STRATEGIC_PATCH)
    if request.content_type not in supported:
        if request.content_type not in _ALL_PATCHES:
            raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
        raise unsupported_media_type(supported)
    try:
        return read_json(request.body)
    except (TextError, RecursionError):
        raise bad_request("invalid JSON patch") from None


def read_options(request: Request) -> Json | None:
    """The DeleteOptions in the body of a deletion, if there are any."""
    if not request.body:
        return None
    found = read_any(request, TypeMeta("v1", "DeleteOptions"))
    if not isinstance(found.get("preconditions") or {}, dict):
        raise bad_request("DeleteOptions: preconditions is not an object")
    if found.get("kind") not in (None, "DeleteOptions"):
        raise ApiError(400, "BadRequest", "the body of a deletion is a DeleteOptions object")
    return found
