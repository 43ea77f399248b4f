"""Coming in by a one-time link, and what a session is from then on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from butler.kube import config
from butler.server.process import Running, Settings, running
from server.browser import Browser

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane) -> AsyncIterator[Running]:
    async with running(config.load(plane.kubeconfig), Settings(world=True, local=True)) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def browser(up: Running) -> AsyncIterator[Browser]:
    async with Browser(up.url) as opened:
        yield opened


async def test_a_link_opens_the_console_once(up: Running, browser: Browser) -> None:
    link = await up.one_time_link()
    for _ in range(3):  # previews and scanners look at links: that uses nothing up
        assert (await browser.get(link)).status == 200
    opened = await browser.open_link(link)
    assert (opened.status, opened.headers["Location"]) == (303, "/")
    cookie = opened.set_cookies[0].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip() for part in cookie.split(";")}
    me = await browser.me()
    assert (me["via"], me["world"]) == ("link", True)
    assert all(me["permissions"].values())
    async with Browser(up.url) as other:
        replayed = await other.open_link(link)
        assert replayed.status == 403
        assert "butleradm server link" in replayed.body
        assert other.cookies == {}


async def test_of_many_who_use_a_link_at_once_one_is_let_in(up: Running, browser: Browser) -> None:
    link = await up.one_time_link()
    token = link.partition("token=")[2]
    tries = [browser.call("POST", "/link", data={"token": token}) for _ in range(10)]
    answers = [answer.status for answer in await asyncio.gather(*tries)]
    assert sorted(answers) == [303] + [403] * 9
