"""The API server goes away and comes back: nobody is let in meanwhile, and nobody is thrown out for it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from butler.kube import config
from butler.server.running import Settings, running
from server.browser import Browser
from server.eventually import eventually

if TYPE_CHECKING:
    from local_server import LocalServer

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_sessions_outlive_the_api_server_and_the_server(local: LocalServer) -> None:
    connection = config.load(local.plane.kubeconfig)
    settings = Settings(local=True, local_admin=True)
    async with running(connection, settings) as up, Browser(up.url) as browser, Browser(up.url) as stranger:
        me = await browser.come_in(await up.one_time_link())
        unused = await up.one_time_link()
        local.kill()

        async def away() -> None:
            began = time.monotonic()
            answer = await browser.get("/api/v1/me")
            assert answer.status == 503
            assert answer.headers["Retry-After"]
            assert time.monotonic() - began < 10

        await eventually(away, seconds=30)
        login = {"user": "admin", "password": "x"}
        assert (await stranger.call("POST", "/api/v1/login/password", json=login)).status == 503
        assert (await stranger.open_link(unused)).status == 503
        assert (await stranger.get("/api/v1/me")).status == 401
        assert (await stranger.get("/readyz")).status == 503
        assert (await stranger.get("/readyz")).body == "not now\n"
        assert (await stranger.get("/link")).status == 200
        local.start()

        async def back() -> None:
            assert (await browser.get("/api/v1/me")).status == 200
            assert (await stranger.get("/readyz")).status == 200

        await eventually(back, seconds=60)
        assert (await browser.me())["session"] == me["session"]
        assert (await stranger.open_link(unused)).status == 303
        token = browser.cookies["butler-session"]
    async with running(config.load(local.plane.kubeconfig), settings) as again, Browser(again.url) as later:
        later.set_cookie("butler-session", token)
        assert (await later.me())["session"] == me["session"]  # a server that starts anew knows it, too
