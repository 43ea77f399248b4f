"""Holds every answer against the OpenAPI document: the console's types are made of it."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any

import jsonschema_rs

from butler.server.openapi import document

if TYPE_CHECKING:
    from server.conftest import Api

BASE = "/api/v1"


@functools.cache
def _document() -> dict[str, Any]:
    """The document, with fields refused that it does not name."""
    found = document()
    for schema in found["components"]["schemas"].values():
        if schema.get("type") == "object" and "properties" in schema:
            schema.setdefault("additionalProperties", False)
    return found


def _operation(path: str) -> dict[str, Any]:
    asked = BASE + path.partition("?")[0].rstrip("/")
    templates = sorted(_document()["paths"], key=lambda item: (item.count("{"), -len(item)))
    for template in templates:
        pattern = re.sub(r"\\{(\w+)\\}", lambda found: ".+" if found[1] == "address" else "[^/]+", re.escape(template))
        if re.fullmatch(pattern, asked):
            return dict(_document()["paths"][template]["get"])
    raise AssertionError(f"the document knows no {asked}")


@functools.cache
def _validator(reference: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": reference, "components": _document()["components"]})


def check(path: str, body: Any) -> None:
    """That an answer is what the document says."""
    schema = _operation(path)["responses"]["200"]["content"]["application/json"]["schema"]
    wrong = [f"{error.instance_path}: {error.message}" for error in _validator(schema["$ref"]).iter_errors(body)]
    assert not wrong, f"GET {path}: {wrong[:5]}"


async def read(api: Api, path: str, **options: Any) -> Any:
    """What a GET answers that has to succeed and to be what the document says."""
    body = await api.get(path, **options)
    check(path, body)
    return body


async def refused(api: Api, path: str, **options: Any) -> tuple[int, Any]:
    """What a GET answers that has to be refused, in the form of all problems."""
    status, body, headers = await api.call("GET", path, **options)
    assert status >= 400, body
    assert headers["Content-Type"].startswith("application/problem+json")
    assert set(body) == {"type", "title", "status", "detail", "errors"}
    assert body["status"] == status
    return status, body
