"""Every page is accessible to all users: nothing that axe finds, in both themes, on large and small screens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.accessible import overflow, violations
from console.browsing import NARROW, WIDE, visit
from console.estate import TEAM
from console.routes import PAGES
from server.objects import HOME

if TYPE_CHECKING:
    from typing import Literal

    from playwright.async_api import BrowserContext, Page

    from console.browsing import Watch

pytestmark = pytest.mark.asyncio(loop_scope="session")
POOL, TENANT = f"/pools/{HOME}/production-pool", f"/tenants/{TEAM}/payments"
DIALOGS = [
    ("/pools", "Create pool"),
    (POOL, "Grow"),
    (POOL, "Reserve"),
    (POOL, "Allocate"),
    (f"{POOL}?tab=allocations", "Release payments-lb"),
    (TENANT, "Scale"),
    (TENANT, "Upgrade"),
    (TENANT, "Kubeconfig"),
    (TENANT, "Delete"),
]
WIDTHS = (320, 390, 720, 1440)
"""The narrowest that WCAG asks for, a telephone, a window at 200 %, and a desk."""
STILL = """async () => {
  for (let round = 0; round < 2; round += 1) {
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
    await Promise.allSettled(document.getAnimations().map(change => change.finished))
  }
}"""
"""Ends when the page was drawn anew and nothing fades any more."""
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


async def in_all_lights(page: Page, name: str, *, within: str = "html") -> list[str]:
    """Violations of the page in both themes and on both screens; it follows both without being loaded anew."""
    found = []
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme)
        await expect(page.locator("html")).to_have_attribute("data-mantine-color-scheme", theme)
        for width, height in (WIDE, NARROW):
            await page.set_viewport_size({"width": width, "height": height})
            await page.evaluate(STILL)
            found += [
                f"{name}, {theme}, {width} pixels: {violation}" for violation in await violations(page, within=within)
            ]
    return found


async def test_axe_finds_nothing_on_any_page(context: BrowserContext) -> None:
    page = await context.new_page()
    found = []
    for name, path in PAGES.items():
        await page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        await visit(page, path)
        found += await in_all_lights(page, name)
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_in_any_dialog(context: BrowserContext) -> None:
    page = await context.new_page()
    found = []
    for path, button in DIALOGS:
        await page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        await visit(page, path)
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(page.get_by_role("dialog")).to_be_visible()
        await page.wait_for_timeout(300)
        found += await in_all_lights(page, f"{path} {button}", within="[role=dialog]")
        if wide := await overflow(page):
            found.append(f"{path} {button}: {wide}")
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_in_any_menu_nor_where_a_pool_is_deleted(context: BrowserContext) -> None:
    page = await context.new_page()
    await visit(page, POOL)
    found = []
    for button in (re.compile("^Theme:"), re.compile("^Signed in as"), re.compile("^More actions$")):
        await page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
        await page.get_by_role("button", name=button).click()
        await expect(page.get_by_role("menu")).to_be_visible()
        found += await in_all_lights(page, f"menu {button.pattern}", within="[role=menu]")
        if button.pattern != "^More actions$":
            await page.keyboard.press("Escape")
            await expect(page.get_by_role("menu")).to_be_hidden()
    await page.get_by_role("menuitem", name="Delete pool").click()
    await expect(page.get_by_role("dialog")).to_be_visible()
    found += await in_all_lights(page, "delete a pool", within="[role=dialog]")
    assert not found, "\n".join(found)


async def test_axe_finds_nothing_at_the_door_and_in_the_palette(
    page: Page, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("401")
    door = await stranger.new_page()
    await door.goto("/login")
    await expect(door.get_by_role("heading", name="Log in to Butler")).to_be_visible()
    found = await in_all_lights(door, "login")
    await visit(page, "/")
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").get_by_role("textbox").fill("pay")
    await expect(page.get_by_text("payments-nodes").first).to_be_visible()
    found += await in_all_lights(page, "palette")
    assert not found, "\n".join(found)


async def test_no_page_is_wider_than_its_window(context: BrowserContext) -> None:
    page = await context.new_page()
    found = []
    for name, path in PAGES.items():
        await visit(page, path)
        for width in WIDTHS:
            await page.set_viewport_size({"width": width, "height": 800})
            await page.evaluate(STILL)
            if wide := await overflow(page):
                found.append(f"{name}: {wide}")
    assert not found, "\n".join(found)
