"""Simple JSON paths into a schema: `.spec.hosts`, `.labels['a.b']`.

Rules name the field they are about this way, and definitions the fields that lists may be selected by.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubeserver.schemas.schema import Schema


class PathError(ValueError):
    """A path that leads nowhere in the schema."""


_TOKEN: Final = re.compile(r"[.\[\]]|'(?:[^'\\]|\\.)*'|[^.\[\]]+")
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


def field_path(text: str, schema: Schema, *, brackets: bool = True) -> tuple[str, Schema]:
    """The path as field errors print it and the schema it leads to; raises PathError."""
    tokens = _TOKEN.findall(text)
    path = ""
    at = 0
    while at < len(tokens):
        mark = tokens[at]
        if mark == ".":
            if at + 1 >= len(tokens):
                raise PathError("unexpected end of JSON path")
            name = tokens[at + 1]
            at += 2
        elif mark == "[":
            if not brackets:
                raise PathError("array notation is not allowed")
            name = _bracketed(tokens, at)
            at += 3
        else:
            raise PathError(f"expected [ or . but got: {mark}")
        path, schema = _step(path, name, schema)
    return path, schema


def _bracketed(tokens: list[str], at: int) -> str:
    if at + 1 >= len(tokens):
        raise PathError("unexpected end of JSON path")
    name = tokens[at + 1]
    if len(name) < 2 or name[0] != "'" or name[-1] != "'":
        raise PathError(f"expected single quoted string but got {name}")

    def unescaped(match: re.Match[str]) -> str:
        found = _ESCAPES.get(match.group()[1])
        if found is None:
            raise PathError(f"invalid string literal: invalid escape char {match.group()}")
        return found

    plain = re.sub(r"\\.", unescaped, name[1:-1])
    if at + 2 >= len(tokens):
        raise PathError("unexpected end of JSON path")
    if tokens[at + 2] != "]":
        raise PathError(f"expected ] but got {tokens[at + 2]}")
    return plain


def _step(path: str, name: str, schema: Schema) -> tuple[str, Schema]:
    if schema.properties:
        found = schema.properties.get(name)
        if found is None:
            raise PathError("does not refer to a valid field")
        return (f"{path}.{name}" if path else name), found
    if schema.additional is not None:
        return f"{path}[{name}]", schema.additional
    raise PathError("does not refer to a valid field")
