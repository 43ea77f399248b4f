"""Text that clients carry for us from one request to the next, and need not understand: cursors and positions. Pure.

It is no secret and no proof: a client that changes it gets other items that its user may see, and nothing more.
"""

from __future__ import annotations

import base64
import binascii
from typing import TypeVar

import msgspec

T = TypeVar("T")


def encode_cursor(value: object) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(value)).decode().rstrip("=")


def decode_cursor(text: str, kind: type[T]) -> T | None:
    """None for what was not written here, or by an older server in its own way."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return None
