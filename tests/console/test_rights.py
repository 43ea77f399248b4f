"""A user with few rights sees only their own objects, and buttons that they may not use say why."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import expect

from console.browsing import COOKIE, settled, visit
from console.estate import TEAM
from console.routes import PAGES
from server.objects import GROUP, HOME, create
from server.rights import grant, namespace

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Page

    from console.browsing import Watch
    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")
USER, THEIRS = "mallory", "team-small"


@pytest_asyncio.fixture(loop_scope="session")
async def few(estate: Estate, stranger: BrowserContext, watch: Watch) -> Page:
    """A window of a user who may look at tenants of one namespace, and at nothing else."""
    if estate.plane.request("GET", f"/api/v1/namespaces/{THEIRS}")[0] == 404:
        namespace(estate.plane, THEIRS)
        grant(estate.plane, USER, ["get", "list", "watch"], ["tenantclusters"], namespace=THEIRS)
        spec = {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "harvester-production"},
            "workers": {"replicas": 1},
        }
        meta = {"name": "little", "namespace": THEIRS}
        create(estate.plane, {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": spec})
    watch.expect("40[34]")  # pages ask for what they could show, and show less when it is refused
    cookie = await estate.session_of(USER)
    await stranger.add_cookies([{"name": COOKIE, "value": cookie, "url": estate.url}])
    return await stranger.new_page()


async def test_people_see_only_their_own_tenants(few: Page) -> None:
    await visit(few, "/tenants")
    await expect(few.get_by_role("link", name="little")).to_be_visible()
    assert await few.get_by_text("payments").count() == 0


async def test_buttons_that_may_not_be_used_say_why(few: Page) -> None:
    await visit(few, "/tenants")
    new = few.get_by_role("button", name="New tenant")
    await expect(new).to_have_attribute("aria-disabled", "true")
    await new.focus()
    await expect(few.get_by_role("tooltip")).to_contain_text("You may not create tenants")
    await new.click(force=True)
    await expect(few).to_have_url(re.compile("/tenants$"))
    await few.goto(f"/tenants/{THEIRS}/little")
    await settled(few)
    for name in ("Scale", "Upgrade", "Delete"):
        button = few.get_by_role("button", name=name)
        await expect(button).to_have_attribute("aria-description", re.compile("You may not"))


async def test_what_a_user_may_not_read_is_told_and_nothing_breaks(few: Page) -> None:
    for path in PAGES.values():
        await few.goto(path)
        await settled(few)
        heading = await few.locator("h1").first.inner_text()
        assert heading != "This page broke", path
        # The answer contains the address that the user asked for, and no other.
        assert "10.92.9" not in (await few.locator("main").inner_text()).replace("10.92.90.50", ""), path
    await few.goto(f"/pools/{HOME}/production-pool")
    await expect(few.get_by_role("alert")).to_be_visible()
    await few.goto(f"/tenants/{TEAM}/payments")
    await expect(few.get_by_role("alert")).to_be_visible()
