"""Pages that are open follow what others change, and lose nothing when the line breaks.

The figures are printed (`pytest -s`); a busy machine may be slow, so no more is asked than that a change is there
within seconds. `make bench-console` measures on a quiet one.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import alive, settled, visit
from console.changes import CHANGES, ELSEWHERE, measured, prepare
from console.routes import PAGES
from server.objects import HOME, create, pool

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

    from console.browsing import Watch
    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")
SECONDS = 5.0
CUT = (r"net::ERR", r"WebSocket", r"refused: 50", "Failed to load resource")


async def test_a_change_from_a_terminal_is_on_every_open_page_at_once(context: BrowserContext, estate: Estate) -> None:
    prepare(estate)
    page = await context.new_page()
    taken = {
        name: await measured(page, estate, ELSEWHERE.get(name, PAGES[name]), change) for name, change in CHANGES.items()
    }
    for name, seconds in sorted(taken.items(), key=lambda text: text[1]):
        print(f"{name:20} {seconds * 1000:6.0f} ms")
    inner = sorted(taken.values())
    print(f"{'p50':20} {inner[len(inner) // 2] * 1000:6.0f} ms\n{'slowest':20} {inner[-1] * 1000:6.0f} ms")
    slow = {name: seconds for name, seconds in taken.items() if seconds > SECONDS}
    assert not slow


async def test_what_changes_while_the_network_is_away_is_there_afterwards(
    page: Page, context: BrowserContext, estate: Estate, watch: Watch
) -> None:
    watch.expect(*CUT)
    create(estate.plane, pool("cut-off", "10.78.0.0/27"))
    await visit(page, "/pools")
    await expect(page.get_by_role("link", name="cut-off", exact=True)).to_be_visible()
    await context.set_offline(True)
    await expect(page.get_by_role("status").get_by_text("Offline")).to_be_visible()
    await asyncio.to_thread(estate.patch, "networkpools", "cut-off", {"spec": {"cidr": "10.78.0.0/25"}})
    create(estate.plane, pool("born-meanwhile", "10.78.4.0/27"))
    estate.plane.kubectl("delete", "networkpool", "cut-off", "-n", HOME)
    await context.set_offline(False)
    await alive(page)
    await expect(page.get_by_role("link", name="born-meanwhile", exact=True)).to_be_visible()
    await expect(page.get_by_role("link", name="cut-off", exact=True)).to_have_count(0)
    assert await shown_pools(page) == await pools_of_the_api(page)


async def test_a_server_that_is_gone_and_comes_back_is_told_and_caught_up_with(
    page: Page, estate: Estate, watch: Watch
) -> None:
    watch.expect(*CUT)
    await visit(page, "/pools")
    await page.evaluate("window.notReloaded = true")
    create(estate.plane, pool("before-the-fall", "10.79.0.0/27"))
    await asyncio.to_thread(estate.server.kill)
    await expect(page.get_by_role("status").get_by_text(re.compile("Reconnecting|Offline"))).to_be_visible()
    await expect(page.get_by_role("link", name="production-pool", exact=True)).to_be_visible()  # what was known stays
    await asyncio.to_thread(estate.start_again)
    create(estate.plane, pool("after-the-fall", "10.79.4.0/27"))
    await alive(page)
    for name in ("before-the-fall", "after-the-fall"):
        await expect(page.get_by_role("link", name=name, exact=True)).to_be_visible()
    assert await page.evaluate("window.notReloaded") is True
    assert await shown_pools(page) == await pools_of_the_api(page)


async def shown_pools(page: Page) -> list[str]:
    """Names in the list, once nothing moves any more."""
    await settled(page)
    await page.wait_for_timeout(500)
    return sorted(await page.locator("main tbody tr a").all_inner_texts())


async def pools_of_the_api(page: Page) -> list[str]:
    items = await page.evaluate("fetch('/api/v1/pools?limit=50').then(got => got.json()).then(got => got.items)")
    return sorted(item["name"] for item in items)
