"""Coming in with a real browser: what CSP, SameSite and Referrer-Policy do to it is known to browsers alone."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from install_browser import find
from playwright.async_api import Error, async_playwright

from butler.kube import config
from butler.server.access.oidc import OidcSettings
from butler.server.process import Running, Settings, running
from server.oidc_provider import CLIENT, SECRET, OidcProvider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import Browser, BrowserContext, Page

    from control_planes import ControlPlane

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        find() is None, reason="there is no Chromium here: tools/install_browser.py says how to get one"
    ),
]
ASK = "async path => { const got = await fetch(path); return [got.status, await got.json()] }"
SOCKET = """origin => new Promise(done => {
  const socket = new WebSocket(`ws://${location.host}/api/v1/stream`)
  socket.onmessage = event => { done(JSON.parse(event.data).type); socket.close() }
  socket.onerror = () => done("refused")
})"""
INDEX = """<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><title>Butler</title>
<style nonce="__CSP_NONCE__">p { color: rgb(1, 2, 3) }</style><style>p { margin: 77px }</style>
<p style="padding: 5px">here</p><script>document.title = "inline"</script><script src="/assets/own.js"></script>"""


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def provider() -> AsyncIterator[OidcProvider]:
    async with OidcProvider() as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(
    plane: ControlPlane, provider: OidcProvider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Running]:
    """At localhost, which to a browser is another site than the provider's 127.0.0.1."""
    folder: Path = tmp_path_factory.mktemp("console")
    (folder / "secret").write_text(SECRET)
    (folder / "assets").mkdir()
    (folder / "index.html").write_text(INDEX)
    (folder / "assets" / "own.js").write_text("document.body.dataset.own = 'ran'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = Settings(
        port=port,
        url=f"http://localhost:{port}",
        local=True,
        console=folder,
        oidc=OidcSettings(provider.issuer, CLIENT, folder / "secret"),
    )
    async with running(config.load(plane.kubeconfig), settings) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chromium() -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="module")
async def context(chromium: Browser) -> AsyncIterator[BrowserContext]:
    fresh = await chromium.new_context()
    yield fresh
    await fresh.close()


@pytest_asyncio.fixture(loop_scope="module")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


async def whoami(page: Page) -> str:
    status, me = await page.evaluate(ASK, "/api/v1/me")
    return str(me["user"]) if status == 200 else str(status)


async def test_a_link_opens_the_console_by_itself(up: Running, page: Page, context: BrowserContext) -> None:
    await page.goto(await up.one_time_link())
    await page.wait_for_url(f"{up.url}/")
    assert await whoami(page) not in ("401", "")
    cookie = (await context.cookies())[0]
    assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == ("butler-session", True, "Strict")
    assert await page.evaluate("document.cookie") == ""
    assert await page.evaluate(SOCKET) == "hello"


async def test_a_link_works_without_scripts_by_its_button(up: Running, chromium: Browser) -> None:
    context = await chromium.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(await up.one_time_link())
    await page.get_by_role("button", name="Open the console").click()
    await page.wait_for_url(f"{up.url}/")
    assert [cooky["name"] for cooky in await context.cookies()] == ["butler-session"]
    await context.close()


async def test_a_provider_on_another_site_lets_a_user_in(
    up: Running, provider: OidcProvider, page: Page, context: BrowserContext
) -> None:
    await page.goto(f"{up.url}/api/v1/login/oidc")
    assert page.url == f"{up.url}/"
    assert provider.asked
    assert await whoami(page) == "oidc:ada"
    assert {cooky["name"] for cooky in await context.cookies()} == {"butler-session"}


async def test_only_scripts_and_styles_of_the_console_itself_run(up: Running, page: Page) -> None:
    await page.goto(f"{up.url}/")
    assert await page.title() == "Butler"
    assert await page.evaluate("document.body.dataset.own") == "ran"
    shown = await page.evaluate(
        "(({color, margin, padding}) => [color, margin, padding])(getComputedStyle(document.querySelector('p')))"
    )
    assert shown[0] == "rgb(1, 2, 3)"
    assert "77px" not in shown[1]
    assert shown[2] == "5px"
    with pytest.raises(Error):
        await page.evaluate("fetch('http://127.0.0.1:9/')")


async def test_a_page_of_another_site_can_do_nothing(up: Running, provider: OidcProvider, page: Page) -> None:
    await page.goto(await up.one_time_link())
    await page.wait_for_url(f"{up.url}/")
    await page.goto(f"{provider.issuer}/keys")  # some page of another site
    there = page.url
    assert there.startswith("http://127.0.0.1")
    with pytest.raises(Error):
        await page.evaluate(
            "url => fetch(url, {credentials: 'include'}).then(got => got.text())", f"{up.url}/api/v1/me"
        )
    opened = await page.evaluate(
        "url => new Promise(done => { const socket = new WebSocket(url.replace('http', 'ws') + '/api/v1/stream');"
        " socket.onopen = () => done('open'); socket.onerror = () => done('refused') })",
        up.url,
    )
    assert opened == "refused"
    framed = await page.evaluate(
        "url => new Promise(done => { const frame = document.createElement('iframe'); frame.src = url;"
        " frame.onload = () => done(frame.contentDocument === null ? 'hidden' : 'shown');"
        " document.body.append(frame) })",
        up.url,
    )
    assert framed == "hidden"
    await page.goto(f"{up.url}/")
    assert await whoami(page) != "401"
