"""Responses with an ETag: the content, or 304 for a client that has it already."""

from __future__ import annotations

from typing import Any

from litestar import Request, Response
from litestar.enums import MediaType

from butler.server.json_body import JsonBody, json_body


def respond(request: Request[Any, Any, Any], content: object | JsonBody) -> Response[Any]:
    """The content, or 304 for a client that has it already. `content` may have been encoded before, and kept."""
    made = content if isinstance(content, JsonBody) else json_body(content)
    headers = {"ETag": made.etag, "Cache-Control": "private, no-cache"}
    known = request.headers.get("If-None-Match", "")
    if made.etag in (part.strip().removeprefix("W/") for part in known.split(",")):
        return Response(b"", status_code=304, headers=headers, media_type=MediaType.JSON)
    if made.gzipped is None:
        return Response(made.body, headers=headers, media_type=MediaType.JSON)
    headers["Vary"] = "Accept-Encoding"
    if not accepts(request.headers.get("Accept-Encoding", ""), "gzip"):
        return Response(made.body, headers=headers, media_type=MediaType.JSON)
    # Weak, as the same tag stands for the same content in other bytes.
    headers |= {"ETag": f"W/{made.etag}", "Content-Encoding": "gzip"}
    return Response(made.gzipped, headers=headers, media_type=MediaType.JSON)


def accepts(header: str, encoding: str) -> bool:
    """Whether a browser that sends this Accept-Encoding takes it. Pure."""
    for part in header.split(","):
        name, _, quality = part.replace(" ", "").partition(";q=")
        if name.lower() == encoding:
            return quality.strip("0.") != "" or not quality
    return False
