"""JSON as it is sent: encoded once, with an ETag, and compressed where it is kept and large. Pure.

An ETag is made of the very bytes that are sent, so that two replicas that know the same give the same one.
"""

from __future__ import annotations

import gzip
import hashlib
from typing import Final, NamedTuple

import msgspec

WORTH_COMPRESSING: Final = 16_384
_encoder = msgspec.json.Encoder()


class JsonBody(NamedTuple):
    """The body of a response as it is sent."""

    body: bytes
    etag: str
    gzipped: bytes | None = None
    """The same, compressed, for clients that accept gzip."""


def json_body(content: object) -> JsonBody:
    body = _encoder.encode(content)
    return JsonBody(body, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


def compressed_json_body(content: object) -> JsonBody:
    """The same for a response that is kept and may be large: it is compressed once, not for each request.

    Only for what holds no secrets: how well something compresses tells something about it.
    """
    made = json_body(content)
    if len(made.body) < WORTH_COMPRESSING:
        return made
    return made._replace(gzipped=gzip.compress(made.body, compresslevel=4, mtime=0))
