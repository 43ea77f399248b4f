"""The console's files: found by name alone, fresh where they change, kept where they cannot."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from yarl import URL

from butler.kube import config
from butler.server.process import Running, Settings, running
from server.browser import Browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
INDEX = '<!doctype html><meta name="csp-nonce" content="__CSP_NONCE__"><title>Butler</title>'
SCRIPT = b"console.log('a script that is long enough to be packed')\n" * 20


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("console")
    outside = directory / "outside.txt"
    outside.write_text("a secret of this machine")
    dist = directory / "dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "assets" / "main-1a2b.js").write_bytes(SCRIPT)
    (dist / "assets" / "main-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (dist / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    (dist / "linked.txt").symlink_to(outside)
    return dist


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane, built: Path) -> AsyncIterator[Running]:
    async with running(config.load(plane.kubeconfig), Settings(local=True, console=built)) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def browser(up: Running) -> AsyncIterator[Browser]:
    async with Browser(up.url) as opened:
        yield opened


async def test_a_console_that_is_not_built_says_how_to(browser: Browser, built: Path) -> None:
    for path in ("/", "/pools", "/assets/main-1a2b.js"):
        answer = await browser.get(path)
        assert answer.status == 503
        assert "make console" in answer.body
    (built / "index.html").write_text(INDEX)  # the rest of the tests has one
    assert (await browser.get("/")).status == 200


async def test_every_page_of_the_console_is_its_index_with_a_fresh_nonce(browser: Browser) -> None:
    seen = set()
    for path in ("/", "/pools", "/pools/butler-system/a%2fb", "/index.html", "/login?next=x"):
        answer = await browser.get(path)
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/html")
        assert answer.headers["Cache-Control"] == "no-store"
        nonce = re.search(r'content="([^"]+)"', answer.body)
        assert nonce is not None
        assert f"'nonce-{nonce[1]}'" in answer.headers["Content-Security-Policy"]
        seen.add(nonce[1])
    assert len(seen) == 5
    assert "__CSP_NONCE__" not in seen


async def test_files_with_a_hash_are_kept_for_good_and_sent_packed(browser: Browser) -> None:
    plain = await browser.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "identity"})
    packed = await browser.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "br, gzip;q=0.5"})
    refused = await browser.get("/assets/main-1a2b.js", headers={"Accept-Encoding": "gzip;q=0"})
    assert plain.body == packed.body == refused.body == SCRIPT.decode()
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert "Content-Encoding" not in refused.headers
    assert plain.headers["Content-Type"].startswith("text/javascript")
    assert "immutable" in plain.headers["Cache-Control"]
    icon = await browser.get("/favicon.svg")
    assert (icon.headers["Content-Type"], icon.headers["Cache-Control"]) == ("image/svg+xml", "no-cache")


async def test_nothing_outside_the_console_is_served(up: Running, browser: Browser) -> None:
    for path in (
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/assets/..%2f..%2foutside.txt",
        "/linked.txt",
        "/assets/%00",
        "/....//outside.txt",
        "/%252e%252e/outside.txt",
    ):
        async with browser.session.get(URL(f"{up.url}{path}", encoded=True)) as answer:
            assert "a secret of this machine" not in await answer.text(), path
            assert answer.status < 500, path
    assert (await browser.get("/assets/gone-9999.js")).status == 404
