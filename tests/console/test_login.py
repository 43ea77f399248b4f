"""Coming in with a password, and by way of an identity provider, in a browser."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import expect

from butler.kube import config
from butler.kube.client import Client
from butler.server.access.oidc import OidcSettings
from butler.server.access.passwords import reset_admin
from butler.server.access.store import open_store
from butler.server.process import Running, Settings, running
from console.accessible import violations
from server.eventually import eventually
from server.oidc_provider import CLIENT, SECRET, OidcProvider
from server.rights import grant
from server.sealed import RECORDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import BrowserContext

    from console.browsing import Watch
    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def up(estate: Estate, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Running]:
    """A console of the same estate that takes passwords, and asks a provider."""
    secret = tmp_path_factory.mktemp("oidc") / "client-secret"
    secret.write_text(f"{SECRET}\n")
    async with OidcProvider() as provider:
        settings = Settings(local_admin=True, oidc=OidcSettings(provider.issuer, CLIENT, secret, name="Example SSO"))
        async with running(config.load(estate.plane.kubeconfig), settings) as served:
            yield served


async def test_the_administrator_comes_in_with_a_password(
    estate: Estate, up: Running, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("40[13]")
    async with Client(config.load(estate.plane.kubeconfig)) as client:
        _, password = await reset_admin(await open_store(client, RECORDS))
    page = await stranger.new_page()
    await page.goto(f"{up.url}/tenants")
    log_in = page.get_by_role("button", name="Log in")
    await log_in.click()
    await expect(page.get_by_text("Your user name")).to_be_visible()
    await page.get_by_label("User name").fill("admin")
    await page.get_by_role("textbox", name="Password").fill("not this one")
    await log_in.click()
    await expect(page.get_by_role("alert")).to_be_visible()
    assert not await violations(page)
    await page.get_by_role("textbox", name="Password").fill(password)
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{up.url}/tenants")
    await page.get_by_role("button", name=re.compile("Signed in as butler:admin")).click()
    await expect(page.get_by_text("Signed in with a password")).to_be_visible()


async def test_people_come_in_by_way_of_their_provider_with_their_own_rights(
    estate: Estate, up: Running, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("40[13]")
    grant(estate.plane, "oidc:ada", ["get", "list", "watch"], ["networkpools", "ipallocations"])
    page = await stranger.new_page()
    await page.goto(f"{up.url}/pools?q=production")
    await page.get_by_role("link", name="Continue with Example SSO").click()
    await page.wait_for_url(f"{up.url}/pools?q=production")
    await expect(page.get_by_role("link", name="production-pool").first).to_be_visible()
    create = page.get_by_role("button", name="Create pool")
    await expect(create).to_have_attribute("aria-disabled", "true")


async def test_the_login_page_says_nothing_that_stands_in_its_address(
    up: Running, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("401")
    page = await stranger.new_page()
    await page.goto(f"{up.url}/login?error=Call+0800-EVIL+at+once&message=EVIL&reason=EVIL#EVIL")
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert "EVIL" not in await page.inner_text("body")
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_the_next_person_at_a_browser_does_not_see_what_the_last_one_searched(
    estate: Estate, up: Running, stranger: BrowserContext, watch: Watch
) -> None:
    watch.expect("40[13]")
    async with Client(config.load(estate.plane.kubeconfig)) as client:
        _, password = await reset_admin(await open_store(client, RECORDS))
    page = await stranger.new_page()
    await page.goto(f"{up.url}/addresses")
    await page.get_by_label("User name").fill("admin")
    await page.get_by_role("textbox", name="Password").fill(password)
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url(f"{up.url}/addresses")
    search = page.get_by_label("Address, range, network or name")
    await search.fill("10.92.92.16")
    await search.press("Enter")
    kept = "() => Object.values(localStorage).join() + Object.values(sessionStorage).join()"

    async def remembered() -> None:
        assert "10.92.92.16" in await page.evaluate(kept)

    await eventually(remembered)
    await page.get_by_role("button", name=re.compile("Signed in as")).click()
    await page.get_by_role("menuitem", name="Log out").click()
    await expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert "10.92.92.16" not in await page.evaluate(kept)
