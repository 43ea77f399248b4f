"""A request and a response, free of any web framework: what the verbs take and give."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from kubeserver.access.authentication import User
    from kubeserver.wire.paths import RequestInfo

Json = dict[str, Any]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
LARGE: Final = 16 * 1024  # bytes of JSON from which on work on them leaves the event loop

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")

encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder().decode


class ClientLeft(Exception):
    """The client no longer waits for the answer."""


def _still_there() -> bool:
    return False


@dataclass(slots=True)
class Request:
    info: RequestInfo
    user: User
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes = b""
    gone: Callable[[], bool] = _still_there  # whether the client has left

    def caller(self, cluster: str) -> str:
        """Whose turn a request takes: users of a logical cluster share one, a user of the root has their own."""
        return cluster or f"user {self.user.name}"

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").split(";", 1)[0].strip()


@dataclass(slots=True)
class Response:
    code: int
    body: bytes
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Stream:
    """An answer that goes on: the chunks of a watch."""

    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: list[tuple[str, str]] = field(default_factory=list)


def respond(code: int, value: Json, warnings: list[str] | None = None) -> Response:
    return Response(code, encode(value), headers=warning_headers(warnings))


def warning_headers(warnings: list[str] | None) -> list[tuple[str, str]]:
    """RFC 7234 warnings, the way kubectl prints them; control characters would break the header."""
    if not warnings:
        return []
    quoted = (_CONTROL.sub(" ", warning).replace("\\", "\\\\").replace('"', '\\"') for warning in warnings)
    return [("Warning", f'299 - "{text}"') for text in quoted]
