"""The server of the console beside an embedded control plane with controllers and a world, one for each test module.

Tests of a module share it, so each takes a network of its own (`network`) and names that no other uses.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
import pytest_asyncio

from butler.kube import config
from butler.server.access.person import Person
from butler.server.process import Settings, running
from local_server import LocalServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from control_planes import ControlPlane

_networks = itertools.count()
ROLE = "X-Test-Role"
"""Tests say with this header who they are: `admin` (the default), or any other user without groups."""
CSRF = "test-csrf"


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("server"), controllers=True, options=("--shrink-after", "5")) as up:
        yield up


@pytest.fixture(scope="module")
def plane(local: LocalServer) -> ControlPlane:
    return local.plane


@dataclass(frozen=True)
class Api:
    """The server, as an administrator's browser sees it; `user` makes it that user's."""

    url: str
    session: aiohttp.ClientSession

    async def call(
        self, method: str, path: str, body: object = None, *, user: str = "admin", headers: dict[str, str] | None = None
    ) -> tuple[int, Any, Mapping[str, str]]:
        sent = {ROLE: user, "X-CSRF-Token": CSRF, **(headers or {})}
        async with self.session.request(method, f"{self.url}/api/v1{path}", json=body, headers=sent) as answer:
            raw = await answer.read()
            shown: Any = await answer.json(content_type=None) if "json" in answer.content_type and raw else raw.decode()
            return answer.status, shown, answer.headers

    async def get(self, path: str, **options: Any) -> Any:
        """What a GET that has to succeed answers."""
        status, shown, _ = await self.call("GET", path, **options)
        assert status == 200, shown
        return shown


def person(user: str) -> Person:
    groups = ("system:masters", "system:authenticated") if user == "admin" else ("system:authenticated",)
    now = datetime.now(UTC)
    return Person(user, groups, "link", "test", now, now + timedelta(hours=1), CSRF)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def api(plane: ControlPlane) -> AsyncIterator[Api]:
    async def who(connection: Any) -> Person | None:
        user = connection.headers.get(ROLE, "")
        return person(user) if user else None

    async with (
        running(config.load(plane.kubeconfig), Settings(world=True), who) as up,
        aiohttp.ClientSession(headers={"Origin": up.url}) as session,
    ):
        yield Api(up.url, session)


@pytest.fixture
def network() -> str:
    """The first two numbers of a /16 that no other test uses, such as 10.17."""
    return f"10.{next(_networks) % 256}"
