"""What keeps people out of a page, found with axe; and whether the page fits its window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axe_playwright_python.async_playwright import Axe

if TYPE_CHECKING:
    from playwright.async_api import Page

TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OPTIONS: dict[str, Any] = {
    "runOnly": {"type": "tag", "values": TAGS},
    "rules": {"target-size": {"enabled": True}},  # of WCAG 2.2, which axe leaves out unless it is asked for
    "resultTypes": ["violations"],
}
AXE = Axe().axe_script


async def violations(page: Page, *, within: str = "html") -> list[str]:
    """What axe has against the page as it is, or a part of it, each with the elements it is about."""
    if not await page.evaluate("typeof window.axe === 'object'"):
        await page.evaluate(AXE)
    ask = "([within, options]) => axe.run(within, options).then(({violations}) => violations)"
    found = await page.evaluate(ask, [within, OPTIONS])
    return [
        f"{item['id']} ({item['impact']}): {item['help']}: "
        + "; ".join(f"{node['target']} {node['failureSummary'].splitlines()[-1].strip()}" for node in item["nodes"][:4])
        for item in found
    ]


async def overflow(page: Page) -> str:
    """How far the page is wider than its window, or nothing; and which element sticks out."""
    wide, window = await page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    if wide <= window:
        return ""
    culprit = await page.evaluate(
        """() => [...document.querySelectorAll("main *")]
          .filter(each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
          .map(each => `${each.tagName}.${each.className}`).slice(-1)[0]"""
    )
    return f"{wide} pixels in a window of {window}: {culprit}"
