"""One Butler with eight tenants and one browser for all tests of the console; each test has windows of its own.

Whatever goes wrong in a page that a test did not announce with `watch.expect` fails the test: an error in the
browser's console, an exception, a request that is refused or fails, something that the content policy forbids.

The tests share an estate, so each uses names that no other does, and leaves the eight tenants as it found them.
Playwright's asynchronous API is used, on one loop for all: its other one would keep a loop running beside the tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from build_console import DIST
from install_browser import find
from playwright.async_api import async_playwright

from console.browsing import PATIENCE, WIDE, Watch, launch
from console.estate import Estate
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser, BrowserContext, Page, StorageState

NO_BROWSER = "THE CONSOLE IS NOT TESTED: there is no Chromium here; tools/install_browser.py says how to get one"
NOT_BUILT = "THE CONSOLE IS NOT TESTED: it is not built; `make console` does it"


@pytest.fixture(scope="session")
def estate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    if find() is None:
        pytest.skip(NO_BROWSER)
    if not (DIST / "index.html").exists():
        pytest.skip(NOT_BUILT)
    with LocalServer(tmp_path_factory.mktemp("console"), controllers=True, console=True) as server:
        up = Estate(server)
        up.fill()
        up.link()  # which waits for the console
        yield up


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def chromium(estate: Estate) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await launch(playwright)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def administrator(chromium: Browser, estate: Estate) -> StorageState:
    """What a browser remembers after a user logged in with a real one-time link."""
    context = await chromium.new_context()
    page = await context.new_page()
    await page.goto(estate.link())
    await page.wait_for_url(f"{estate.url}/")
    remembered = await context.storage_state()
    await context.close()
    return remembered


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Fails the test for what went wrong in its pages."""
    watching = Watch()
    yield watching
    assert not watching.unexpected, "\n".join(watching.unexpected)


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    chromium: Browser, administrator: StorageState, estate: Estate, watch: Watch
) -> AsyncIterator[BrowserContext]:
    """An administrator's windows."""
    fresh = await opened(chromium, estate, watch, administrator)
    yield fresh
    await fresh.close()


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(chromium: Browser, estate: Estate, watch: Watch) -> AsyncIterator[BrowserContext]:
    """Windows of a user who has not logged in yet."""
    fresh = await opened(chromium, estate, watch, None)
    yield fresh
    await fresh.close()


@pytest_asyncio.fixture(loop_scope="session")
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


async def opened(browser: Browser, estate: Estate, watch: Watch, remembered: StorageState | None) -> BrowserContext:
    fresh = await browser.new_context(
        base_url=estate.url,
        storage_state=remembered,
        viewport={"width": WIDE[0], "height": WIDE[1]},
        reduced_motion="reduce",
        accept_downloads=True,
    )
    fresh.set_default_timeout(PATIENCE)
    fresh.on("page", watch.on)
    return fresh
