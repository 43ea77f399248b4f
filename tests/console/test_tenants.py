"""Tenant clusters in a browser: made with a form and its manifest, changed, entered and deleted."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from console.browsing import visit
from console.estate import TEAM
from control_planes import BIN
from server.objects import GROUP, create

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page, Route

    from console.estate import Estate

pytestmark = pytest.mark.asyncio(loop_scope="session")
BUILT = 90_000.0
"""Milliseconds until a cluster has to be up on a busy machine."""


async def test_a_tenant_is_made_with_form_and_manifest_and_comes_up_while_one_watches(
    page: Page, estate: Estate
) -> None:
    await visit(page, "/tenants")
    await page.get_by_role("button", name="New tenant").click()
    manifest = page.get_by_label("Manifest of the new tenant")
    await expect(manifest).to_be_visible()
    await page.get_by_label("Name", exact=False).first.fill("by-form")
    await expect(manifest).to_have_value(re.compile(r"name: by-form"))
    await page.get_by_role("combobox", name="Namespace").fill(TEAM)
    await page.get_by_role("combobox", name="Kubernetes version").fill("v1.33.2")
    await page.keyboard.press("Escape")
    # The other way: what is typed into the manifest is in the form.
    text = await manifest.input_value()
    await manifest.fill(text.replace("name: by-form", "name: by-hand"))
    await expect(page.get_by_label("Name", exact=False).first).to_have_value("by-hand")
    await manifest.fill("kind: [")
    await expect(page.get_by_text("The manifest cannot be read").first).to_be_visible()
    await manifest.fill(text.replace("name: by-form", "name: by-hand"))

    await page.get_by_role("button", name="Next: Provider").click()
    await page.get_by_role("radio", name=re.compile("harvester-production")).click()
    await page.get_by_role("button", name="Next: Workers").click()
    await page.get_by_role("textbox", name="Workers").fill("2")
    await expect(manifest).to_have_value(re.compile(r"replicas: 2"))
    await page.get_by_role("button", name="Next: Networking").click()
    await page.get_by_role("button", name="Next: Review").click()
    preview = page.get_by_role("region", name="Addresses it would get")
    await expect(preview.get_by_text("for nodes from production-nodes")).to_be_visible()
    await expect(preview.get_by_text("for load balancers from production-pool")).to_be_visible()
    promised = await preview.get_by_role("link", name=re.compile(r"^10\.92\.90\.")).first.inner_text()

    await page.get_by_role("button", name="Create tenant").click()
    await page.wait_for_url(f"**/tenants/{TEAM}/by-hand")
    state = page.get_by_role("heading", name="by-hand").locator("xpath=..")
    await expect(state.get_by_text("Ready", exact=True)).to_be_visible(timeout=BUILT)
    await expect(page.get_by_text(promised).first).to_be_visible()
    await page.goto("/tenants/new")
    await expect(page.get_by_label("Manifest of the new tenant")).not_to_have_value(re.compile("by-hand"))
    estate.plane.kubectl("delete", "tenantcluster", "by-hand", "-n", TEAM, "--wait=false")


async def test_a_filter_typed_while_another_page_comes_stays_with_its_own(page: Page) -> None:
    held = asyncio.Event()

    async def when_let(route: Route) -> None:
        await held.wait()
        await route.continue_()

    await visit(page, "/tenants")
    await page.route(re.compile(r"/assets/.*\.js"), when_let)
    await page.get_by_role("button", name="New tenant").click()
    await page.get_by_role("textbox", name="Filter by name").fill("late")
    await asyncio.sleep(0.5)
    held.set()
    await expect(page.get_by_label("Manifest of the new tenant")).to_be_visible()
    assert page.url.endswith("/tenants/new")


async def test_filters_that_leave_nothing_are_cleared_at_once(page: Page) -> None:
    await visit(page, f"/tenants?namespace={TEAM}")
    await expect(page.get_by_role("link", name="payments")).to_be_visible()
    box = page.get_by_role("textbox", name="Filter by name")
    await box.fill("no such tenant")
    await page.get_by_role("button", name="Clear the filters").click()
    await expect(page.get_by_role("link", name="payments")).to_be_visible()
    await expect(box).to_have_value("")
    assert page.url.endswith("/tenants")
    await box.fill("pay")
    await expect(page).to_have_url(re.compile("q=pay"))
    await expect(page.get_by_role("row")).to_have_count(2)


async def test_a_tenant_is_scaled_upgraded_entered_and_deleted(page: Page, estate: Estate, tmp_path: Path) -> None:
    spec = {
        "kubernetesVersion": "v1.33.2",
        "providerConfigRef": {"name": "harvester-production"},
        "workers": {"replicas": 1},
    }
    meta = {"name": "guest", "namespace": TEAM}
    create(estate.plane, {"apiVersion": GROUP, "kind": "TenantCluster", "metadata": meta, "spec": spec})
    await visit(page, f"/tenants/{TEAM}/guest")
    state = page.get_by_role("heading", name="guest").locator("xpath=..")
    await expect(state.get_by_text("Ready", exact=True)).to_be_visible(timeout=BUILT)
    dialog = page.get_by_role("dialog")

    await page.get_by_role("button", name="Scale").click()
    await dialog.get_by_label("Workers").fill("2")
    await expect(dialog.get_by_text("It needs no more addresses than it has.")).to_be_visible()
    await dialog.get_by_role("button", name="Scale", exact=True).click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_text("2 of 2", exact=True)).to_be_visible(timeout=BUILT)

    await page.get_by_role("button", name="Upgrade").click()
    await dialog.get_by_label("Version").fill("v1.32.0")
    await expect(dialog.get_by_text(re.compile("refused|back|older|downgrade", re.IGNORECASE)).first).to_be_visible()
    await dialog.get_by_label("Version").fill("v1.34.1")
    await expect(dialog.get_by_text("It keeps the addresses that it has")).to_be_visible()
    await dialog.get_by_role("button", name="Upgrade", exact=True).click()
    await expect(dialog).to_be_hidden()
    await expect(page.get_by_text("on its way to v1.34.1").or_(page.get_by_text("Kubernetes v1.34.1"))).to_be_visible()

    await page.get_by_role("button", name="Kubeconfig").click()
    await expect(dialog.get_by_role("button", name="Download")).to_be_disabled()
    await dialog.get_by_label("I need it, and I keep it secret").check()
    async with page.expect_download() as downloading:
        await dialog.get_by_role("button", name="Download").click()
    kubeconfig = tmp_path / "kubeconfig"
    await (await downloading.value).save_as(kubeconfig)
    seen = await asyncio.to_thread(
        subprocess.run,
        [str(BIN / "kubectl"), "get", "namespaces", "-o", "name"],
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "namespace/kube-system" in seen.stdout, seen.stderr
    await expect(dialog).to_be_hidden()
    assert "client-key-data" not in await page.content()

    await page.get_by_role("button", name="Delete").click()
    confirm = dialog.get_by_role("button", name="Delete tenant")
    await expect(confirm).to_be_disabled()
    await expect(dialog.get_by_text("These addresses go back to their pools")).to_be_visible()
    await dialog.get_by_role("textbox").fill("guest")
    await confirm.click()
    await expect(dialog).to_be_hidden()
    await expect(state.get_by_text("Deleting", exact=True)).to_be_visible()
