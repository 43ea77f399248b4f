"""Asking without changing anything: what would happen, whose an address is, and what happened."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import visit
from server.objects import HOME

if TYPE_CHECKING:
    from playwright.async_api import Page

    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_a_plan_follows_the_sliders_and_explains_the_first_that_fails(page: Page) -> None:
    await visit(page, "/plan?tenants=4&provider=harvester-production")
    await expect(page.get_by_text("All 4 tenants fit")).to_be_visible()
    slider = page.get_by_role("slider", name="Tenants")
    await slider.focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_text("All 5 tenants fit")).to_be_visible()
    await page.get_by_label("Tenants", exact=True).and_(page.get_by_role("textbox")).fill("40")
    await expect(page.get_by_text(re.compile(r"\d of 40 tenants fit"))).to_be_visible()
    await expect(
        page.get_by_text(re.compile(r"Tenant \d+ is the first that does not: .*production-pool"))
    ).to_be_visible()
    await expect(page).to_have_url(re.compile("tenants=40"))
    await expect(page.get_by_text("butleradm ipam plan --tenants 40")).to_be_visible()


async def test_a_plan_is_drawn_on_the_map_also_of_a_pool_that_would_grow(page: Page) -> None:
    await visit(page, "/plan?tenants=1&provider=harvester-production")
    pools = page.get_by_role("region", name="Pools, before and after")
    drawn = pools.get_by_role("application", name="Map of 10.92.92.0/23")
    await expect(pools.get_by_role("list", name="Legend").last).to_contain_text("planned")
    gets = page.get_by_role("region", name="Who gets what").get_by_role("link", name=re.compile(r"^10\.92\.92\."))
    first = (await gets.inner_text()).partition("\u2013")[0]
    where = pools.get_by_role("textbox", name="Go to an address").last
    await where.fill(first)
    await where.press("Enter")
    await expect(drawn).to_be_focused()
    await expect(pools.get_by_text("allocation planned-1-nodes").last).to_be_visible()

    await page.get_by_role("switch", name="Edit a pool first").check(force=True)
    await page.get_by_role("combobox", name="Pool", exact=True).click()
    await page.get_by_role("option", name=re.compile("^production-nodes")).click()
    await page.get_by_label("Network", exact=True).fill("10.92.92.0/22")
    grown = pools.get_by_role("application", name="Map of 10.92.92.0/22")
    await expect(grown).to_be_visible()


async def test_an_address_leads_to_who_holds_it(page: Page, estate: Estate) -> None:
    held = estate.get("ipallocations", "payments-lb")["status"]["startAddress"]
    await visit(page, "/addresses")
    await page.get_by_label("Address, range, network or name").fill(held)
    who = page.get_by_role("region", name="Who holds it")
    await expect(who.get_by_role("link", name="team-platform/payments")).to_be_visible()
    await expect(who.get_by_role("link", name="payments-lb")).to_be_visible()
    await expect(page.get_by_role("region", name="Who uses it")).to_contain_text("traefik")


async def test_activity_tells_who_did_what_just_now(page: Page, estate: Estate) -> None:
    await visit(page, "/pools?new")
    asked = page.get_by_role("dialog")
    await asked.get_by_label("Name", exact=True).fill("told-of")
    await asked.get_by_label("Network", exact=True).fill("10.77.0.0/26")
    await asked.get_by_role("button", name="Create the pool").click()
    await page.wait_for_url(f"**/pools/{HOME}/told-of")
    me = await page.evaluate("fetch('/api/v1/me').then(answer => answer.json()).then(me => me.user)")
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Activity").click()
    entry = page.get_by_role("listitem").filter(has_text="told-of").filter(has_text=me)
    await expect(entry.first).to_be_visible()


async def test_the_palette_finds_pages_objects_and_addresses(page: Page) -> None:
    await visit(page, "/")
    await page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox", name="Search names and addresses").or_(
        page.get_by_placeholder(re.compile("A pool, tenant"))
    )
    await field.first.fill("payments-nodes")
    found = page.get_by_text("payments-nodes", exact=True)
    await expect(found.first).to_be_visible()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="payments-nodes", level=1)).to_be_visible()
