"""The console in a real browser, from opened to shown: `make bench-console`.

    python bench/bench_console.py [--rounds 10] [--allocations 50000] [--without map]

An embedded control plane with the eight tenants of the example, its console, and Debian's Chromium on the same machine.
How soon a user sees a page that the browser has not loaded before; how soon an open page shows what was changed from
outside, for every page that there is; and how many frames a second the address map of a /8 draws while it is panned and
zoomed. The allocations of that pool are invented: the views of the server are asked for their map, and the browser gets
it in place of the empty pool's. Nothing here fails on a number.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path[:0] = [
    str(Path(__file__).parent),
    str(Path(__file__).parents[1] / "tests"),
    str(Path(__file__).parents[1] / "tests/support"),
    str(Path(__file__).parents[1] / "tools"),
    str(Path(__file__).parents[1] / "kubeserver/tests/support"),
]

from ipam.report import Goal, duration, heading, note, summary, table  # noqa: E402 - after the path is set
from playwright.async_api import async_playwright  # noqa: E402

from butler.server.json_body import json_body  # noqa: E402
from butler.server.presenters.segments import columns_of  # noqa: E402
from console.browsing import WIDE, launch, visit  # noqa: E402
from console.changes import CHANGES, ELSEWHERE, measured, prepare  # noqa: E402
from console.estate import Estate  # noqa: E402
from console.routes import PAGES  # noqa: E402
from local_server import LocalServer  # noqa: E402
from server.objects import HOME, create, pool  # noqa: E402
from unit.reports.pool_estates import estate as invented_pool  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from playwright.async_api import Browser, BrowserContext, Page

POOL, CIDR = "huge", "11.0.0.0/8"
FIRST_PAINT, CHANGE, FRAMES = 1.5, 0.5, 30.0
SECONDS = 5.0
OPENED = {
    "overview": ("/", "Latest activity"),
    "pool": (f"/pools/{HOME}/production-pool", "Each cell is one address"),
    "tenants": ("/tenants", "payments"),
}
"""Pages, and a text that is there when the page has its content."""
WATCHING = """text => {
  window.seen = {}
  new PerformanceObserver(list => {
    for (const {name, startTime} of list.getEntries()) window.seen[name] = startTime
  }).observe({type: "paint", buffered: true})
  new PerformanceObserver(list => {
    for (const {startTime} of list.getEntries()) window.seen.largest = startTime
  }).observe({type: "largest-contentful-paint", buffered: true})
  const look = () => {
    if (document.body?.innerText.includes(text)) window.seen.content = performance.now()
    else requestAnimationFrame(look)
  }
  look()
}"""
SHOWN = """() => new Promise(done => {
  const look = () => window.seen.content && window.seen.largest ? done() : requestAnimationFrame(look)
  look()
})"""
DRIVEN = """async ([what, seconds]) => {
  const canvas = document.querySelector("canvas")
  const box = canvas.getBoundingClientRect()
  const at = {clientX: box.left + box.width * 0.6, clientY: box.top + box.height / 2, bubbles: true, cancelable: true}
  const steps = {
    pan: frame => ({...at, deltaY: Math.floor(frame / 120) % 2 ? -23 : 23}),
    zoom: frame => ({...at, ctrlKey: true, deltaY: Math.floor(frame / 18) % 2 ? 1 : -1}),
  }
  const times = []
  const began = performance.now()
  for (let frame = 0; performance.now() - began < seconds * 1000; frame += 1) {
    canvas.dispatchEvent(new WheelEvent("wheel", steps[what](frame)))
    times.push(await new Promise(done => requestAnimationFrame(done)))
  }
  return times.slice(1).map((time, index) => time - times[index])
}"""


def ranked(found: Sequence[float], share: float) -> float:
    return sorted(found)[min(len(found) - 1, int(len(found) * share))]


@contextlib.asynccontextmanager
async def signed_in(browser: Browser, estate: Estate) -> AsyncIterator[Any]:
    """What a browser remembers after it came in."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(estate.link())
    await page.wait_for_url(f"{estate.url}/")
    yield await context.storage_state()
    await context.close()


async def fresh(browser: Browser, estate: Estate, remembered: Any) -> BrowserContext:
    """A window with nothing kept from before."""
    size = {"width": WIDE[0], "height": WIDE[1]}
    return await browser.new_context(base_url=estate.url, storage_state=remembered, viewport=size)  # type: ignore[arg-type]


async def opening(browser: Browser, estate: Estate, remembered: Any, rounds: int) -> list[Goal]:
    heading(f"Opening a page in a browser that has never seen it, median of {rounds} rounds")
    rows, goals = [], []
    for name, (path, text) in OPENED.items():
        seen: dict[str, list[float]] = {"first-contentful-paint": [], "largest": [], "content": []}
        for number in range(rounds + 1):
            context = await fresh(browser, estate, remembered)
            await context.add_init_script(f"({WATCHING})({text!r})")
            page = await context.new_page()
            await page.goto(path)
            await page.evaluate(SHOWN)
            await page.wait_for_timeout(300)
            taken = await page.evaluate("window.seen")
            await context.close()
            if number:  # the first round warms up the server
                for each, found in seen.items():
                    found.append(taken[each] / 1000)
        medians = {each: statistics.median(found) for each, found in seen.items()}
        rows.append([name, *(duration(medians[item]) for item in seen), duration(max(seen["content"]))])
        if name != "tenants":
            paint = medians["first-contentful-paint"]
            goals.append(Goal(f"first paint of the {name} under 1.5 s", duration(paint), paint < FIRST_PAINT))
            goals.append(
                Goal(f"content of the {name} under 1.5 s", duration(medians["content"]), medians["content"] < 1.5)
            )
    table(["page", "first paint", "largest paint", "content", "slowest content"], rows)
    return goals


async def following(browser: Browser, estate: Estate, remembered: Any, rounds: int) -> list[Goal]:
    heading(f"From a write at the API server to the open page, {rounds} rounds over all pages")
    prepare(estate)
    context = await fresh(browser, estate, remembered)
    page = await context.new_page()
    taken: dict[str, list[float]] = {name: [] for name in CHANGES}
    for _ in range(rounds):
        for name, change in CHANGES.items():
            taken[name].append(await measured(page, estate, ELSEWHERE.get(name, PAGES[name]), change))
    await context.close()
    rows = [[name, duration(statistics.median(found)), duration(max(found))] for name, found in taken.items()]
    table(["page", "median", "slowest"], rows)
    note("allocation has a decision of the controllers in it: what waits is granted when its pool grows")
    together = [seconds for found in taken.values() for seconds in found]
    middle, late = statistics.median(together), ranked(together, 0.95)
    note(f"all pages: median {duration(middle)}, 95 % within {duration(late)}, slowest {duration(max(together))}")
    return [Goal("a change on every page within 500 ms (95 %)", duration(late), late < CHANGE)]


def invented(allocations: int) -> bytes:
    """Where everything is in a /8 with so many allocations, as the server tells it."""
    spread = max(1, 2**24 // allocations // 5)
    return json_body(
        columns_of(invented_pool(CIDR, allocations, sizes=(1, 2, 5, 8, 64, 128), tenants=4000, spread=spread))
    ).body


async def drawing(browser: Browser, estate: Estate, remembered: Any, allocations: int) -> list[Goal]:
    heading(f"The address map of a /8 with {allocations:,} allocations")
    began = time.monotonic()
    body = invented(allocations)
    taken = duration(time.monotonic() - began)
    note(f"the server's code tells where they are in {len(body) / 1e6:.1f} MB, made in {taken}")
    note("the pool is real and empty; its segments are answered by this program, with what the server's own code made")
    create(estate.plane, pool(POOL, CIDR))
    context = await fresh(browser, estate, remembered)
    await context.route("**/segments", lambda route: route.fulfill(body=body, content_type="application/json"))
    page = await context.new_page()
    began = time.monotonic()
    await page.goto(f"/pools/{HOME}/{POOL}")
    await page.locator("canvas").wait_for(timeout=300_000)
    note(f"opened in {duration(time.monotonic() - began)}")
    await visit(page, f"/pools/{HOME}/{POOL}")
    rows, goals = [], []
    for what, prepared in (("zoom", 0), ("pan", 4), ("pan", 12)):
        gaps = await driven(page, what, prepared)
        rate, worst = 1000 * len(gaps) / sum(gaps), max(gaps) / 1000
        where = f"{what}, {2**prepared:,} times closer" if prepared else what
        rows.append([where, f"{rate:.1f}", duration(ranked(gaps, 0.95) / 1000), duration(worst)])
        goals.append(Goal(f"{where}: 30 frames a second", f"{rate:.1f}", rate >= FRAMES))
    table(["what", "frames/s", "95 % of frames within", "worst frame"], rows)
    await context.close()
    return goals


async def driven(page: Page, what: str, closer: int) -> list[float]:
    """Milliseconds between frames while the map is moved in every one of them."""
    await page.locator("canvas").focus()
    await page.keyboard.press("0")
    for _ in range(closer):
        await page.keyboard.press("+")
    await page.wait_for_timeout(300)
    return list(await page.evaluate(DRIVEN, [what, SECONDS]))


async def run(options: argparse.Namespace) -> None:
    goals: list[Goal] = []
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalServer(Path(folder), controllers=True, console=True) as server,
    ):
        estate = Estate(server)
        estate.fill()
        async with async_playwright() as playwright:
            browser = await launch(playwright)
            async with signed_in(browser, estate) as remembered:
                if "opening" not in options.without:
                    goals += await opening(browser, estate, remembered, options.rounds)
                if "following" not in options.without:
                    goals += await following(browser, estate, remembered, options.rounds)
                if "map" not in options.without:
                    goals += await drawing(browser, estate, remembered, options.allocations)
            await browser.close()
    summary(goals)


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--allocations", type=int, default=50_000)
    parser.add_argument("--without", action="append", default=[], choices=["opening", "following", "map"])
    asyncio.run(run(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
