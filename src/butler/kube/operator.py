"""One process full of controllers: what it shares, how it starts, how it is asked for its health, how it stops.

Start: caches follow the server at once, controllers run when the caches have caught up and, if there is a lease,
only while it is ours; services, which every replica offers, run throughout. Stop (SIGTERM, SIGINT or `stop`): probes
turn unready, controllers finish what they are at, the lease is handed on, events are flushed, then services and
caches go, all within one time limit.

Health is about seeing: /healthz turns red when a cache has not heard from the server for longer than a silent watch
may last, because a blind controller that looks alive is a failure without symptoms. Probes and metrics listen on
the loopback interface unless told otherwise.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, TypeVar, cast

from aiohttp import web
from prometheus_client import generate_latest

from butler.kube.cache import Cache
from butler.kube.events import EventRecorder
from butler.kube.lease import LeaderLease, LeadershipLost, awake_seconds
from butler.kube.metrics import Metrics
from butler.kube.timeline import STANDSTILL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from butler.kube.client import Client
    from butler.kube.controller import Controller
    from butler.kube.resource import Resource

T = TypeVar("T")
log = logging.getLogger(__name__)

LAG_PERIOD = 0.25
CONFIRMED = 2.0
"""Seconds since a cache was last in contact, up to which a new leader takes it as it is."""


class Operator:
    """Shared caches, controllers and probes of one process. Build it, add controllers, then `run`."""

    def __init__(
        self,
        client: Client,
        name: str = "butler",
        *,
        metrics: Metrics | None = None,
        lease: LeaderLease | None = None,
        host: str = "127.0.0.1",
        port: int | None = None,
        stop_within: float = 20.0,
        blind_after: float | None = None,
    ) -> None:
        self.client = client
        self.name = name
        self.metrics = metrics or Metrics()
        self.events = EventRecorder(client, name, metrics=self.metrics)
        self.address: tuple[str, int] | None = None
        self._lease = lease
        self._host = host
        self._port = port
        self._stop_within = stop_within
        self._blind_after = blind_after
        self._caches: dict[tuple[Any, ...], Cache[Any]] = {}
        self._cache_options: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._controllers: list[Controller] = []
        self._side_tasks: list[Callable[[], Awaitable[None]]] = []
        self._services: list[tuple[Callable[[], Awaitable[None]], Callable[[], str]]] = []
        self._stopping = asyncio.Event()

    def cache(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str | None = None,
        field_selector: str | None = None,
        required: bool = True,
        **options: Any,
    ) -> Cache[T]:
        """The cache of a kind and scope, shared by all who ask for the same; the first to ask sets its options.

        With `required=False` the kind may be missing on the server: start and readiness do not wait for it, and the
        cache fills when it appears. It is optional only as long as every caller asks for it with `required=False`.
        """
        key = (resource, namespace, label_selector, field_selector)
        if key not in self._caches:
            self._caches[key] = Cache(
                self.client,
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                required=required,
                metrics=self.metrics,
                **options,
            )
            self._cache_options[key] = options
        elif options and options != self._cache_options[key]:
            raise ValueError(f"the cache of {resource} is there already, with other options")
        cache = cast("Cache[T]", self._caches[key])
        cache.required = cache.required or required
        return cache

    def add(self, controller: Controller) -> None:
        self._controllers.append(controller)

    def add_task(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run something else beside the controllers while leading, such as a sweep by the clock."""
        self._side_tasks.append(work)

    def add_service(self, work: Callable[[], Awaitable[None]], *, why_unready: Callable[[], str] = str) -> None:
        """Run something from start to stop, leading or not, such as a server that every replica offers.

        It starts before the caches have caught up and is cancelled after the controllers have finished. Until
        `why_unready` says nothing, the process is not ready.
        """
        self._services.append((work, why_unready))

    def stop(self) -> None:
        """Begin to stop; `run` returns when that is done."""
        self._stopping.set()

    # Health.

    def why_unhealthy(self) -> list[str]:
        """What makes this process useless though it runs; empty when it is well."""
        blind = []
        for cache in self._caches.values():
            limit = self._blind_after if self._blind_after is not None else 2 * cache.silence
            if cache.has_synced and cache.silent_for() > limit:
                blind.append(f"nothing heard about {cache.resource} for {cache.silent_for():.0f} s: {cache.last_error}")
        return blind

    def why_unready(self) -> list[str]:
        if self._stopping.is_set():
            return ["stopping"]
        waiting = [cache for cache in self._caches.values() if cache.required and not cache.has_synced]
        unread = [f"{cache.resource} not read yet: {cache.last_error or 'listing'}" for cache in waiting]
        return unread + [why for _, why_unready in self._services if (why := why_unready())]

    # Life.

    async def run(self, *, handle_signals: bool = True) -> None:
        """Work until told to stop, then stop in order."""
        async with AsyncExitStack() as ends:
            if handle_signals:
                loop = asyncio.get_running_loop()
                for number in (signal.SIGTERM, signal.SIGINT):
                    loop.add_signal_handler(number, self.stop)
                    ends.callback(loop.remove_signal_handler, number)
            if self._port is not None:
                await self._serve_probes(ends)
            background = [cache.run() for cache in self._caches.values()] + [self.events.run(), self._measure_lag()]
            tasks = [asyncio.create_task(step) for step in background]
            ends.push_async_callback(_cancel, tasks)
            services = [asyncio.create_task(_as_coroutine(work)) for work, _ in self._services]
            ends.push_async_callback(_cancel, services)
            leading = asyncio.create_task(self._lead())
            ends.push_async_callback(_cancel, [leading])
            stopped = asyncio.create_task(self._stopping.wait())
            ends.push_async_callback(_cancel, [stopped])
            done, _ = await asyncio.wait({leading, stopped, *tasks, *services}, return_when=asyncio.FIRST_COMPLETED)
            self._stopping.set()
            for task in done - {stopped}:
                task.result()  # nothing but `stopped` ends by itself unless it is broken: say so
            log.info("%s is stopping", self.name)
            await _cancel([leading])
            await self.events.flush(min(2.0, self._stop_within / 4))

    async def _lead(self) -> None:
        for cache in self._caches.values():
            await cache.wait_settled()
        # What has been read stays; keep the collector from walking it again and again.
        gc.collect()
        gc.freeze()
        if self._lease is None:
            await self._work()
            return
        while True:
            try:
                await self._lease.lead(self._take_over)
            except LeadershipLost as lost:
                log.warning("%s no longer leads: %s", self.name, lost)

    async def _take_over(self) -> None:
        """Work, on a view that was held against the server first: a standby may have waited for weeks."""
        caches = [cache for cache in self._caches.values() if cache.has_synced]
        confirmed = await asyncio.gather(*(cache.confirm(CONFIRMED) for cache in caches), return_exceptions=True)
        for cache, outcome in zip(caches, confirmed, strict=True):
            if isinstance(outcome, BaseException):
                # A controller that needs it waits until it is followed again; the others can work.
                log.warning("%s leads without having confirmed %s: %s", self.name, cache.resource, outcome)
        await self._work()

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            for controller in self._controllers:
                group.create_task(controller.run(self._drain), name=controller.name)
            for work in self._side_tasks:
                group.create_task(_as_coroutine(work))
            group.create_task(asyncio.Event().wait())  # without controllers too, leading lasts until told otherwise

    def _drain(self) -> float:
        # A leader who lost the lease has no time to finish: its successor may start any moment.
        return self._stop_within / 2 if self._stopping.is_set() else 0.0

    async def _measure_lag(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            wanted, woken = loop.time() + LAG_PERIOD, awake_seconds()
            await asyncio.sleep(LAG_PERIOD)
            self.metrics.loop_lag.observe(max(0.0, loop.time() - wanted))
            if awake_seconds() - woken > LAG_PERIOD + STANDSTILL:
                self.client.timeline.stood_still(loop.time())

    async def _serve_probes(self, ends: AsyncExitStack) -> None:
        app = web.Application()
        app.router.add_get("/healthz", self._show_health)
        app.router.add_get("/readyz", self._show_readiness)
        app.router.add_get("/metrics", self._show_metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        ends.push_async_callback(runner.cleanup)
        await web.TCPSite(runner, self._host, self._port).start()
        self.address = runner.addresses[0][:2]

    async def _show_health(self, _: web.Request) -> web.Response:
        return _verdict(self.why_unhealthy())

    async def _show_readiness(self, _: web.Request) -> web.Response:
        return _verdict(self.why_unhealthy() + self.why_unready())

    async def _show_metrics(self, _: web.Request) -> web.Response:
        silence: dict[str, float] = {}
        for cache in self._caches.values():
            silence[str(cache.resource)] = max(cache.silent_for(), silence.get(str(cache.resource), 0.0))
        for resource, seconds in silence.items():
            self.metrics.cache_silence.labels(resource).set(seconds)
        # Thousands of series take a while to write down, and reconciles must not wait for it.
        text = await asyncio.to_thread(generate_latest, self.metrics.registry)
        return web.Response(body=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})


def _verdict(reasons: list[str]) -> web.Response:
    return web.Response(status=503 if reasons else 200, text="\n".join(reasons) or "ok")


async def _as_coroutine(work: Callable[[], Awaitable[None]]) -> None:
    await work()


async def _cancel(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
