"""Pools from created to emptied, as a user does it in a browser: a change is shown before it is made."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import visit
from server.objects import GROUP, HOME, allocation, create, pool

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

    from console.browsing import Watch
    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")
TO = "\N{EN DASH}"


async def dialog(page: Page, button: str) -> Locator:
    await page.get_by_role("button", name=button, exact=True).click()
    shown = page.get_by_role("dialog")
    await expect(shown).to_be_visible()
    return shown


async def test_a_pool_is_previewed_created_and_then_in_the_list(page: Page, estate: Estate) -> None:
    await visit(page, "/pools")
    asked = await dialog(page, "Create pool")
    submit = asked.get_by_role("button", name="Create the pool")
    await expect(submit).to_be_disabled()
    await asked.get_by_label("Name", exact=True).fill("made-here")
    await asked.get_by_label("Network", exact=True).fill("10.71.0.0/24")
    await expect(asked.get_by_text(re.compile(r"\b254\b")).first).to_be_visible()
    await submit.click()
    await page.wait_for_url(f"**/pools/{HOME}/made-here")
    await expect(page.get_by_role("heading", name="made-here", level=1)).to_be_visible()
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Pools").click()
    await expect(page.get_by_role("row").filter(has_text="made-here")).to_contain_text("10.71.0.0/24")
    assert estate.get("networkpools", "made-here")["spec"]["cidr"] == "10.71.0.0/24"


async def test_a_pool_that_would_be_refused_says_why_before_it_is_sent(page: Page) -> None:
    await visit(page, "/pools?new")
    asked = page.get_by_role("dialog")
    await asked.get_by_label("Name", exact=True).fill("odd-pool")
    await asked.get_by_label("Network", exact=True).fill("10.72.0.0/24")
    await asked.get_by_role("button", name="Name a window").click()
    await asked.get_by_label("First address of window 1").fill("10.73.0.1")
    await asked.get_by_label("Last address of window 1").fill("10.73.0.9")
    await expect(asked.get_by_text(re.compile("10.73.0.1.*not|outside|refused", re.IGNORECASE)).first).to_be_visible()
    await expect(asked.get_by_role("button", name="Create the pool")).to_be_disabled()


async def test_a_pool_grows_reserves_and_pins(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("grown-here", "10.74.0.0/27"))
    await visit(page, f"/pools/{HOME}/grown-here")
    growing = await dialog(page, "Grow")
    await growing.get_by_label("At least so many addresses more").fill("20")
    await expect(growing.get_by_text("10.74.0.0/26").first).to_be_visible()
    await growing.get_by_role("button", name="Grow the pool").click()
    await expect(growing).to_be_hidden()
    await expect(page.locator("header").get_by_text("10.74.0.0/26")).to_be_visible()

    reserving = await dialog(page, "Reserve")
    await reserving.get_by_label("Network 1", exact=True).fill("10.74.0.0/29")
    await reserving.get_by_label("What network 1 is for").fill("gateways")
    await expect(reserving.get_by_role("button", name="Save")).to_be_enabled()
    await reserving.get_by_role("button", name="Save").click()
    await expect(reserving).to_be_hidden()

    pinning = await dialog(page, "Allocate")
    await pinning.get_by_label("Name of the allocation").fill("pinned-here")
    await pinning.get_by_label("Tenant", exact=True).fill("a-team")
    await pinning.get_by_label("Namespace of the tenant").fill("elsewhere")
    await pinning.get_by_text("Exactly these (pin)").click()
    await pinning.get_by_label("First address").fill("10.74.0.16")
    await pinning.get_by_label("Last address").fill("10.74.0.19")
    await expect(pinning.get_by_text("Would be granted")).to_be_visible()
    await pinning.get_by_role("button", name="Allocate").click()
    await expect(pinning).to_be_hidden()

    await page.get_by_role("tab", name="Allocations").click()
    row = page.get_by_role("row").filter(has_text="pinned-here")
    await expect(row).to_contain_text(f"10.74.0.16{TO}10.74.0.19")
    assert estate.get("networkpools", "grown-here")["spec"]["reserved"][0]["cidr"] == "10.74.0.0/29"


async def test_a_release_shows_what_hangs_on_it_and_wants_the_name_typed(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("emptied-here", "10.75.0.0/27"))
    create(estate.plane, allocation("released-here", "emptied-here", 4, tenant="app-1", namespace="team-legacy"))
    await asyncio.to_thread(
        estate.plane.kubectl, "wait", "ipallocation/released-here", "-n", HOME, "--for", "condition=Ready"
    )
    await visit(page, f"/pools/{HOME}/emptied-here?tab=allocations")
    asked = await dialog(page, "Release released-here")
    await expect(asked.get_by_text(f"10.75.0.1{TO}10.75.0.4")).to_be_visible()
    # The tenant was never seen: nothing is said of it that could cost the address of a machine.
    await expect(asked.get_by_text("Butler cannot see whether this is in use").first).to_be_visible()
    for claim in ("gone", "any more", "Nobody uses", "No tenant uses", "unused"):
        await expect(asked.get_by_text(claim)).to_have_count(0)
    confirm = asked.get_by_role("button", name="Release the addresses")
    await expect(confirm).to_be_disabled()
    await asked.get_by_role("textbox").fill("released-here")
    await confirm.click()
    await expect(asked).to_be_hidden()
    await expect(page.get_by_text("0 of 30 addresses held")).to_be_visible()
    await expect(page.get_by_role("row").filter(has_text="released-here")).to_have_count(0)


async def test_the_addresses_of_a_tenant_that_was_never_seen_are_never_called_unused(
    page: Page, estate: Estate, watch: Watch
) -> None:
    watch.expect("/tenants/team-legacy/app-0")
    create(estate.plane, pool("imported-here", "10.76.0.0/27"))
    create(estate.plane, allocation("taken-over", "imported-here", 4, tenant="app-0", namespace="team-legacy"))
    await asyncio.to_thread(
        estate.plane.kubectl, "wait", "ipallocation/taken-over", "-n", HOME, "--for", "condition=Ready"
    )
    tenant = estate.get("ipallocations", "taken-over")["spec"]["tenantClusterRef"]
    for path in (
        f"/allocations/{HOME}/taken-over",
        "/addresses?q=10.76.0.2",
        f"/tenants/{tenant['namespace']}/{tenant['name']}",
    ):
        await visit(page, path)
        words = page.get_by_text("Butler cannot see whether this is in use")
        honest = words.or_(page.get_by_text("a cluster that Butler does not manage"))
        await expect(honest.first).to_be_visible()
        for claim in ("There is no such tenant", "any more", "Nobody uses", "No tenant uses", "gone a moment ago"):
            await expect(page.get_by_text(claim)).to_have_count(0)


async def test_what_a_living_tenant_has_cannot_be_released(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("used-here", "10.178.0.0/27"))
    cluster = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}, "paused": True}
    meta = {"name": "living", "namespace": HOME}
    create(
        estate.plane,
        {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": cluster},
    )
    held = allocation("used-by-living", "used-here", 4)
    held["spec"]["tenantClusterRef"] = {"name": "living", "namespace": HOME}
    create(estate.plane, held)
    await asyncio.to_thread(
        estate.plane.kubectl, "wait", "ipallocation/used-by-living", "-n", HOME, "--for", "condition=Ready"
    )
    await visit(page, f"/pools/{HOME}/used-here?tab=allocations")
    asked = await dialog(page, "Release used-by-living")
    await expect(asked.get_by_text("This tenant exists, so its addresses cannot be released")).to_be_visible()
    await asked.get_by_role("textbox").fill("used-by-living")
    await expect(asked.get_by_role("button", name="Release the addresses")).to_be_disabled()


async def test_two_fingers_zoom_the_map(page: Page, estate: Estate) -> None:
    create(estate.plane, pool("wide-pool", "10.99.0.0/16"))
    await visit(page, f"/pools/{HOME}/wide-pool")
    canvas = page.get_by_role("application", name="Map of 10.99.0.0/16")
    await canvas.scroll_into_view_if_needed()
    cell = page.get_by_text(re.compile("^Each cell is"))
    far = await cell.inner_text()
    box = await canvas.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    hand = await page.context.new_cdp_session(page)

    async def touch(kind: str, *spread: float) -> None:
        points = [{"x": x + distance, "y": y, "id": number} for number, distance in enumerate(spread)]
        await hand.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    await hand.send("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    await touch("touchStart", -20, 20)
    for step in range(30, 170, 10):
        await touch("touchMove", -step, step)
    await touch("touchEnd")
    await expect(cell).not_to_have_text(far)
    near = await cell.inner_text()
    assert addresses(near) < addresses(far)


def addresses(cell: str) -> int:
    found = re.search(r"is ([\d,]+) addresses", cell)
    return int(found[1].replace(",", "")) if found else 1
