"""Pictures of every page, for docs/images/console: looked at by eye after each change of how pages look.

    python tests/console/screenshots.py [--only pool,tenants] [--whole] [--into docs/images/console]

Starts a Butler of its own with the eight tenants of the example and two pools that tell a story: one with holes in it,
and one that is nearly full, with an allocation that waits. Each page is taken at 1440 and 390 pixels, the main ones in
the dark too. With --whole the pictures show all of a page and not what fits on a screen. Where pngquant is installed,
they are made small with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parents[1] / "support"),
    str(Path(__file__).parents[2] / "tools"),
    str(Path(__file__).parents[2] / "kubeserver/tests/support"),
]

from playwright.async_api import async_playwright  # noqa: E402 - after the path is set

from console.browsing import NARROW, WIDE, launch, visit  # noqa: E402
from console.estate import TEAM, Estate  # noqa: E402
from console.routes import PAGES  # noqa: E402
from local_server import LocalServer  # noqa: E402
from server.objects import HOME, allocation, create, pool  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from playwright.async_api import Browser, Page

INTO = Path(__file__).parents[2] / "docs" / "images" / "console"
MAIN = ("overview", "pools", "pool", "tenants", "tenant", "plan", "address", "activity")
"""Taken in the dark as well."""
SOMEWHERE_ELSE = {
    "pool": f"/pools/{HOME}/vlan40-pool",
    "pool-allocations": f"/pools/{HOME}/vlan40-pool?tab=allocations",
    "pool-over-time": f"/pools/{HOME}/vlan40-pool?tab=time",
    "pool-settings": f"/pools/{HOME}/vlan40-pool?tab=settings",
}
LENGTHS = (5, 8, 3, 16, 4, 8, 12, 2, 8, 5, 24, 3, 8, 4, 6, 8, 2, 10, 32, 5, 8, 3, 4, 64)
DAYS_AGO = (30, 29, 27, 26.5, 24, 23, 21, 20, 19.5, 18, 16, 15, 13, 12, 11, 9.5, 8, 7, 6, 4.5, 3, 2, 1, 0.2)
GONE = (2, 5, 7, 12, 16, 20)


def furnish(estate: Estate) -> None:
    """The two pools beside those of the example."""
    gateways = {"cidr": "10.40.0.0/26", "description": "Gateways and switches"}
    create(estate.plane, pool("vlan40-pool", "10.40.0.0/22", reserved=[gateways]))
    names = [f"{('shop', 'ledger', 'studio', 'atlas')[number % 4]}-{number}" for number in range(len(LENGTHS))]
    for name, length in zip(names, LENGTHS, strict=True):
        create(estate.plane, allocation(name, "vlan40-pool", length, tenant=name, namespace="team-backend"))
        wait_for(estate, name)
        date_back(estate, name, DAYS_AGO[names.index(name)])
    for number in GONE:
        estate.plane.kubectl("delete", "ipallocation", names[number], "-n", HOME)
    create(estate.plane, pool("edge-pool", "198.51.100.0/27"))
    for number in range(3):
        create(estate.plane, allocation(f"edge-{number}", "edge-pool", 9, tenant="edge", namespace="team-backend"))
        wait_for(estate, f"edge-{number}")
    create(estate.plane, allocation("edge-late", "edge-pool", 6, tenant="edge", namespace="team-backend"))


def date_back(estate: Estate, name: str, days: float) -> None:
    """Have it granted so long ago: a forecast needs a record of some weeks."""
    then = datetime.now(UTC) - timedelta(days=days)
    body = json.dumps({"status": {"allocatedAt": then.isoformat(timespec="seconds").replace("+00:00", "Z")}})
    estate.plane.kubectl(
        "patch", "ipallocation", name, "-n", HOME, "--subresource=status", "--type=merge", "--patch", body
    )


def wait_for(estate: Estate, name: str) -> None:
    estate.plane.kubectl("wait", f"ipallocation/{name}", "-n", HOME, "--for", "condition=Ready", "--timeout", "60s")


async def palette(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").get_by_role("textbox").fill("pay")
    await page.get_by_text("payments-nodes").first.wait_for()


def pressing(button: str, fill: dict[str, str] | None = None) -> Callable[[Page], Awaitable[None]]:
    async def press(page: Page) -> None:
        await page.get_by_role("button", name=button, exact=True).click()
        for label, text in (fill or {}).items():
            await page.get_by_role("dialog").get_by_label(label, exact=True).fill(text)

    return press


EXTRAS: dict[str, tuple[str, Callable[[Page], Awaitable[None]]]] = {
    "palette": ("/", palette),
    "create-pool": ("/pools", pressing("Create pool", {"Name": "vlan41-pool", "Network": "10.41.0.0/22"})),
    "grow-pool": (f"/pools/{HOME}/edge-pool", pressing("Grow", {"At least so many addresses more": "30"})),
    "release": (f"/allocations/{HOME}/payments-lb", pressing("Release")),
    "scale-tenant": (f"/tenants/{TEAM}/payments", pressing("Scale", {"Workers": "5"})),
    "delete-tenant": (f"/tenants/{TEAM}/payments", pressing("Delete")),
}


async def take(browser: Browser, estate: Estate, options: argparse.Namespace) -> list[Path]:
    taken: list[Path] = []
    into = Path(options.into)
    into.mkdir(parents=True, exist_ok=True)
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(estate.link())
    await page.wait_for_url(f"{estate.url}/")
    remembered: Any = await context.storage_state()
    chosen = options.only.split(",") if options.only else [*PAGES, *EXTRAS, "login"]
    for theme in ("light", "dark"):
        for width, height in (WIDE, NARROW):
            names = [name for name in chosen if theme == "light" or name in MAIN]
            settings: Any = {
                "base_url": estate.url,
                "viewport": {"width": width, "height": height},
                "color_scheme": theme,
                "reduced_motion": "reduce",
            }
            context = await browser.new_context(storage_state=remembered, **settings)
            page = await context.new_page()
            for name in names:
                if name == "login":
                    page = await (await browser.new_context(**settings)).new_page()
                    await page.goto("/login")
                    await page.get_by_role("heading").wait_for()
                elif name in EXTRAS:
                    await visit(page, EXTRAS[name][0])
                    await EXTRAS[name][1](page)
                else:
                    await visit(page, SOMEWHERE_ELSE.get(name, PAGES[name]))
                await page.wait_for_timeout(800)
                suffix = "-dark" if theme == "dark" else ""
                taken.append(into / f"{name}-{width}{suffix}.png")
                await page.screenshot(path=taken[-1], full_page=options.whole)
                print(taken[-1].stem, flush=True)
    return taken


def shrink(taken: list[Path]) -> None:
    """Reduce the colours, without a visible difference, for half of the size."""
    if program := shutil.which("pngquant"):
        subprocess.run([program, "--force", "--ext", ".png", "--strip", "--skip-if-larger", *taken], check=False)


async def run(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder, LocalServer(Path(folder), controllers=True, console=True) as server:
        estate = Estate(server)
        estate.fill()
        furnish(estate)
        async with async_playwright() as playwright:
            browser = await launch(playwright)
            taken = await take(browser, estate, options)
            await browser.close()
    shrink(taken)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--into", default=str(INTO))
    asyncio.run(run(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
