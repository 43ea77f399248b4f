"""A user without a mouse."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Page

MOST = 250
FOCUSED = """() => {
  const here = document.activeElement
  if (!here || here === document.body) return null
  const label = here.labels?.[0]?.innerText ?? ""
  const name = here.getAttribute("aria-label") ?? (label || here.innerText || here.getAttribute("placeholder") || "")
  return { tag: here.tagName.toLowerCase(), name: name.trim(), id: here.id }
}"""
SHOWN = """() => {
  const here = document.activeElement
  const near = [here, here.parentElement, here.parentElement?.parentElement, here.nextElementSibling]
  const look = () => near.map(each => {
    document.getAnimations().forEach(change => change.finish())
    if (!each) return ""
    const style = getComputedStyle(each)
    const outline = style.outlineStyle === "none" ? "" : style.outlineStyle + style.outlineWidth + style.outlineColor
    return [outline, style.boxShadow, style.borderColor, style.backgroundColor].join()
  }).join("|")
  const focused = look()
  const box = (here.labels?.[0] ?? here).getBoundingClientRect()
  here.blur()
  const blurred = look()
  here.focus({ preventScroll: true })
  return focused !== blurred && box.width > 0 && box.height > 0
}"""


async def focused(page: Page) -> Any:
    """What has the focus: its tag, its name and its id; None when nothing has it."""
    return await page.evaluate(FOCUSED)


async def tab_to(page: Page, name: str, *, tag: str = "") -> None:
    """Press Tab until something of that name (a pattern) has the focus."""
    for _ in range(MOST):
        await page.keyboard.press("Tab")
        here = await focused(page)
        if here and re.search(name, here["name"]) and tag in ("", here["tag"]):
            return
    raise AssertionError(f"Tab never reached {name}")


async def tour(page: Page) -> tuple[list[str], list[str]]:
    """Tab through the page once: every stop, and those where the focus is not visible."""
    stops: list[str] = []
    unseen: list[str] = []
    for _ in range(MOST):
        await page.keyboard.press("Tab")
        here = await focused(page)
        if here is None:
            return stops, unseen
        stop = f"{here['tag']} {here['name'][:60]}"
        if stops and stop == stops[0]:
            return stops, unseen
        stops.append(stop)
        if not await page.evaluate(SHOWN):
            unseen.append(stop)
    raise AssertionError(f"Tab does not come around: {stops[-10:]}")
