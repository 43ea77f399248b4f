"""Reading what a client sent: the right format, the right kind, and every field known or spoken of.

How strictly unknown and repeated fields are taken is the client's choice (`fieldValidation`): refused, answered with a
warning, or dropped in silence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import yaml

from butler.local.apiserver.messages import JSON, YAML, Request, decode
from butler.local.apiserver.pruning import prune
from butler.local.apiserver.status import ApiError, bad_request, unsupported_media_type

if TYPE_CHECKING:
    from butler.local.apiserver.resources import Resource

Json = dict[str, Any]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"


class PatchTypes(NamedTuple):
    """Which content types ask for which kind of patch."""

    apply: frozenset[str]
    strategic: frozenset[str]


PATCHES: Final = PatchTypes(frozenset({APPLY_PATCH}), frozenset({STRATEGIC_PATCH}))


def read_object(
    request: Request, resource: Resource, field_validation: str, warnings: list[str], obj: Json | None = None
) -> Json:
    """The object of a request's body (or one that a patch led to), checked to be of the resource's kind."""
    if obj is None:
        obj = _parsed(request)
        _check_kind(resource, obj)
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {}
    if resource.custom:
        unknown = prune(resource.schema, obj)
        _judge(unknown, field_validation, warnings)
    return obj


def _parsed(request: Request) -> Json:
    if request.content_type not in ("", JSON, YAML):
        raise unsupported_media_type([JSON, YAML])
    try:
        found = yaml.safe_load(request.body) if request.content_type == YAML else decode(request.body)
    except (msgspec.DecodeError, yaml.YAMLError) as error:
        raise bad_request(f"unable to parse the body: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("the body is not an object")
    return found


def read_any(request: Request) -> Json:
    """A body whose kind the path decides."""
    return _parsed(request)


def _check_kind(resource: Resource, obj: Json) -> None:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not kind:
        obj["kind"] = kind = resource.kind
    if not version:
        obj["apiVersion"] = version = resource.api_version
    if kind != resource.kind or version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({resource.api_version})"
        )


def _judge(unknown: list[str], field_validation: str, warnings: list[str]) -> None:
    if not unknown or field_validation == "Ignore":
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if field_validation == "Strict":
        raise bad_request(f"strict decoding error: {', '.join(texts)}")
    warnings += texts


def read_apply(request: Request, resource: Resource, field_validation: str, warnings: list[str]) -> Json:
    """The configuration of a server-side apply: YAML, of which JSON is a part."""
    try:
        found = yaml.safe_load(request.body)
    except yaml.YAMLError as error:
        raise bad_request(f"error decoding YAML: {error}") from None
    if not isinstance(found, dict):
        raise bad_request("an apply configuration is an object")
    return read_object(request, resource, field_validation, warnings, obj=found)


def read_patch(request: Request, resource: Resource) -> Any:
    """The body of a JSON, merge or strategic merge patch."""
    supported = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    if not resource.custom:
        supported.insert(2, STRATEGIC_PATCH)
    if request.content_type not in supported:
        raise unsupported_media_type(supported)
    try:
        return decode(request.body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def read_options(request: Request) -> Json | None:
    """The DeleteOptions in the body of a deletion, if there are any."""
    if not request.body:
        return None
    found = _parsed(request)
    if found.get("kind") not in (None, "DeleteOptions"):
        raise ApiError(400, "BadRequest", "the body of a deletion is a DeleteOptions object")
    return found
