"""Signatures as AWS publishes them in its test suite for Signature Version 4 (names of the vectors are theirs)."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from butler.providers.sigv4 import signed_headers

AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.parametrize(
    ("vector", "method", "headers", "body", "signature"),
    [
        ("get-vanilla", "GET", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("post-vanilla", "POST", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "post-x-www-form-urlencoded",
            "POST",
            FORM,
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_published_vectors(vector: str, method: str, headers: dict[str, str], body: bytes, signature: str) -> None:
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
    )
    assert found["Authorization"].endswith(f"Signature={signature}"), vector
    assert found["Authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/")
