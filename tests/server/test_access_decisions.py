"""What access decides without asking another server: names, origins, addresses, waits, limits. No server runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from butler.server.access.id_token import IdTokenClaims, NotLetIn, identity_of
from butler.server.access.keys import SigningKey
from butler.server.access.passwords import FREE, LONGEST_WAIT, Tries, new_password, wait_until
from butler.server.access.provider import ProviderTrouble, need_safe
from butler.server.access.public_url import PublicUrl, client_address, sent_by_another
from butler.server.process import Settings, why_unsafe
from butler.server.rate_limit import Limit
from butler.server.responses import accepts


def test_names_are_prefixed_and_reserved_ones_refused() -> None:
    plain = IdTokenClaims(user="email", user_prefix="", groups_prefix="")
    found = identity_of({"email": "ada@example.com", "email_verified": True, "groups": "a"}, plain)
    assert (found.user, found.groups) == ("ada@example.com", ("a",))
    for wrong in (
        {"email": "ada@example.com", "email_verified": False},
        {"email": "ada@example.com", "email_verified": "true"},
        {"email": "ada@example.com"},
        {"email": "a", "email_verified": True, "groups": ["butler:admins"]},
        {"email": "a", "email_verified": True, "groups": ["kubeadm:cluster-admins"]},
        {"email": "Butler:admin", "email_verified": True},
        {"email": "SYSTEM:admin", "email_verified": True},
        {"email": "", "email_verified": True},
        {"sub": "ada"},
        {"email": "a", "email_verified": True, "groups": ["system:masters"]},
        {"email": "a", "email_verified": True, "groups": ["x"] * 501},
    ):
        with pytest.raises(NotLetIn):
            identity_of(wrong, plain)
    for prefix in ("system:", "butler:", "kubeadm:"):
        with pytest.raises(NotLetIn):
            identity_of({"sub": "admin"}, IdTokenClaims(user_prefix=prefix))


def test_only_our_own_pages_are_ours() -> None:
    local = PublicUrl("http://127.0.0.1:8090")
    assert "localhost:8090" in local.hosts
    assert "127.0.0.1" not in local.hosts
    assert not sent_by_another(local, host="localhost:8090", origin="http://localhost:8090", site="same-origin")
    assert not sent_by_another(local, host="127.0.0.1:8090", origin=None, site=None)
    for origin, site in (
        ("http://localhost:8090", None),  # ours, but not the one that was asked
        ("https://127.0.0.1:8090", None),
        ("http://127.0.0.1:8091", None),
        ("http://127.0.0.1:8090.evil.example", None),
        ("null", None),
        ("", None),
        ("http://127.0.0.1:8090", "cross-site"),
        (None, "same-site"),
    ):
        assert sent_by_another(local, host="127.0.0.1:8090", origin=origin, site=site), origin
    public = PublicUrl("https://butler.example.com")
    assert public.hosts == {"butler.example.com", "butler.example.com:443"}
    assert public.session_cookie.startswith("__Host-")


def test_whom_a_proxy_names_last_is_who_asks_and_no_other_client_may_name() -> None:
    plain, proxied = PublicUrl("http://127.0.0.1:1"), PublicUrl("https://b.example", behind_proxy=True)
    assert client_address(plain, "10.0.0.1", "1.2.3.4") == "10.0.0.1"
    assert client_address(proxied, "10.0.0.1", "6.6.6.6, 1.2.3.4") == "1.2.3.4"
    assert client_address(proxied, "10.0.0.1", "nonsense") == "10.0.0.1"
    assert client_address(proxied, "10.0.0.1", None) == "10.0.0.1"
    assert client_address(plain, "2001:db8::1", None) == client_address(plain, "2001:db8::2", None)


def test_each_wrong_password_costs_twice_the_time_of_the_last() -> None:
    last = datetime(2026, 1, 1, tzinfo=UTC)
    waits = [wait_until(Tries(number, last)) - last for number in range(40)]
    assert waits[: FREE + 4] == [timedelta(seconds=item) for item in (0, 0, 0, 0, 0, 1, 2, 4, 8)]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_WAIT


def test_passwords_are_made_of_enough_chance() -> None:
    made = {new_password() for _ in range(200)}
    assert len(made) == 200
    assert all(len(text) == 29 for text in made)


def test_a_limit_gives_back_with_time_and_counts_each_alone() -> None:
    now = [0.0]
    limit = Limit(3, 0.5, most=2, clock=lambda: now[0])
    assert [limit.take("a") for _ in range(4)] == [0, 0, 0, 2.0]
    assert limit.take("b") == 0
    now[0] = 2.0
    assert limit.take("a") == 0
    assert limit.take("a") > 0


def test_a_token_is_good_for_its_purpose_and_key_alone() -> None:
    key, other = SigningKey(b"a" * 32), SigningKey(b"b" * 32)
    token = key.token("session")
    assert key.secret_of("session", token) is not None
    assert key.secret_of("link", token) is None
    assert other.secret_of("session", token) is None
    for spoiled in (*(token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :] for at in range(len(token))),):
        assert key.secret_of("session", spoiled) is None
    for bad in ("", token + "=", token + "A", token + "\n", " " + token, "ü" * 64, "A" * 100_000):
        assert key.secret_of("session", bad) is None
    sealed = key.seal("login", b"content")
    assert key.unseal("login", sealed) == b"content"
    assert key.unseal("else", sealed) is None
    assert other.unseal("login", sealed) is None


def test_a_provider_is_asked_over_https_alone() -> None:
    need_safe("https://sso.example.com/x")
    need_safe("http://127.0.0.1:5556/dex")
    for url in ("http://sso.example.com", "ftp://x", "//x", "https://", "http://127.0.0.1.evil.example/"):
        with pytest.raises(ProviderTrouble):
            need_safe(url)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (Settings(), ""),
        (Settings(local=True), ""),
        (Settings(host="::1"), ""),
        (Settings(host="0.0.0.0"), "others could read along"),
        (Settings(host="0.0.0.0", tls_certificate=Path("c"), tls_key=Path("k"), url="https://b.example"), ""),
        (Settings(host="0.0.0.0", tls_certificate=Path("c"), tls_key=Path("k")), "give --url"),
        (Settings(host="0.0.0.0", tls_certificate=Path("c")), "needs its key"),
        (Settings(host="0.0.0.0", behind_proxy=True), "give --url"),
        (Settings(host="0.0.0.0", behind_proxy=True, url="http://b.example"), "does not fit"),
        (Settings(host="0.0.0.0", behind_proxy=True, url="https://b.example"), ""),
        (Settings(host="10.0.0.1", local=True, tls_certificate=Path("c"), tls_key=Path("k")), "one machine"),
        (Settings(url="https://b.example"), "does not fit"),
        (Settings(url="butler.example"), "begin it with https://"),
        (Settings(url="https://"), "begin it with https://"),
        (Settings(url="https://b.example/console"), "no path"),
    ],
)
def test_settings_that_would_let_others_read_along_are_refused(settings: Settings, why: str) -> None:
    found = why_unsafe(settings)
    assert (why in found) if why else not found


def test_what_a_browser_accepts_is_what_it_says() -> None:
    for header, taken in (
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("gzip; q=0.01", True),
        ("gzip;q=1", True),
        ("gzip;q=0", False),
        ("gzip;q=0.000", False),
        ("br", False),
        ("xgzip", False),
        ("", False),
    ):
        assert accepts(header, "gzip") is taken, header
