"""Sessions: what they survive, what ends them, and who can use one that is not theirs."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from butler.kube import config
from butler.server.process import Running, Settings, running
from server.browser import Browser
from server.eventually import eventually
from server.sealed import RECORDS, content, rewrite

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from control_planes import ControlPlane

pytestmark = pytest.mark.asyncio(loop_scope="module")
SECRETS = f"/api/v1/namespaces/{RECORDS}/secrets"
SETTINGS = Settings(world=True, local=True, tries_per_minute=100_000)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def up(plane: ControlPlane) -> AsyncIterator[Running]:
    async with running(config.load(plane.kubeconfig), SETTINGS) as served:
        yield served


@pytest_asyncio.fixture(loop_scope="module")
async def browser(up: Running) -> AsyncIterator[Browser]:
    async with Browser(up.url) as opened:
        await opened.come_in(await up.one_time_link())
        yield opened


def records(plane: ControlPlane, kind: str) -> list[dict[str, Any]]:
    status, found = plane.request("GET", f"{SECRETS}?labelSelector=butler.butlerlabs.dev/console%3D{kind}")
    assert status == 200
    return list(found["items"])


def age(plane: ControlPlane, session: str, **changes: str) -> None:
    """Change a session's record behind the server's back, with the key."""
    rewrite(plane, f"butler-console-session-{session}", **changes)


async def out(browser: Browser) -> None:
    assert (await browser.get("/api/v1/me")).status == 401


async def test_no_secret_of_a_browser_is_kept(plane: ControlPlane, up: Running, browser: Browser) -> None:
    await up.one_time_link()
    token = browser.cookies["butler-session"]
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    assert len(raw) == 48
    for secret in (*records(plane, "session"), *records(plane, "link")):
        kept = json.dumps(secret) + json.dumps(content(secret))
        assert token not in kept
        assert token[:43] not in kept
        assert raw[:32].hex() not in kept
        assert browser.csrf not in kept


async def test_a_tampered_cookie_is_no_users(plane: ControlPlane, up: Running, browser: Browser) -> None:
    token = browser.cookies["butler-session"]
    for bad in (token[:-1], token + "A", "A" + token[1:] if token[0] != "A" else "B" + token[1:], "", "x" * 9000):
        async with Browser(up.url) as thief:
            thief.set_cookie("butler-session", bad)
            assert (await thief.get("/api/v1/me")).status in (400, 401)
    async with Browser(up.url) as thief:
        thief.set_cookie("__Host-butler-session", token)  # the name for https means nothing here
        await out(thief)


async def test_logging_out_ends_every_copy_of_the_cookie(up: Running, browser: Browser) -> None:
    token = browser.cookies["butler-session"]
    gone = await browser.call("POST", "/api/v1/logout")
    assert gone.status == 204
    assert "butler-session" not in browser.cookies
    async with Browser(up.url) as copied:
        copied.set_cookie("butler-session", token)
        await out(copied)


async def test_a_session_is_ended_from_another_and_on_every_replica(
    plane: ControlPlane, up: Running, browser: Browser
) -> None:
    async with running(config.load(plane.kubeconfig), SETTINGS) as other, Browser(other.url) as there:
        await there.come_in(await other.one_time_link())
        token = there.cookies["butler-session"]
        here = Browser(up.url)
        async with here:
            here.set_cookie("butler-session", token)
            mine = await here.me()  # a session of one replica is one of all
            listed = (await browser.get("/api/v1/sessions")).body["items"]
            assert [item["current"] for item in listed if item["id"] == mine["session"]] == [False]
            assert sum(item["current"] for item in listed) == 1
            ended = await browser.call("DELETE", f"/api/v1/sessions/{mine['session']}")
            assert ended.status == 204
            await out(here)

            async def out_there() -> None:
                await out(there)

            await eventually(out_there, seconds=5.0)
        again = await browser.call("DELETE", f"/api/v1/sessions/{mine['session']}")
        assert again.status == 404


async def test_no_user_ends_the_session_of_another(plane: ControlPlane, up: Running, browser: Browser) -> None:
    me = await browser.me()
    async with Browser(up.url) as other:
        theirs = await other.come_in(await up.one_time_link())
        age(plane, theirs["session"], user="another user")

        async def theirs_now() -> None:
            assert (await other.me())["user"] == "another user"

        await eventually(theirs_now)
        for wrong in (me["session"], "x", "butler-console-key", "A" * 40, "%2e%2e%2fkey"):
            assert (await other.call("DELETE", f"/api/v1/sessions/{wrong}")).status in (404, 422)
        assert [item["id"] for item in (await other.get("/api/v1/sessions")).body["items"]] == []
    assert (await browser.me())["session"] == me["session"]


async def test_a_session_ends_when_it_was_not_used_and_when_it_is_too_old(
    plane: ControlPlane, up: Running, browser: Browser
) -> None:
    before = (datetime.now(UTC) - timedelta(hours=9)).isoformat()
    for field in ("seen", "expires"):
        async with Browser(up.url) as old:
            me = await old.come_in(await up.one_time_link())
            age(plane, me["session"], **{field: before})

            async def is_out(of: Browser = old) -> None:
                await out(of)

            await eventually(is_out)
            await up.services.logins.sessions.sweep()
            assert me["session"] not in str(records(plane, "session"))
    assert (await browser.me())["via"] == "link"


async def test_use_is_written_down_now_and_then_and_never_brings_back_what_was_ended(
    plane: ControlPlane, up: Running
) -> None:
    async with Browser(up.url) as opened:
        me = await opened.come_in(await up.one_time_link())
        age(plane, me["session"], seen=(datetime.now(UTC) - timedelta(hours=1)).isoformat())

        async def written() -> None:
            await opened.me()
            status, found = plane.request("GET", f"{SECRETS}/butler-console-session-{me['session']}")
            assert status == 200
            assert datetime.now(UTC) - datetime.fromisoformat(content(found)["seen"]) < timedelta(minutes=1)

        await eventually(written)
        _, before = plane.request("GET", f"{SECRETS}/butler-console-session-{me['session']}")
        await asyncio.gather(*(opened.me() for _ in range(20)))
        _, after = plane.request("GET", f"{SECRETS}/butler-console-session-{me['session']}")
        assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
        plane.request("DELETE", f"{SECRETS}/butler-console-session-{me['session']}")

        async def is_out() -> None:
            await out(opened)

        await eventually(is_out)
        assert plane.request("GET", f"{SECRETS}/butler-console-session-{me['session']}")[0] == 404


async def test_a_person_has_so_many_sessions_and_no_more(up: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("butler.server.access.sessions.MOST_OF_ONE", 3)
    async with Browser(up.url) as last:
        for _ in range(5):
            async with Browser(up.url) as one:
                await one.come_in(await up.one_time_link())
        await last.come_in(await up.one_time_link())
        assert len((await last.get("/api/v1/sessions")).body["items"]) == 3


async def test_an_open_stream_ends_soon_after_its_session(
    up: Running, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("butler.server.access.guard.LOOK_AGAIN", 0.2)
    async with browser.session.ws_connect(f"{up.url}/api/v1/stream", origin=up.url) as stream:
        assert (await stream.receive_json(timeout=10))["type"] == "hello"
        await browser.call("POST", "/api/v1/logout")
        async with asyncio.timeout(10):
            async for message in stream:
                assert message.type is aiohttp.WSMsgType.TEXT
        assert stream.close_code == 4401


async def test_a_link_lives_for_minutes_and_is_swept(plane: ControlPlane, up: Running) -> None:
    link = await up.one_time_link()
    newest = max(records(plane, "link"), key=lambda record: record["metadata"]["creationTimestamp"])
    assert content(newest)["user"]
    for secret in records(plane, "link"):
        rewrite(plane, secret["metadata"]["name"], expires=datetime.now(UTC).isoformat())
    async with Browser(up.url) as late:
        assert (await late.open_link(link)).status == 403
        assert late.cookies == {}
        unknown = f"{up.url}/link?token={link[-64:][::-1]}"
        assert (await late.open_link(unknown)).status == 403
    links = up.services.logins.links
    assert links is not None
    await links.sweep()
    assert records(plane, "link") == []


async def test_coming_and_going_is_written_down_without_secrets(
    up: Running, browser: Browser, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "butler.audit"):
        async with Browser(up.url) as one:
            me = await one.come_in(await up.one_time_link())
            token = one.cookies["butler-session"]
            await one.call("POST", "/api/v1/logout", headers={"X-CSRF-Token": "wrong"})
            await one.call("POST", "/api/v1/logout")
            await one.call("POST", "/link", data={"token": "unknown"})
        lines = [json.loads(record.message) for record in caplog.records if record.name == "butler.audit"]
    told = [(line["verb"], line["outcome"], line["status"], line["user"] == me["user"]) for line in lines]
    assert told == [
        ("log in", "done", 200, True),
        ("ask", "refused", 403, True),
        ("log out", "done", 200, True),
        ("log in", "refused", 403, False),
    ]
    assert lines[0]["session"] == me["session"]
    assert token not in caplog.text
    assert me["csrfToken"] not in caplog.text
