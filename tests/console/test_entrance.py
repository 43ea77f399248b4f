"""Logging in, logging out, and what a page does while the server does not answer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import settled, visit

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

    from console.browsing import Watch
    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")
NO_SERVER_THERE = (r"401", r"net::ERR", r"WebSocket connection", r"502|503|504")


async def test_a_link_opens_the_overview_once_and_then_tells_how_to_get_another(
    estate: Estate, stranger: BrowserContext, watch: Watch
) -> None:
    link = estate.link()
    page = await stranger.new_page()
    await page.goto(link)
    await page.wait_for_url(f"{estate.url}/")
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile("production-pool")).first).to_be_visible()
    assert "token" not in page.url
    watch.expect(r"40[0-9] POST .*/link", r"status of 40[0-9].*/link")
    again = await stranger.new_page()
    await again.goto(link)
    await expect(again.get_by_text("butleradm server link")).to_be_visible()


async def test_a_user_who_is_not_in_is_led_to_the_login_and_then_to_the_page_they_wanted(
    estate: Estate, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("401")
    page = await stranger.new_page()
    await page.goto("/tenants?phase=Ready")
    await expect(page.get_by_role("heading", name="Log in to Butler")).to_be_visible()
    await expect(page.get_by_text("butleradm server link")).to_be_visible()
    assert "next=%2Ftenants%3Fphase%3DReady" in page.url


async def test_logging_out_ends_the_session_and_the_back_button_shows_nothing(
    estate: Estate, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect(*NO_SERVER_THERE)
    page = await stranger.new_page()
    await page.goto(estate.link())
    await page.wait_for_url(f"{estate.url}/")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Tenants").click()
    await expect(page.get_by_role("link", name="payments")).to_be_visible()
    await page.get_by_role("button", name=re.compile("Signed in as")).click()
    await page.get_by_role("menuitem", name="Log out").click()
    await expect(page.get_by_role("heading", name="Log in to Butler")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="Log in to Butler")).to_be_visible()
    assert await page.get_by_text("payments").count() == 0
    status = await page.evaluate("fetch('/api/v1/tenants').then(answer => answer.status)")
    assert status == 401


async def test_a_session_can_be_ended_from_another_window(
    estate: Estate, stranger: BrowserContext, page: Page, watch: Watch
) -> None:
    watch.expect(*NO_SERVER_THERE)
    other = await stranger.new_page()
    await other.goto(estate.link())
    await other.wait_for_url(f"{estate.url}/")
    await visit(other, "/pools")
    await visit(page, "/sessions")
    rows = page.get_by_role("row").filter(has=page.get_by_role("button", name=re.compile("End")))
    before = await rows.count()
    await rows.first.get_by_role("button").click()
    await expect(rows).to_have_count(before - 1)
    await expect(other.get_by_role("heading", name="Log in to Butler")).to_be_visible()


async def test_a_theme_that_was_chosen_is_kept(page: Page) -> None:
    await visit(page, "/")
    shown = page.locator("html")
    await page.get_by_role("button", name=re.compile("Theme")).click()
    await page.get_by_role("menuitem", name="Dark").click()
    await expect(shown).to_have_attribute("data-mantine-color-scheme", "dark")
    await page.reload()
    await expect(shown).to_have_attribute("data-mantine-color-scheme", "dark")
    await settled(page)
    background = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", background)[:3])) < 150, background


async def test_an_address_that_leads_nowhere_says_so_and_leads_back(page: Page) -> None:
    await visit(page, "/no/such/page")
    await expect(page.get_by_role("heading", name="There is no such page")).to_be_visible()
    await page.get_by_role("link", name="To the overview").click()
    await expect(page.get_by_role("heading", name="Overview", level=1)).to_be_visible()


async def test_an_object_that_is_not_there_says_so(page: Page, watch: Watch) -> None:
    watch.expect("404")
    await page.goto("/pools/butler-system/nowhere")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text(re.compile("no|not", re.IGNORECASE))
