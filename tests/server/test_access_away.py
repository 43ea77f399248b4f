"""The API server goes away and comes back: no user can log in meanwhile, and none is logged out by it.

It may hang, too, and this server may itself be stopped while a client waits for an answer."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

from butler.kube import config
from butler.server.cache.fair_threads import MOST_OF_ONE
from butler.server.process import Settings, running
from server.browser import Browser
from server.conftest import CSRF, ROLE
from server.eventually import eventually
from server.follower import serving
from server.objects import create, pool

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


async def test_who_is_not_answered_is_not_told_that_a_look_may_have_done_something(local: LocalServer) -> None:
    async with serving(local.plane) as up, aiohttp.ClientSession() as session:

        async def ask(method: str, path: str, user: str, body: Any = None) -> Any:
            headers = {ROLE: user, "X-CSRF-Token": CSRF, "Origin": up.url}
            async with session.request(method, f"{up.url}/api/v1{path}", json=body, headers=headers) as answer:
                return answer.status, await answer.json(content_type=None)

        wanted = {"name": "hung", "cidr": "10.201.0.0/24"}
        assert (await ask("GET", "/pools", "admin"))[0] == 200
        os.kill(local.pid, signal.SIGSTOP)
        try:
            read = ask("GET", "/pools", "stranger")
            answers = await asyncio.gather(read, ask("POST", "/pools/preview", "admin", wanted))
        finally:
            os.kill(local.pid, signal.SIGCONT)
        for status, problem in answers:
            assert status == 503, problem
            assert "may have been done" not in problem["detail"]


async def test_a_server_that_is_stopped_tells_who_still_waits(local: LocalServer) -> None:
    asked = {"tenants": {"count": 2000, "nodes": 20, "loadBalancers": 10, "pools": ["stopped"]}}
    await asyncio.to_thread(create, local.plane, pool("stopped", "10.202.0.0/16"))
    async with aiohttp.ClientSession() as session:
        async with serving(local.plane) as up:

            async def plan() -> int:
                headers = {ROLE: "admin", "X-CSRF-Token": CSRF, "Origin": up.url}
                async with session.post(f"{up.url}/api/v1/plan", json=asked, headers=headers) as answer:
                    return answer.status

            waiting = [asyncio.create_task(plan()) for _ in range(MOST_OF_ONE)]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            began = time.monotonic()
        assert time.monotonic() - began < 15
        found = await asyncio.gather(*waiting)
    assert set(found) == {200, 503}, "some were made, and every client got an answer"
