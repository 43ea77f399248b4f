"""AWS Signature Version 4, for requests with a path, no query and a small body: all that a question to STS needs.

The algorithm is public and its results are fixed by the test vectors that AWS publishes, which the tests hold us to.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

ALGORITHM = "AWS4-HMAC-SHA256"


def signed_headers(
    method: str,
    url: str,
    body: bytes,
    *,
    access_key: str,
    secret_key: str,
    region: str,
    service: str,
    at: datetime,
    headers: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The headers to send: the given ones, the date and the signature over all of them. `at` is in UTC."""
    parts = urlsplit(url)
    stamp = at.strftime("%Y%m%dT%H%M%SZ")
    sent = {**(headers or {}), "X-Amz-Date": stamp}
    signed = {name.lower(): " ".join(value.split()) for name, value in sent.items()} | {"host": parts.netloc}
    names = ";".join(sorted(signed))
    canonical = "\n".join(
        (
            method,
            parts.path or "/",
            "",
            *(f"{name}:{signed[name]}" for name in sorted(signed)),
            "",
            names,
            hashlib.sha256(body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    signature = _mac(key, to_sign).hex()
    return {
        **sent,
        "Authorization": f"{ALGORITHM} Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}",
    }


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
