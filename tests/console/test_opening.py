"""The link that `butleradm local up` prints, opened in a browser as a newcomer does."""

from __future__ import annotations

import re
import subprocess
import threading
from typing import TYPE_CHECKING

import pytest
from build_console import DIST
from install_browser import find
from playwright.sync_api import expect, sync_playwright
from run_kubernetes import end_with_parent

from control_planes import BIN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Page

PATIENCE = 60_000.0

pytestmark = [
    pytest.mark.skipif(find() is None, reason="there is no Chromium here: tools/install_browser.py gets one"),
    pytest.mark.skipif(not (DIST / "index.html").exists(), reason="the console is not built: `make console` does it"),
]


@pytest.fixture
def link(tmp_path: Path) -> Iterator[str]:
    """What `butleradm local up` prints."""
    command = [f"{BIN}/butleradm", "local", "up", "--demo", "--data-dir", str(tmp_path / "data")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)  # noqa: PLW1509
    assert process.stdout is not None
    try:
        found = next(line.strip() for line in process.stdout if "/link?token=" in line)
        threading.Thread(target=process.stdout.read, daemon=True).start()  # it must not stop for a full pipe
        yield found
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find(), args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def test_the_printed_link_opens_the_console_once_and_shows_the_demo(link: str, page: Page) -> None:
    page.goto(link)
    expect(page.get_by_text("production-pool").first).to_be_visible(timeout=PATIENCE)
    assert "token" not in page.url
    again = page.context.browser
    assert again is not None
    stranger = again.new_context().new_page()
    stranger.goto(link)
    expect(stranger.get_by_text(re.compile("does not open anything"))).to_be_visible(timeout=PATIENCE)
