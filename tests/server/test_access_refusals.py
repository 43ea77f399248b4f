"""Every route, asked by users who may not use it; and requests that are not what they say.

The routes are those of the application itself: a new one is tried here the moment it exists.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import aiohttp
import pytest
import pytest_asyncio
from litestar.routes import HTTPRoute, WebSocketRoute
from yarl import URL

from butler.kube import config
from butler.server.access.guard import HEADERS, OPEN
from butler.server.app import build
from butler.server.process import Running, Settings, running
from server.browser import Browser
from server.eventually import eventually
from server.objects import allocation, create, pool

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane
    from server.conftest import Api

pytestmark = pytest.mark.asyncio(loop_scope="module")
CSRF = {"X-CSRF-Token": "test-csrf"}


@dataclass(frozen=True)
class Way:
    """One method of one route."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def of(self, kind: str) -> str:
        """The path with something real in it."""
        filled = self.path.replace("{namespace:str}", "team-web" if kind == "tenants" else "butler-system")
        filled = filled.replace("{name:str}", NAMES.get(kind, "x")).replace("{address:path}", "10.250.0.5")
        return re.sub(r"\{[^}]*\}", "x", filled)

    @property
    def kind(self) -> str:
        return self.path.split("/")[3] if self.path.count("/") > 2 else ""


NAMES = {"pools": "refusals", "allocations": "refusals-shop", "tenants": "shop", "providers": "harvester"}
TENANT = {
    "apiVersion": "butler.butlerlabs.dev/v1alpha1",
    "kind": "TenantCluster",
    "metadata": {"name": "shop", "namespace": "team-web"},
    "spec": {"kubernetesVersion": "v1.33.2", "providerConfigRef": {"name": "x"}, "workers": {"replicas": 1}},
}
ASK = {"name": "a", "pool": "refusals", "tenantNamespace": "team-web", "tenant": "s", "type": "nodes", "count": 1}
NEW = {"name": "new", "cidr": "10.251.0.0/24"}
BODIES: dict[str, Any] = {
    "POST /api/v1/pools": NEW,
    "POST /api/v1/pools/preview": NEW,
    "PATCH /api/v1/pools/{namespace:str}/{name:str}": {"growBy": 5},
    "POST /api/v1/pools/{namespace:str}/{name:str}/preview": {"growBy": 5},
    "POST /api/v1/allocations": ASK,
    "POST /api/v1/allocations/preview": ASK,
    "POST /api/v1/tenants": {"manifest": TENANT},
    "POST /api/v1/tenants/preview": {"manifest": TENANT},
    "PUT /api/v1/tenants/{namespace:str}/{name:str}": {"manifest": TENANT},
    "POST /api/v1/tenants/{namespace:str}/{name:str}/scale": {"workers": 3},
    "POST /api/v1/tenants/{namespace:str}/{name:str}/upgrade": {"version": "v1.34.1"},
    "POST /api/v1/plan": {"requests": [{"pool": "refusals", "count": 1}]},
}
"""What each needs to be understood, so that a refusal is about the person and not about the body."""
ABOUT_ONESELF = {
    "GET /api/v1/me",
    "GET /api/v1/sessions",
    "DELETE /api/v1/sessions/{id:str}",
    "POST /api/v1/logout",
    "GET /api/v1/openapi.json",
    "GET /api/v1",
    "GET /api/v1/{path:str}",
}
"""Routes that show a person nothing but themselves, or what is in the source code."""
EMPTY_FOR_STRANGERS = {
    "GET /api/v1/overview",
    "GET /api/v1/search",
    "GET /api/v1/tenants",
    "GET /api/v1/providers",
    "GET /api/v1/activity",
    "GET /api/v1/drift",
}
"""Routes that show what one may see, in all namespaces: for a user who may see nothing they are empty."""


def ways() -> list[Way]:
    """Everything the application answers to."""
    app = build(cast("Any", None))
    found = [
        Way(method, route.path) for route in app.routes if isinstance(route, HTTPRoute) for method in route.methods
    ]
    assert len(found) > 40
    return sorted(found, key=str)


def streams() -> list[str]:
    return [route.path for route in build(cast("Any", None)).routes if isinstance(route, WebSocketRoute)]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def estate(plane: ControlPlane, api: Api) -> Api:
    """Something to be refused."""
    plane.request("POST", "/api/v1/namespaces", {"metadata": {"name": "team-web"}})
    create(plane, pool("refusals", "10.250.0.0/24"))
    create(plane, allocation("refusals-shop", "refusals", 4))

    async def there() -> None:
        assert (await api.get("/pools/butler-system/refusals"))["pool"]["allocated"] == 4

    await eventually(there)
    return api


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane) -> AsyncIterator[Running]:
    settings = Settings(world=True, local=True, local_admin=True, tries_per_minute=100_000)
    async with running(config.load(plane.kubeconfig), settings) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser(up: Running) -> AsyncIterator[Browser]:
    async with Browser(up.url) as opened:
        await opened.come_in(await up.one_time_link())
        yield opened


@pytest.mark.parametrize("way", ways(), ids=str)
async def test_strangers_are_answered_nowhere(up: Running, way: Way) -> None:
    async with Browser(up.url) as stranger:
        answer = await stranger.call(way.method, way.of(way.kind), headers=CSRF)
        if way.path in OPEN:
            assert answer.status in (200, 204, 303, 400, 403, 404, 422), answer.body
            return
        assert answer.status == 401, answer.body
        assert answer.body["type"] == "urn:butler:problem:unauthenticated"
        assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("way", [item for item in ways() if item.path not in OPEN], ids=str)
async def test_who_may_do_nothing_is_shown_nothing(estate: Api, way: Way) -> None:
    if str(way) in ABOUT_ONESELF or way.method == "OPTIONS":
        return
    path = way.of(way.kind).removeprefix("/api/v1") + ("?q=shop" if way.path.endswith("/search") else "")
    status, body, _ = await estate.call(
        way.method, path, BODIES.get(str(way)), user="mallory", headers={"If-Match": '"1"'}
    )
    if str(way) in EMPTY_FOR_STRANGERS:
        assert status in (200, 403), body
        assert "refusals" not in json.dumps(body)
        assert "10.250." not in json.dumps(body)
    else:
        assert status == 403, body


async def test_who_may_do_nothing_hears_nothing(estate: Api) -> None:
    for path in streams():
        async with estate.session.ws_connect(f"{estate.url}{path}", headers={"X-Test-Role": "mallory"}) as stream:
            hello = await stream.receive_json(timeout=10)
            assert (hello["type"], hello["kinds"]) == ("hello", [])


@pytest.mark.parametrize("path", streams())
async def test_a_stream_is_refused_before_it_is_one(up: Running, browser: Browser, path: str) -> None:
    async def refused(session: aiohttp.ClientSession, **options: Any) -> int:
        with pytest.raises(aiohttp.WSServerHandshakeError) as error:
            await session.ws_connect(f"{up.url}{path}", **options)
        return error.value.status

    async with aiohttp.ClientSession() as stranger:
        assert await refused(stranger, origin=up.url) == 401
    assert await refused(browser.session) == 403
    for origin in ("http://evil.example", "null", up.url.replace("127.0.0.1", "localhost"), f"{up.url}.evil.example"):
        assert await refused(browser.session, origin=origin) == 403
    assert await refused(browser.session, origin="http://evil.example", headers={"Host": "evil.example"}) == 421
    async with browser.session.ws_connect(f"{up.url}{path}", origin=up.url) as stream:
        assert (await stream.receive_json(timeout=10))["type"] == "hello"


async def test_a_foreign_page_changes_nothing(up: Running, browser: Browser) -> None:
    for headers, origin in (
        ({}, "http://evil.example"),
        ({}, "null"),
        ({"Sec-Fetch-Site": "cross-site"}, None),
        ({"Sec-Fetch-Site": "same-site"}, ""),
        ({"X-CSRF-Token": ""}, ""),
        ({"X-CSRF-Token": browser.csrf[:-1] + "x"}, ""),
        ({"X-CSRF-Token": "ü"}, ""),
    ):
        answer = await browser.call("POST", "/api/v1/logout", headers=headers, origin=origin)
        assert answer.status == 403, headers
    assert (await browser.me())["via"] == "link"
    async with Browser(up.url) as other:
        theirs = await other.come_in(await up.one_time_link())
    stolen = await browser.call("POST", "/api/v1/logout", headers={"X-CSRF-Token": theirs["csrfToken"]})
    assert stolen.status == 403


async def test_a_link_and_a_password_are_not_taken_from_a_foreign_page(up: Running) -> None:
    token = (await up.one_time_link()).partition("token=")[2]
    async with Browser(up.url) as victim:
        for origin in ("http://evil.example", "null"):
            sent = await victim.call("POST", "/link", data={"token": token}, origin=origin)
            assert sent.status == 403
            login = {"user": "admin", "password": "x"}
            assert (await victim.call("POST", "/api/v1/login/password", json=login, origin=origin)).status == 403
        assert (await victim.call("POST", "/link", data={"token": token})).status == 303


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example", "", "localhost:80", "[::1]"]
)
async def test_another_name_for_this_server_is_refused(up: Running, browser: Browser, host: str) -> None:
    for path in ("/", "/link", "/api/v1/me", "/api/v1/login-methods"):
        answer = await browser.get(path, headers={"Host": host})
        assert answer.status in (400, 421), (path, answer.status)
    port = up.url.rpartition(":")[2]
    assert (await browser.get("/api/v1/login-methods", headers={"Host": f"localhost:{port}"})).status == 200


async def test_no_detour_leads_around_the_guard(up: Running) -> None:
    async with aiohttp.ClientSession() as session:
        for path in (
            "//api/v1/me",
            "/api//v1/me",
            "/x/../api/v1/me",
            "/./api/v1/me",
            "/%61pi/v1/me",
            "/api/v1/me/",
            "/api/v1/login-methods/../me",
            "/api/v1/%6de",
            "/api%2fv1%2fme",
        ):
            async with session.get(URL(f"{up.url}{path}", encoded=True)) as answer:
                is_page = answer.content_type == "text/html"  # what is no path of the API is one of the console
                assert answer.status in (401, 404) or is_page, (path, answer.status)
                assert "csrfToken" not in await answer.text()


async def test_bodies_that_are_too_large_or_no_json_are_refused(up: Running, browser: Browser) -> None:
    json_type = {"Content-Type": "application/json"}
    for path, body, expected in (
        ("/api/v1/pools", b"x" * 2_000_000, {413}),
        ("/api/v1/login/password", b'{"user":"' + b"x" * 10_000 + b'","password":"x"}', {413}),
        ("/link", b"token=" + b"x" * 10_000, {413}),
        ("/api/v1/pools", b"{", {400, 422}),
        ("/api/v1/pools", b"\xff\xfe", {400, 422}),
        ("/api/v1/pools", b"[" * 100_000, {400, 413, 422}),
        ("/api/v1/pools", b"null", {400, 422}),
        ("/api/v1/pools", b'{"name":"a","cidr":"10.0.0.0/8","surprise":1}', {400, 422}),
        ("/api/v1/login/password", b'{"user":["admin"],"password":{}}', {400, 422}),
        ("/api/v1/login/password", b"", {400, 422}),
        ("/link", b"\xff\x00=%zz&&&&&&&&&&&&", {400, 403, 422}),
    ):
        answer = await browser.call("POST", path, data=io.BytesIO(body), headers=json_type)
        assert answer.status in expected, (path, body[:20], answer.status, answer.body)
        assert answer.status < 500

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 65536

    answer = await browser.call("POST", "/api/v1/pools", data=endless(), headers=json_type)
    assert answer.status == 413


async def test_unknown_paths_of_the_api_are_problems_and_never_pages(browser: Browser) -> None:
    for path in ("/api", "/api/", "/api/v1/nothing", "/api/v1/nothing/here", "/api/v2/pools", "/api/v1/pools/a/b/c/d"):
        answer = await browser.get(path)
        assert answer.status == 404, path
        assert answer.headers["Content-Type"] == "application/problem+json"
    assert (await browser.call("PUT", "/api/v1/pools", json={})).status == 405


async def test_every_answer_carries_the_headers(up: Running, browser: Browser) -> None:
    async with Browser(up.url) as stranger:
        for who, path in (
            (browser, "/api/v1/me"),
            (browser, "/api/v1/pools"),
            (browser, "/api/v1/nothing"),
            (stranger, "/api/v1/me"),
            (stranger, "/"),
            (stranger, "/link"),
            (stranger, "/link.js"),
            (stranger, "/healthz"),
        ):
            answer = await who.get(path)
            missing = {name for name in HEADERS if name.title() not in answer.headers}
            assert not missing, (path, missing)
            policy = answer.headers["Content-Security-Policy"]
            assert "frame-ancestors 'none'" in policy
            assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
            assert "Server" not in answer.headers
        assert (await browser.get("/api/v1/me")).headers["Cache-Control"] == "no-store"
        pages = [await stranger.get("/link") for _ in range(2)]
        nonces = {re.findall(r"'nonce-([^']+)'", page.headers["Content-Security-Policy"])[0] for page in pages}
        assert len(nonces) == 2
        assert all(page.headers["Referrer-Policy"] == "strict-origin" for page in pages)


async def test_a_token_in_a_link_cannot_become_a_script(up: Running) -> None:
    async with Browser(up.url) as victim:
        shown = await victim.get('/link?token="><script>alert(1)</script>')
        assert "<script>alert" not in shown.body


async def test_probes_tell_strangers_nothing(up: Running) -> None:
    async with Browser(up.url) as kubelet:
        for path in ("/healthz", "/readyz"):
            answer = await kubelet.get(path, headers={"Host": "10.1.2.3:8080"})
            assert (answer.status, answer.body) == (200, "ok\n")
