"""Logging in through an identity provider, and everything that must not log a user in."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
import pytest
import pytest_asyncio
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from butler.kube import config
from butler.server.access import provider as provider_module
from butler.server.access.oidc import OidcSettings
from butler.server.process import Running, Settings, running
from server.browser import Answer, Browser
from server.oidc_provider import CLIENT, SECRET, OidcProvider, Signer, unsigned, with_shared_secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
CALLBACK = "/api/v1/login/oidc/callback"


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as served:
        yield served


@pytest.fixture
def honest(provider: OidcProvider) -> OidcProvider:
    provider.claims = {"sub": "ada", "groups": ["platform"]}
    provider.spoil = provider.sign = None
    provider.takes_codes_twice = False
    return provider


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(
    plane: ControlPlane, provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    secret = tmp_path_factory.mktemp("oidc") / "client-secret"
    secret.write_text(f"{SECRET}\n")
    oidc = OidcSettings(provider.issuer, CLIENT, secret, name="Example SSO")
    settings = Settings(world=True, oidc=oidc, tries_per_minute=100_000)
    async with running(config.load(plane.kubeconfig), settings) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def browser(up: Running) -> AsyncIterator[Browser]:
    async with Browser(up.url) as opened:
        yield opened


async def to_provider(browser: Browser) -> str:
    """Begin a login; where the provider sends the browser back to."""
    begun = await browser.get("/api/v1/login/oidc")
    assert begun.status == 303, begun.body
    cookie = begun.set_cookies[0].lower()
    assert {"httponly", "samesite=lax", "path=/"} <= {part.strip() for part in cookie.split(";")}
    there = await browser.get(begun.headers["Location"])
    assert there.status == 302
    return there.headers["Location"]


async def log_in(browser: Browser) -> Answer:
    return await browser.get(await to_provider(browser))


async def refused(browser: Browser, why: str) -> None:
    answer = await log_in(browser)
    assert answer.status == 403, answer.body
    assert why in answer.body
    assert (await browser.get("/api/v1/me")).status == 401


async def test_a_user_comes_in_with_their_groups(up: Running, honest: OidcProvider, browser: Browser) -> None:
    methods = (await browser.get("/api/v1/login-methods")).body
    assert methods == {"local": False, "password": False, "oidc": True, "oidcName": "Example SSO"}
    done = await log_in(browser)
    assert (done.status, done.headers["Location"]) == (303, "/")
    me = await browser.me()
    assert (me["user"], me["groups"], me["via"]) == ("oidc:ada", ["oidc:platform", "system:authenticated"], "oidc")
    assert not any(me["permissions"].values())
    asked = honest.asked[-1]
    assert asked["redirect_uri"] == f"{up.url}{CALLBACK}"
    assert len({asked["state"], asked["nonce"], asked["code_challenge"]}) == 3
    assert "butler-login" not in browser.cookies


def _set(**claims: Any) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.update(claims)


def _drop(claim: str) -> Callable[[dict[str, Any]], None]:
    return lambda found: found.pop(claim)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_set(nonce="another"), "belongs to another login"),
        (_drop("nonce"), "belongs to another login"),
        (_set(aud="another"), "is not valid"),
        (_set(aud=[CLIENT, "another"]), "meant for another application"),
        (_set(azp="another"), "meant for another application"),
        (_set(exp=int(time.time()) - 3600), "is not valid"),
        (_drop("exp"), "is not valid"),
        (_set(iat=int(time.time()) + 3600), "is not valid"),
        (_set(iss="https://evil.example"), "is not valid"),
        (_set(sub="system:admin"), "keeps for itself"),
        (_set(groups=["system:masters"]), "keeps for itself"),
        (_set(groups={"a": 1}), "is not a list"),
        (_set(sub="ada\nImpersonate-Group: x"), "cannot be one"),
    ],
)
async def test_a_token_that_says_the_wrong_thing_lets_no_user_in(
    honest: OidcProvider, browser: Browser, spoil: Callable[[dict[str, Any]], None], why: str
) -> None:
    honest.spoil = spoil
    await refused(browser, why)


async def test_an_unsigned_token_lets_no_user_in(honest: OidcProvider, browser: Browser) -> None:
    honest.sign = unsigned
    await refused(browser, "not accepted")


async def test_a_public_key_is_no_shared_secret(honest: OidcProvider, browser: Browser) -> None:
    public = honest.signer.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    honest.sign = lambda claims: with_shared_secret(claims, public, honest.signer.kid)
    await refused(browser, "not accepted")


async def test_a_signature_by_another_key_lets_no_user_in(honest: OidcProvider, browser: Browser) -> None:
    other = Signer.rsa("first")
    honest.sign = lambda claims: jwt.encode(claims, other.private, "RS256", headers={"kid": "first"})
    await refused(browser, "is not valid")


async def test_new_keys_of_the_provider_are_found(
    honest: OidcProvider, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await log_in(browser)).status == 303
    monkeypatch.setattr(provider_module, "KEYS_AT_MOST", 0.0)
    honest.signer = Signer.ec("second")
    assert (await log_in(browser)).status == 303


async def test_strange_keys_do_not_make_us_ask_all_day(honest: OidcProvider, browser: Browser) -> None:
    assert (await log_in(browser)).status == 303
    fetched = honest.key_fetches
    honest.sign = lambda claims: jwt.encode(
        claims, honest.signer.private, honest.signer.alg, headers={"kid": "unknown"}
    )
    for _ in range(5):
        assert (await log_in(browser)).status == 502
    assert honest.key_fetches <= fetched + 1


async def test_an_answer_for_another_browser_lets_no_user_in(
    up: Running, honest: OidcProvider, browser: Browser
) -> None:
    back = await to_provider(browser)
    async with Browser(up.url) as victim:
        assert (await victim.get(back)).status == 403  # began none
        await to_provider(victim)
        assert (await victim.get(back)).status == 403  # began another
        assert (await victim.get("/api/v1/me")).status == 401
    code = parse_qs(urlsplit(back).query)["code"][0]
    async with Browser(up.url) as thief:
        own = parse_qs(urlsplit(await to_provider(thief)).query)["state"][0]
        injected = await thief.get(f"{CALLBACK}?state={own}&code={code}")
        assert injected.status == 502  # the provider refuses: the code belongs to another PKCE challenge
        assert (await thief.get("/api/v1/me")).status == 401


async def test_a_login_is_used_once_even_where_the_provider_takes_a_code_twice(
    up: Running, honest: OidcProvider, browser: Browser
) -> None:
    honest.takes_codes_twice = True
    back = await to_provider(browser)
    cookie = browser.cookies["butler-login"]
    assert (await browser.get(back)).status == 303
    assert (await browser.get(back)).status == 403  # the cookie is gone
    async with Browser(up.url) as thief:
        thief.set_cookie("butler-login", cookie)
        replayed = await thief.get(back)
        assert replayed.status == 403
        assert "used already" in replayed.body


async def test_a_tampered_or_forged_cookie_lets_no_user_in(honest: OidcProvider, browser: Browser) -> None:
    back = await to_provider(browser)
    cookie = browser.cookies["butler-login"]
    for bad in ("", "x", cookie[:-2] + ("AA" if not cookie.endswith("AA") else "BB"), cookie + "A", "A" * 5000):
        browser.set_cookie("butler-login", bad)
        assert (await browser.get(back)).status == 403


async def test_what_the_provider_refuses_is_told(honest: OidcProvider, browser: Browser) -> None:
    answer = await browser.get(f"{CALLBACK}?error=<script>access_denied</script>&state=x")
    assert answer.status == 403
    assert "&lt;script&gt;access_denied" in answer.body
    assert "<script>" not in answer.body


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ("/tenants?phase=Ready&q=a%20b", "/tenants?phase=Ready&q=a%20b"),
        ("/pools/butler-system/müll", "/pools/butler-system/m%C3%BCll"),
        ("//evil.example", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example/", "/"),
        ("/a\r\nSet-Cookie: x=y", "/"),
        ("", "/"),
    ],
)
async def test_it_ends_on_the_page_that_was_wanted_and_never_on_another_site(
    browser: Browser, honest: OidcProvider, wanted: str, there: str
) -> None:
    begun = await browser.get(f"/api/v1/login/oidc?{urlencode({'next': wanted})}")
    back = (await browser.get(begun.headers["Location"])).headers["Location"]
    answer = await browser.get(back)
    assert (answer.status, answer.headers["Location"]) == (303, there)
