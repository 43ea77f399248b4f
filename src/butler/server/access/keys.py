"""What the key of all replicas is used for: tokens, sealed cookies, and marks on records. Pure; store.py keeps it."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

RANDOM: Final = 32
MARK: Final = 16


class SigningKey:
    """Makes tokens that only holders of the key can make, and seals small things."""

    def __init__(self, secret: bytes) -> None:
        self._marking = _derived(secret, b"tokens")
        self._sealing = AESGCM(_derived(secret, b"sealing"))
        self._records = _derived(secret, b"records")

    def __repr__(self) -> str:
        return "Key()"

    def token(self, purpose: str) -> str:
        """A new random token, good for that purpose alone."""
        random = secrets.token_bytes(RANDOM)
        return _text(random + self._mark(purpose, random))

    def secret_of(self, purpose: str, token: str) -> bytes | None:
        """The random part of a token that was made here for that purpose; None for any other text."""
        raw = _raw(token)
        if raw is None or len(raw) != RANDOM + MARK:
            return None
        random, mark = raw[:RANDOM], raw[RANDOM:]
        return random if hmac.compare_digest(mark, self._mark(purpose, random)) else None

    def seal(self, purpose: str, content: bytes) -> str:
        nonce = secrets.token_bytes(12)
        return _text(nonce + self._sealing.encrypt(nonce, content, purpose.encode()))

    def unseal(self, purpose: str, sealed: str) -> bytes | None:
        """What was sealed for that purpose; None for anything else."""
        raw = _raw(sealed)
        if raw is None or len(raw) < 12 + 16:
            return None
        try:
            return self._sealing.decrypt(raw[:12], raw[12:], purpose.encode())
        except InvalidTag:
            return None

    def mark(self, *parts: bytes) -> str:
        """A mark that only holders of the key can put on exactly these parts."""
        joined = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
        return base64.b64encode(hmac.digest(self._records, joined, "sha256")).decode()

    def is_mark(self, mark: str, *parts: bytes) -> bool:
        return hmac.compare_digest(mark.encode(), self.mark(*parts).encode())

    def _mark(self, purpose: str, random: bytes) -> bytes:
        return hmac.digest(self._marking, purpose.encode() + b"\0" + random, "sha256")[:MARK]


def token_id(random: bytes) -> str:
    """What a token is called in names, lists and logs: the token cannot be made of it."""
    return hmac.digest(b"butler console token", random, "sha256").hex()[:40]


def derived_token(random: bytes, purpose: str) -> str:
    """A second token that belongs to the first, and tells nothing of it."""
    return _text(_derived(random, purpose.encode()))


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, b"butler console: " + purpose, "sha256")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _raw(text: str) -> bytes | None:
    """The bytes of a token; None unless it is written as we write them: no two texts are one token."""
    if len(text) > 4000:
        return None
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None
    return raw if _text(raw) == text else None
