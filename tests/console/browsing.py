"""A browser for tests: Debian's Chromium, pages that are watched for anything that goes wrong, and ways around them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from install_browser import find
from playwright.async_api import expect

if TYPE_CHECKING:
    from playwright.async_api import Browser, ConsoleMessage, Page, Playwright, Request, Response

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 30_000.0
"""Milliseconds until something that has to come is missed: machines may be busy."""
WIDE, NARROW = (1440, 900), (390, 844)
COOKIE = "butler-session"
ABORTED = "net::ERR_ABORTED"
"""What becomes of requests of a page that was left."""

expect.set_options(timeout=PATIENCE)


async def launch(playwright: Playwright) -> Browser:
    return await playwright.chromium.launch(executable_path=find(), args=ARGUMENTS)


@dataclass
class Watch:
    """What went wrong in a page: errors in its console, exceptions, refused and failed requests, broken policies."""

    problems: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def expect(self, *patterns: str) -> None:
        """This will go wrong, and is meant to."""
        self.expected.extend(patterns)

    def on(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.note(f"exception: {error}"))
        page.on("requestfailed", self._failed)
        page.on("response", self._response)

    def note(self, problem: str) -> None:
        self.problems.append(problem)

    @property
    def unexpected(self) -> list[str]:
        return [problem for problem in self.problems if not any(re.search(known, problem) for known in self.expected)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.note(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def _failed(self, request: Request) -> None:
        if request.failure != ABORTED:
            self.note(f"failed: {request.method} {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.note(f"refused: {response.status} {response.request.method} {response.url}")


async def settled(page: Page) -> None:
    """Wait until the page has its title and nothing on it loads any more."""
    await expect(page.locator("h1").first).to_be_visible()
    await expect(page.locator('[aria-busy="true"]')).to_have_count(0)


async def alive(page: Page) -> None:
    """Wait until the page follows changes."""
    await expect(page.locator('header [data-state="live"]')).to_be_visible()


async def visit(page: Page, path: str) -> None:
    """Open a page of the console anew, and wait until all of it is there and follows changes."""
    await page.goto(path)
    await settled(page)
    await alive(page)
