r"""The templates of `-o jsonpath=` and `-o custom-columns=`, as kubectl has them.

{.items[*].metadata.name}                     what a path finds, with spaces between
{range .items[*]}{.metadata.name}{"\n"}{end}  once for each
NAME:.metadata.name,CIDR:.spec.cidr           columns
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kubeserver.views.jsonpath import JsonPath, JsonPathError, printed

Render = Callable[[Any], str]
_PIECES = re.compile(r"\{((?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[^{}\"'])*)\}|([^{]+)|(\{)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class BadTemplate(ValueError):
    """A template that cannot be read; the message says where."""


def jsonpath(text: str) -> Render:
    """What prints an object by a template."""
    pieces = [_piece(found) for found in _PIECES.finditer(text if "{" in text else f"{{{_dotted(text)}}}")]
    body, rest = _body(pieces, nested=False)
    assert not rest
    return body


def custom_columns(text: str) -> list[tuple[str, Callable[[Any], str]]]:
    """Titles, and what stands below them."""
    columns = []
    for part in text.split(","):
        title, colon, path = part.partition(":")
        if not title or not colon or not path:
            raise BadTemplate(f"{part!r} is no column: write TITLE:.path.to.field, with commas in between")
        columns.append((title, _cell(path)))
    return columns


def _cell(text: str) -> Callable[[Any], str]:
    path = _path(_dotted(text.removeprefix("{").removesuffix("}")))
    return lambda obj: ",".join(printed(value) for value in path.find(obj)) or "<none>"


def _dotted(path: str) -> str:
    return path if path.startswith((".", "[", "$", "@")) else f".{path}"


def _path(text: str) -> JsonPath:
    try:
        return JsonPath(text.strip())
    except JsonPathError as error:
        raise BadTemplate(f"{text} is no path: {error}") from None


def _piece(found: re.Match[str]) -> tuple[str, str]:
    inner, plain, stray = found.groups()
    if stray:
        raise BadTemplate("a { is not closed")
    return ("text", plain) if inner is None else ("action", inner.strip())


def _body(pieces: list[tuple[str, str]], *, nested: bool) -> tuple[Render, list[tuple[str, str]]]:
    parts: list[Render] = []
    while pieces:
        (kind, text), pieces = pieces[0], pieces[1:]
        if kind == "text":
            parts.append(_constant(text))
        elif text == "end":
            if not nested:
                raise BadTemplate("{end} without {range}")
            return _joined(parts), pieces
        elif text.startswith("range "):
            inner, pieces = _body(pieces, nested=True)
            parts.append(_repeated(_path(_dotted(text[6:].strip())), inner))
        elif text[:1] in ("'", '"'):
            parts.append(_constant(re.sub(r"\\(.)", lambda match: _ESCAPES.get(match[1], match[1]), text[1:-1])))
        else:
            parts.append(_found(_path(_dotted(text))))
    if nested:
        raise BadTemplate("{range} without {end}")
    return _joined(parts), []


def _constant(text: str) -> Render:
    return lambda _: text


def _found(path: JsonPath) -> Render:
    return lambda obj: " ".join(printed(value) for value in path.find(obj))


def _repeated(path: JsonPath, inner: Render) -> Render:
    return lambda obj: "".join(inner(value) for value in path.find(obj))


def _joined(parts: list[Render]) -> Render:
    return lambda obj: "".join(part(obj) for part in parts)
