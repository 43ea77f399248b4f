"""Without a mouse: everything can be reached, is seen to be reached, and can be left again."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import visit
from console.keyboard import focused, tab_to, tour
from console.routes import PAGES
from server.objects import HOME, allocation, create, pool

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_tab_comes_around_on_every_page_and_is_always_seen(context: BrowserContext) -> None:
    page = await context.new_page()
    found = []
    for name, path in PAGES.items():
        await visit(page, path)
        await page.evaluate("document.activeElement.blur()")
        stops, unseen = await tour(page)
        assert len(stops) > 8, (name, stops)
        found += [f"{name}: the focus on {text} cannot be seen" for text in unseen]
    assert not found, "\n".join(found)


async def test_the_first_tab_leads_past_the_sidebar(page: Page) -> None:
    await visit(page, "/pools")
    await page.keyboard.press("Tab")
    here = await focused(page)
    assert here["name"] == "Skip to the page"
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    inside = await page.evaluate("document.querySelector('main').contains(document.activeElement)")
    assert inside


async def test_the_map_is_walked_zoomed_and_selected_with_keys(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("walked", "10.140.0.0/16"))
    create(estate.plane, allocation("walked-to", "walked", 3))
    await visit(page, f"/pools/{HOME}/walked")
    await tab_to(page, "Map of 10.140.0.0/16", tag="canvas")
    spoken = page.get_by_role("status").filter(has_text=re.compile(r"10\.140\."))
    await expect(spoken).to_contain_text("10.140.0.0")
    await page.keyboard.press("ArrowDown")
    await expect(spoken).not_to_contain_text("10.140.0.0:")
    await page.keyboard.press("Control+Home")
    for _ in range(16):
        await page.keyboard.press("+")
    await expect(page.get_by_text("Each cell is one address").first).to_be_visible()
    await page.keyboard.press("ArrowRight")
    await expect(spoken).to_contain_text("10.140.0.1")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("link", name="walked-to").first).to_be_visible()
    await page.keyboard.press("0")
    await expect(page.get_by_text("Each cell is one address")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="Clear")).to_have_count(0)
    await page.keyboard.press("Tab")
    assert (await focused(page) or {}).get("tag") != "canvas"


async def test_a_pool_is_created_from_the_palette_to_the_end_with_keys(page: Page, estate: Estate) -> None:
    await visit(page, "/")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog").get_by_role("textbox")).to_be_focused()
    await page.keyboard.type("pools")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Pools", level=1)).to_be_visible()
    await tab_to(page, "^Create pool$", tag="button")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await expect(page.get_by_label("Name", exact=True)).to_be_focused()
    await page.keyboard.type("typed-pool")
    await tab_to(page, "^Network$")
    await page.keyboard.type("10.141.0.0/26")
    await expect(page.get_by_role("button", name="Create the pool")).to_be_enabled()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="typed-pool", level=1)).to_be_visible()
    assert estate.get("networkpools", "typed-pool")["spec"]["cidr"] == "10.141.0.0/26"


async def test_an_allocation_is_released_with_keys_and_the_focus_returns(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("let-go", "10.142.0.0/27"))
    create(estate.plane, allocation("let-go-of", "let-go", 2))
    ready = ("--for", "condition=Ready", "--timeout", "60s")
    await asyncio.to_thread(estate.plane.kubectl, "wait", "ipallocation/let-go-of", "-n", HOME, *ready)
    await visit(page, f"/pools/{HOME}/let-go?tab=allocations")
    await tab_to(page, "Release let-go-of", tag="button")
    await page.keyboard.press("Enter")
    asked = page.get_by_role("dialog")
    await expect(asked).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(asked).to_be_hidden()
    await expect(page.get_by_role("button", name="Release let-go-of")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(asked.get_by_text("go back to let-go")).to_be_visible()
    await expect(asked.get_by_role("textbox")).to_be_focused()
    await page.keyboard.type("let-go-of")
    await page.keyboard.press("Enter")
    await expect(asked).to_be_hidden()
    await expect(page.get_by_role("row").filter(has_text="let-go-of")).to_have_count(0)


async def test_a_dialog_keeps_the_focus_inside_until_it_is_closed(page: Page) -> None:
    await visit(page, "/pools")
    await tab_to(page, "^Create pool$", tag="button")
    await page.keyboard.press("Enter")
    asked = page.get_by_role("dialog")
    await expect(asked).to_be_visible()
    await page.wait_for_timeout(300)
    inside = "document.querySelector('[role=dialog]').contains(document.activeElement)"
    for _ in range(20):
        await page.keyboard.press("Tab")
        assert await page.evaluate(inside), await focused(page)
    await page.keyboard.press("Escape")
    await expect(asked).to_be_hidden()
    await expect(page.get_by_role("button", name="Create pool")).to_be_focused()
