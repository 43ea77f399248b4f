"""The frames of the live stream as schemas of the OpenAPI document, for clients that are generated from it.

OpenAPI has no word for a WebSocket, and msgspec describes no union of structs without tags, as `item` of a change is:
so a frame is described here field by field. The items themselves are in the document already, as those of the lists.
"""

from __future__ import annotations

import inspect
from types import UnionType
from typing import Any, Final, get_args

import msgspec
from litestar import Request
from litestar.openapi.plugins import JsonRenderPlugin

from butler.server.models.stream import Beat, Changed, Frame, Hello, Reset

FRAMES: Final[tuple[type[Frame], ...]] = (Hello, Reset, Changed, Beat)
Schema = dict[str, Any]


class DocumentWithStream(JsonRenderPlugin):
    """Serves the document with the frames in it."""

    def render(self, request: Request[Any, Any, Any], openapi_schema: Schema) -> bytes:
        return super().render(request, with_stream(openapi_schema))


def with_stream(document: Schema) -> Schema:
    """The document with the frames among its schemas; `Frame` is any of them."""
    frames = {"Frame": {"oneOf": [_reference(frame) for frame in FRAMES]}} | {
        frame.__name__: _frame(frame) for frame in FRAMES
    }
    components = document["components"]
    return document | {"components": components | {"schemas": components["schemas"] | frames}}


def _frame(frame: type[Frame]) -> Schema:
    properties = {field.encode_name: _value(field.type) for field in msgspec.structs.fields(frame)}
    config = frame.__struct_config__
    return {
        "type": "object",
        "title": frame.__name__,
        "description": " ".join((inspect.getdoc(frame) or "").split()),
        "properties": {str(config.tag_field): {"const": config.tag}} | properties,
        "required": sorted([str(config.tag_field), *properties]),
    }


def _value(of: Any) -> Schema:
    if isinstance(of, UnionType):
        return {"oneOf": [_value(member) for member in get_args(of)]}
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        return _reference(of)
    return msgspec.json.schema(of)


def _reference(struct: type[msgspec.Struct]) -> Schema:
    return {"$ref": f"#/components/schemas/{struct.__name__}"}
