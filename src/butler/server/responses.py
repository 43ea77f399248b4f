"""Answers: with an ETag that tells their content, and lists page by page.

An ETag is made of the very bytes that are sent, so that two replicas that know the same give the same one.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from litestar import Request, Response
from litestar.enums import MediaType

from butler.server.cursor import decode_cursor, encode_cursor
from butler.server.problems import RequestRefused

T = TypeVar("T")
MOST: Final = 1_000
USUAL: Final = 100
WORTH_PACKING: Final = 16_384
_encoder = msgspec.json.Encoder()


class Encoded(NamedTuple):
    """An answer as it is sent."""

    body: bytes
    etag: str
    packed: bytes | None = None
    """The same as gzip has it, for who takes that."""


def encoded(content: object) -> Encoded:
    body = _encoder.encode(content)
    return Encoded(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


def packed(content: object) -> Encoded:
    """The same for an answer that is kept and may be large: it is packed once, not for each who asks.

    Only for what holds no secrets: how well something packs tells something about it.
    """
    made = encoded(content)
    if len(made.body) < WORTH_PACKING:
        return made
    return made._replace(packed=gzip.compress(made.body, compresslevel=4, mtime=0))


def answer(request: Request[Any, Any, Any], content: object | Encoded) -> Response[Any]:
    """The content, or 304 for whoever has it already. `content` may have been encoded before, and kept."""
    made = content if isinstance(content, Encoded) else encoded(content)
    headers = {"ETag": made.etag, "Cache-Control": "private, no-cache"}
    known = request.headers.get("If-None-Match", "")
    if made.etag in (part.strip().removeprefix("W/") for part in known.split(",")):
        return Response(b"", status_code=304, headers=headers, media_type=MediaType.JSON)
    if made.packed is None:
        return Response(made.body, headers=headers, media_type=MediaType.JSON)
    headers["Vary"] = "Accept-Encoding"
    if not accepts(request.headers.get("Accept-Encoding", ""), "gzip"):
        return Response(made.body, headers=headers, media_type=MediaType.JSON)
    # Weak, as the same tag stands for the same answer in other bytes.
    headers |= {"ETag": f"W/{made.etag}", "Content-Encoding": "gzip"}
    return Response(made.packed, headers=headers, media_type=MediaType.JSON)


def accepts(header: str, encoding: str) -> bool:
    """Whether a browser that sends this Accept-Encoding takes it. Pure."""
    for part in header.split(","):
        name, _, quality = part.replace(" ", "").partition(";q=")
        if name.lower() == encoding:
            return quality.strip("0.") != "" or not quality
    return False


class ListPage(NamedTuple):
    """One page of a list."""

    items: list[Any]
    total: int
    next: str | None


def page(
    items: Iterable[T],
    *,
    sorts: dict[str, Callable[[T], Any]],
    sort: str,
    limit: int,
    cursor: str | None,
    key: Callable[[T], tuple[str, ...]],
) -> ListPage:
    """A page in the order that was asked for; `key` tells items apart that are alike otherwise.

    The cursor names the last item of the page before: nothing is shown twice or left out when others come or go.
    """
    field, descending = sort.removeprefix("-"), sort.startswith("-")
    if field not in sorts:
        raise RequestRefused(422, f"sort: {field!r} is no field to sort by: take one of {', '.join(sorted(sorts))}")
    value = sorts[field]

    def place(item: T) -> tuple[Any, ...]:
        found = value(item)
        return (found is None, "" if found is None else found, key(item))

    # None comes last in either direction, so that what is known is seen first.
    known = sorted((entry for entry in items if value(entry) is not None), key=place, reverse=descending)
    unknown = sorted((entry for entry in items if value(entry) is None), key=key)
    ordered: Sequence[T] = [*known, *unknown]
    begin = 0
    if cursor is not None:
        last = read_cursor(cursor, tuple[str, ...])
        begin = next((number for number, each in enumerate(ordered, 1) if key(each) == last), 0)
        if begin == 0:
            raise RequestRefused(410, "cursor: what it points at has gone: begin with the first page again")
    shown = list(ordered[begin : begin + limit])
    more = begin + limit < len(ordered)
    return ListPage(shown, len(ordered), encode_cursor(key(shown[-1])) if more and shown else None)


def read_cursor(text: str, kind: type[T]) -> T:
    """Where the page before ended."""
    found = decode_cursor(text, kind)
    if found is None:
        raise RequestRefused(422, "cursor: this is none that was given out here: take it from `next` of a page")
    return found
