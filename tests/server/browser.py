"""A browser, as far as it matters for coming in: cookies, Origin, the CSRF token, and redirects taken by hand."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import aiohttp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType


@dataclass(frozen=True)
class Answer:
    status: int
    body: Any
    headers: Mapping[str, str]
    set_cookies: list[str]


@dataclass
class Browser:
    """One browser with its own cookies."""

    url: str
    csrf: str = ""
    session: aiohttp.ClientSession = field(init=False)

    async def __aenter__(self) -> Browser:
        jar = aiohttp.CookieJar(unsafe=True)  # takes cookies of an address, as browsers do
        self.session = aiohttp.ClientSession(cookie_jar=jar)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.session.close()

    async def call(
        self, method: str, path: str, *, headers: dict[str, str] | None = None, origin: str | None = "", **options: Any
    ) -> Answer:
        """`origin` is our own unless told; None sends none."""
        sent = {"X-CSRF-Token": self.csrf} if self.csrf and method != "GET" else {}
        if method != "GET" and origin is not None:
            sent["Origin"] = origin or self.url
        url = path if path.startswith("http") else self.url + path
        async with self.session.request(
            method, url, headers={**sent, **(headers or {})}, allow_redirects=False, **options
        ) as got:
            raw = await got.read()
            body: Any = await got.json(content_type=None) if "json" in got.content_type and raw else raw.decode()
            return Answer(got.status, body, got.headers, got.headers.getall("Set-Cookie", []))

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def open_link(self, link: str) -> Answer:
        """Follow a link as a browser does: look at the page, and press the button on it."""
        shown = await self.get(link)
        assert shown.status == 200, shown.body
        token = re.search(r'name="token" value="([^"]*)"', shown.body)
        assert token is not None
        return await self.call("POST", "/link", data={"token": token[1]})

    async def me(self) -> Any:
        """Who we are; the CSRF token is kept for what follows."""
        answer = await self.get("/api/v1/me")
        assert answer.status == 200, answer.body
        self.csrf = answer.body["csrfToken"]
        return answer.body

    async def come_in(self, link: str) -> Any:
        opened = await self.open_link(link)
        assert opened.status == 303, opened.body
        return await self.me()

    @property
    def cookies(self) -> dict[str, str]:
        return {item.key: item.value for item in self.session.cookie_jar}

    def set_cookie(self, name: str, value: str) -> None:
        self.session.cookie_jar.update_cookies({name: value}, response_url=aiohttp.client.URL(self.url))
