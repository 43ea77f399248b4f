"""What happens in the tenant clusters, live: their Services that want addresses.

For each tenant that is followed there is a `ServiceFeed` with a watch through the tenant's own kubeconfig, of its
Services of type LoadBalancer, of which a compact `Balancer` is kept. The controller reads the feed and is called when
something in it changed; before anything is given away the tenant is read afresh, because a watch may be late
(`butler.tenant.services.load_balancers`). One watch and no more: a second one, of MetalLB's pool, would cost every
tenant 75 KB and a connection, and what changes there shows in the Services as soon as it matters.

A tenant costs only itself. Every feed has its own connections and its own pauses, which grow while it fails; what a
tenant sends is bounded in bytes, objects, seconds and speed, and whatever does not fit is the tenant's `trouble`, not
ours: then the last answers stay, nothing is concluded from their absence, and the tenant is asked again, for ever.
All they share is the gate to new connections (`butler.kube.gate`), which none of them can block.

Credentials are renewed under way: when the kubeconfig Secret changes, the feed lists anew through the new ones, and
until that list is in, the old answers stay. A Secret that became useless is trouble, while what it replaced works on.
No word of a kubeconfig's secrets may get into `trouble`, which ends in a status that many may read.
"""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, Any, cast

from butler.api.objects import is_older, version_of
from butler.kube.cache import Bounds, Cache
from butler.kube.errors import BadAnswer, ConfigError, Unreachable
from butler.kube.gate import Gate
from butler.kube.metrics import Metrics
from butler.kube.retry import Backoff
from butler.tenant import services
from butler.tenant.services import Service, read_balancer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from butler.api.objects import Change, Json, Key
    from butler.kube.client import Client
    from butler.kube.config import Connection
    from butler.kube.resource import Resource
    from butler.rules.loadbalancer.service import Balancer
    from butler.tenant.clusters import TenantClients

    ServiceChange = Callable[[Key, Balancer | None, Balancer | None], None]

PACE = Backoff(first=0.2, cap=30.0)
SILENCE = 90.0
"""Seconds without a word after which a watch is taken for dead; an idle API server talks about once a minute."""
LONGEST_TROUBLE = 500
_NUMBERS = re.compile(r"[0-9a-f]*[0-9][0-9a-f]*")


def _kept_service(service: Service) -> Balancer:
    if service.spec.type != "LoadBalancer":
        raise BadAnswer(f"a Service of type {service.spec.type!r} came where only load balancers were asked for")
    return read_balancer(service)


class ServiceFeed:
    """One tenant, live. Made and ended by `TenantFeeds`."""

    def __init__(self, key: Key, uid: str, feeds: TenantFeeds) -> None:
        self.key = key
        self.uid = uid
        self._feeds = feeds
        self._version = ""
        self._client: Client | None = None
        self._services: Cache[Any] | None = None  # of Balancers; the cache itself only ever sees Services
        self._task: asyncio.Task[None] | None = None
        self._bad_secret = ""
        self._told = ""
        self._announcing = False

    @property
    def is_synced(self) -> bool:
        """Whether the Services have been listed, through the credentials of now."""
        return self._services is not None and self._services.has_synced

    def services(self) -> list[Balancer]:
        """All Services of type LoadBalancer, as last seen."""
        return [] if self._services is None else self._services.values()

    @property
    def trouble(self) -> str:
        """Why the tenant cannot be heard now, in words that stay the same while it does; "" when it can."""
        return self._told

    @property
    def unheard_for(self) -> float:
        """Seconds since its API server last said anything about Services; a quiet one talks about once a minute."""
        return float("inf") if self._services is None else self._services.silent_for()

    @property
    def client(self) -> Client:
        """For requests to a tenant that is followed. Do not keep it: new credentials bring a new one."""
        if self._client is None:
            raise Unreachable(self.trouble or "its kubeconfig has not been read yet")
        return self._client

    # For TenantFeeds.

    def is_up_to_date(self, version: str) -> bool:
        """Whether the Secret's version is the one in use, or older: the cache that told may lag behind."""
        if not self._version or (self._client is not None and self._client.transport.is_closed):
            return False
        return version == self._version or is_older(version, self._version)

    def refuse(self, version: str, why: str) -> None:
        """The Secret is no use: go on as before, and say so."""
        self._version = version
        self._bad_secret = why
        self._state_changed()

    async def use(self, version: str, client: Client) -> None:
        """Go on through this client."""
        self._version = version
        self._bad_secret = ""
        if client is not self._client or self._task is None:
            await self._stop()
            self._client = client
            if self._services is None:
                self._services = self._new_cache(client)
            self._services.use(client)
            self._task = asyncio.create_task(self._services.run())
        self._state_changed()

    async def end(self) -> None:
        await self._stop()
        if self._services is not None:
            self._services.forget()

    async def _stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _new_cache(self, client: Client) -> Cache[Any]:
        cache: Cache[Any] = Cache(
            client,
            cast("Resource[Any]", services.SERVICES),
            field_selector=services.ONLY_BALANCERS,
            transform=_kept_service,
            page_size=services.PAGE,
            bounds=Bounds(services.MOST_SERVICES, services.LIST_SECONDS),
            title=f"Services of tenant {self.key}",
            backoff=self._feeds.pace,
            gate=self._feeds.gate,
            silence=self._feeds.silence,
            on_state=self._state_changed,
            metrics=self._feeds.metrics,
            rng=self._feeds.rng,
        )
        cache.on_change(self._service_changed)
        return cache

    # What the cache tells.

    def _service_changed(self, change: Change[Balancer]) -> None:
        if self._feeds.on_service is not None:
            self._feeds.on_service(self.key, change.old, change.new)
        self._announce()

    def _state_changed(self) -> None:
        self._told = same_words(self._told, self._troubles())
        self._announce()

    def _troubles(self) -> list[str]:
        """All that is wrong at this moment, the weightiest first."""
        if self._bad_secret:
            return [self._bad_secret]
        found, cache = [], self._services
        # One failure is no news: a watch breaks, and the next moment there is another.
        if cache is not None and (cache.failures > 1 or (cache.failures and not cache.has_synced)):
            found.append(readable(cache.last_error, self._client.connection if self._client else None))
        if cache is not None and cache.cut_short > 4:
            found.append("its API server takes watches and ends them at once, again and again")
        return found

    def _announce(self) -> None:
        """Say that something changed; once for all that happens in one turn of the loop."""
        if not self._announcing:
            self._announcing = True
            asyncio.get_running_loop().call_soon(self._announced)

    def _announced(self) -> None:
        self._announcing = False
        if self._feeds.get(self.uid) is self:
            self._feeds.on_change(self.key)


def readable(error: str, connection: Connection | None) -> str:
    """An error as it may stand in a status: one line, not long, and without what proves who we are."""
    for secret in (connection.token, connection.password) if connection else ():
        if secret:
            error = error.replace(secret, "[secret]")
    return " ".join(error.split())[:LONGEST_TROUBLE]


def same_words(before: str, now: Sequence[str]) -> str:
    """`before` while it is true but for numbers (times, ports, counters are no news), else the first of `now`."""
    said = _NUMBERS.sub("#", before)
    return before if any(said == _NUMBERS.sub("#", text) for text in now) else next(iter(now), "")


class TenantFeeds:
    """The feeds of all tenants of this process. `aclose` it at the end, before the clients."""

    def __init__(
        self,
        clients: TenantClients,
        on_change: Callable[[Key], None],
        *,
        on_service: ServiceChange | None = None,
        metrics: Metrics | None = None,
        pace: Backoff = PACE,
        silence: float = SILENCE,
        rng: random.Random | None = None,
    ) -> None:
        """`on_change` is called when Services or trouble of a tenant changed; `on_service` for each Service."""
        self._clients = clients
        self.on_change = on_change
        self.on_service = on_service
        self.metrics = metrics or Metrics()
        self.pace = pace
        self.gate = Gate()
        self.silence = silence
        self.rng = rng or random.Random()  # noqa: S311  # jitter, not secrets
        self._feeds: dict[str, ServiceFeed] = {}

    async def follow(
        self, key: Key, uid: str, version: str, secret: Callable[[], Awaitable[Json]], endpoint: str = ""
    ) -> ServiceFeed:
        """Start to follow the TenantCluster with this UID, or go on.

        `version` is the resourceVersion of its kubeconfig Secret as far as is known; `secret` fetches it and is called
        only when that, or the `endpoint` of its API server, is news. What `secret` raises is raised, but a Secret that
        is no use is the feed's `trouble`.
        """
        feed = self._feeds.get(uid)
        if feed is not None and feed.is_up_to_date(version + endpoint):
            return feed
        content = await secret()
        feed = self._feeds.get(uid)
        if feed is None:
            feed = self._feeds[uid] = ServiceFeed(key, uid, self)
        read = (version_of(content) or version) + endpoint
        try:
            client = self._clients.restless(uid, content)
        except ConfigError as error:
            feed.refuse(read, readable(f"its kubeconfig is no use: {error}", None))
        else:
            await feed.use(read, client)
        return feed

    def get(self, uid: str) -> ServiceFeed | None:
        return self._feeds.get(uid)

    async def forget(self, uid: str) -> None:
        """The TenantCluster is gone, or is not to be followed any more. Unknown UIDs are fine."""
        feed = self._feeds.pop(uid, None)
        if feed is not None:
            await feed.end()

    async def aclose(self) -> None:
        feeds, self._feeds = list(self._feeds.values()), {}
        await asyncio.gather(*(feed.end() for feed in feeds))

    async def __aenter__(self) -> TenantFeeds:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __len__(self) -> int:
        return len(self._feeds)

    def __iter__(self) -> Iterator[ServiceFeed]:
        return iter(list(self._feeds.values()))
