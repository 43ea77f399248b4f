"""Tokens for machines to join: their form, their reuse, and when they no longer count."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from butler.tenant.bootstrap_token import KUBEADM_NODE_GROUP, expiry_of, token_of, token_secret

Json = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GROUPS = (KUBEADM_NODE_GROUP,)
TOKEN = "abc123.0123456789abcdef"


def test_the_secret_has_the_form_that_kubernetes_prescribes() -> None:
    made = token_secret("payments", TOKEN, NOW, GROUPS)
    assert made["metadata"]["name"] == "bootstrap-token-abc123"
    assert (made["metadata"]["namespace"], made["type"]) == ("kube-system", "bootstrap.kubernetes.io/token")
    assert set(made["data"]) == {
        "token-id",
        "token-secret",
        "expiration",
        "description",
        "usage-bootstrap-authentication",
        "usage-bootstrap-signing",
        "auth-extra-groups",
    }
    assert (token_of(made), expiry_of(made)) == (TOKEN, NOW)


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("token-id", "YWJjMTI0"),
        ("token-id", None),
        ("token-secret", "c2hvcnQ="),
        ("token-secret", "%%"),
        ("token-secret", 7),
        ("usage-bootstrap-authentication", "ZmFsc2U="),
        ("auth-extra-groups", ""),
    ],
)
def test_a_secret_that_would_let_no_machine_in_is_no_token(change: str, value: Any) -> None:
    made = token_secret("payments", TOKEN, NOW, GROUPS)
    made["data"][change] = value
    assert token_of(made) is None


@pytest.mark.parametrize("text", ["", "bm93", "MjAyNi0wMy0wMVQxMjowMDowMA=="])
def test_a_token_that_does_not_say_when_it_ends_has_ended(text: str) -> None:
    made = token_secret("payments", TOKEN, NOW, GROUPS)
    made["data"]["expiration"] = text
    assert expiry_of(made) < NOW - timedelta(days=1000)
    assert expiry_of({}) < NOW
