"""Signatures as AWS publishes them in its test suite for Signature Version 4 (names of the vectors are theirs)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from butler.providers.sigv4 import signed_headers

AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SESSION = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7"
    "mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d"
    "+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("vector", "method", "headers", "body", "token", "signature"),
    [
        ("get-vanilla", "GET", {}, b"", None, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("post-vanilla", "POST", {}, b"", None, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "post-x-www-form-urlencoded",
            "POST",
            FORM,
            b"Param1=value1",
            None,
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        (
            "post-sts-header-before",
            "POST",
            {},
            b"",
            SESSION,
            "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
        ),
    ],
)
def test_published_vectors(
    vector: str, method: str, headers: dict[str, str], body: bytes, token: str | None, signature: str
) -> None:
    found = signed_headers(
        method,
        "https://example.amazonaws.com/",
        body,
        access_key="AKIDEXAMPLE",
        secret_key=SECRET,
        region="us-east-1",
        service="service",
        at=AT,
        headers=headers,
        session_token=token,
    )
    assert found["Authorization"].endswith(f"Signature={signature}"), vector
    assert found["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/")
