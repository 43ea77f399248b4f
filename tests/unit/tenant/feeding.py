"""A tenant's API server that a test may bend, and the feeds that follow it."""

from __future__ import annotations

import asyncio
import base64
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import yaml

from butler.api.objects import Key
from butler.kube.retry import Backoff
from butler.kube.transport import Timeouts
from butler.tenant.clusters import TenantClients, TenantLimits
from butler.tenant.service_feed import ServiceFeed, TenantFeeds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from butler.rules.loadbalancer.service import Balancer

Json = dict[str, Any]
KEY = Key("team-payments", "payments")
LIMITS = TenantLimits(timeouts=Timeouts(connect=1, attempt=1, total=2), max_answer=256 * 1024)
QUICK = Backoff(first=0.005, cap=0.05)


def kubeconfig(server: str, **user: str) -> bytes:
    return yaml.safe_dump(
        {
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "a", "user": {"token": "t0ken", **user}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }
    ).encode()


def secret(content: bytes, version: str = "1") -> Json:
    return {
        "metadata": {"name": "payments-admin-kubeconfig", "namespace": "payments-1", "resourceVersion": version},
        "data": {"admin.conf": base64.b64encode(content).decode()},
    }


def service(ip: str = "", kind: str = "LoadBalancer") -> Json:
    ingress = [{"ip": ip}] if ip else []
    return {"spec": {"type": kind}, "status": {"loadBalancer": {"ingress": ingress}}}


def path(name: str) -> str:
    return f"/api/v1/namespaces/web/services/{name}"


class Listening:
    """Feeds, and all that they said."""

    def __init__(self, feeds: TenantFeeds, clients: TenantClients) -> None:
        self.feeds = feeds
        self.clients = clients
        self.changed: list[Key] = []
        self.services: list[tuple[Balancer | None, Balancer | None]] = []
        self.fetched = 0
        feeds.on_change = self.changed.append
        feeds.on_service = lambda _, old, new: self.services.append((old, new))

    async def follow(
        self, server: str, version: str = "1", *, uid: str = "u1", key: Key = KEY, **user: str
    ) -> ServiceFeed:
        return await self.follow_content(kubeconfig(server, **user), version, uid=uid, key=key)

    async def follow_content(self, content: bytes, version: str, *, uid: str = "u1", key: Key = KEY) -> ServiceFeed:
        async def fetch() -> Json:
            self.fetched += 1
            return secret(content, version)

        return await self.feeds.follow(key, uid, version, fetch)


@asynccontextmanager
async def listening(limits: TenantLimits = LIMITS, **options: Any) -> AsyncIterator[Listening]:
    async with TenantClients(limits=limits) as clients:
        options = {"pace": QUICK, **options}
        async with TenantFeeds(clients, lambda _: None, **options) as feeds:
            yield Listening(feeds, clients)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def names(feed: ServiceFeed) -> list[str]:
    return sorted(item.name for item in feed.services())
