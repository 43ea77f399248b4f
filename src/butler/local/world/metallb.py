"""MetalLB's controller, as it would run on every tenant that has the addon.

One controller for all tenants: a key is a tenant, and what happened on it since the last look is kept beside it, in the
order in which it was heard. A look takes over the pools if they changed and make sense (`metallb_pools`), then goes
through the Services that changed (`metallb_service`). Whenever pools change, or a Service gives something back, all
Services are gone through again, those with an address first, because no Service may be given what another one has not
yet been asked about. That is also how a restart begins: the memory of who holds what is rebuilt from what the Services
show, so a restart moves no Service. That pools were read is told before, and how much of them is in use after the
Services are served (`metallb_signs`).

Events come from `metallb-controller`. Tests play the same histories on the real one (tests/local/world_metallb). What
is not stood in for: announcing (L2, BGP), its webhook (what that would refuse is written, and not taken over), and two
faults of it. It gives and takes a second family for ever where a Service of one family prefers two and the pool has
both. And it may move a Service within a moment of having given it an address, when it goes through all Services before
it has heard of its own write.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from butler.api.objects import Json, Key, key_of, version_of
from butler.api.tenantaddon import TenantAddon
from butler.api.tenantcluster import TenantCluster
from butler.kube.cache import Cache
from butler.kube.controller import Controller
from butler.kube.errors import NotFound
from butler.kube.events import EventRecorder
from butler.kube.metrics import Metrics
from butler.kube.resource import NAMESPACES, SERVICES, resource_of
from butler.local.world.metallb_allocator import Allocator
from butler.local.world.metallb_pools import Pools, UnusablePools, configuration, uses_namespace_labels
from butler.local.world.metallb_service import converge, forget, is_ours
from butler.local.world.metallb_signs import COMPONENT, HOME, IP_ADDRESS_POOLS, Signs
from butler.local.world.tenants import tenant_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from butler.api.objects import Change
    from butler.kube.client import Client
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings
    from butler.local.world.tenants import TenantConnections

log = logging.getLogger(__name__)

ADDON: Final = "metallb"
SERVED_BY: Final = "local.butlerlabs.dev/served-by"
"""Annotation of a TenantAddon: another MetalLB than this stand-in serves the cluster, as in tests with the real one."""
BY_TENANT: Final = "clusters by tenant"
BY_CLUSTER: Final = "metallb addons by cluster"


def add_metallb(operator: Operator, tenants: TenantConnections, settings: WorldSettings) -> None:
    """Let an operator be MetalLB on every tenant that has it installed."""
    Metallb(operator, tenants, settings)


class Metallb:
    """Which tenants have MetalLB, and its looking after each of them."""

    def __init__(self, operator: Operator, tenants: TenantConnections, settings: WorldSettings) -> None:
        self._tenants = tenants
        self._clusters = operator.cache(resource_of(TenantCluster))
        self._addons = operator.cache(resource_of(TenantAddon))
        self._clusters.index(BY_TENANT, _tenant)
        self._addons.index(BY_CLUSTER, _cluster_with_metallb)
        self._metrics = Metrics()  # hundreds of caches of one kind have no place in the process' own
        self._running: dict[Key, TenantMetallb] = {}
        self._controller = Controller(COMPONENT, self.reconcile, workers=settings.workers, metrics=operator.metrics)
        self._controller.watches(self._clusters, _tenant)
        self._controller.watches(self._addons, self._tenant_of_addon)
        tenants.on_change(self._wake)
        operator.add(self._controller)
        operator.add_task(self._until_the_end)

    async def reconcile(self, key: Key) -> None:
        """Be there, or not, and look at what changed."""
        balancer = self._running.get(key)
        if not self._wanted(key):
            if balancer is not None:
                del self._running[key]
                await balancer.stop()
            return
        if balancer is not None and not balancer.is_current:
            del self._running[key]
            await balancer.stop()
            balancer = None
        if balancer is None:
            balancer = self._running[key] = TenantMetallb(key, self._tenants, self._wake, self._metrics)
            return  # it says when it has read what there is
        await balancer.look()

    def _wake(self, key: Key) -> None:
        self._controller.queue.add(key)

    def _wanted(self, key: Key) -> bool:
        return key in self._tenants and any(
            self._addons.by(BY_CLUSTER, key_of(cluster)) for cluster in self._clusters.by(BY_TENANT, key)
        )

    def _tenant_of_addon(self, addon: TenantAddon) -> Iterable[Key]:
        cluster = self._clusters.get(Key(addon.metadata.namespace, addon.spec.cluster_ref.name))
        return _tenant(cluster) if cluster is not None and addon.spec.addon == ADDON else ()

    async def _until_the_end(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            running, self._running = list(self._running.values()), {}
            await asyncio.gather(*(balancer.stop() for balancer in running))


def _tenant(cluster: TenantCluster) -> Iterable[Key]:
    key = tenant_key(cluster)
    return () if key is None else (key,)


def _cluster_with_metallb(addon: TenantAddon) -> Iterable[Key]:
    """The cluster on which this addon has MetalLB running: from its first installation to its removal."""
    if SERVED_BY in addon.metadata.annotations:
        return ()
    running = addon.status.installed_version is not None and addon.metadata.deletion_timestamp is None
    if addon.spec.addon != ADDON or not running:
        return ()
    return (Key(addon.metadata.namespace, addon.spec.cluster_ref.name),)


class TenantMetallb:
    """MetalLB's controller on one tenant."""

    def __init__(self, key: Key, tenants: TenantConnections, wake: Callable[[Key], None], metrics: Metrics) -> None:
        self._key = key
        self._tenants = tenants
        self._wake = wake
        self._metrics = metrics
        self._client: Client | None = None
        self._caches: dict[str, Cache[Json]] = {}
        self._events: EventRecorder | None = None
        self._signs: Signs | None = None
        self._allocator = Allocator()
        self._known: Pools | None = None
        self._pools_changed = True
        self._untold: str | None = None
        """Of a reading of the pools that has not been told: why they were refused; empty when they were not."""
        self._changed: dict[Key, None] = {}
        self._others_concerned = False
        self._namespaces_needed = asyncio.Event()
        self._task = asyncio.create_task(self._follow(), name=f"metallb {key}")

    @property
    def is_current(self) -> bool:
        """Whether this still follows the tenant that the key leads to now."""
        if self._task.done():
            return False
        return self._client is None or self._tenants.is_current(self._key, self._client)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    # Hearing.

    async def _follow(self) -> None:
        async with self._tenants.borrow(self._key) as client, asyncio.TaskGroup() as group:
            self._client = client
            self._events = EventRecorder(client, COMPONENT, metrics=self._metrics)
            self._signs = Signs(client)
            services = Cache(client, SERVICES, metrics=self._metrics)
            pools = Cache(client, IP_ADDRESS_POOLS, namespace=HOME, metrics=self._metrics)
            services.on_change(self._service_changed)
            pools.on_change(self._pool_changed)
            self._caches = {"services": services, "pools": pools}
            group.create_task(self._events.run())
            for cache in (services, pools):
                group.create_task(cache.run())
            group.create_task(self._tell_when_read(services, pools))
            await self._namespaces_needed.wait()
            namespaces = Cache(client, NAMESPACES, metrics=self._metrics)
            namespaces.on_change(self._namespace_changed)
            group.create_task(namespaces.run())
            group.create_task(self._tell_when_read(namespaces))
            self._caches["namespaces"] = namespaces

    async def _tell_when_read(self, *caches: Cache[Json]) -> None:
        for cache in caches:
            await cache.wait_synced()
        self._pools_changed = True
        self._wake(self._key)

    def _service_changed(self, change: Change[Json]) -> None:
        self._changed[change.key] = None
        self._wake(self._key)

    def _pool_changed(self, change: Change[Json]) -> None:
        if change.old is None or change.new is None or change.old.get("spec") != change.new.get("spec"):
            self._pools_changed = True
        self._wake(self._key)  # a status may have to be put right, too

    def _namespace_changed(self, _change: Change[Json]) -> None:
        self._pools_changed = True
        self._wake(self._key)

    # Looking.

    async def look(self) -> None:
        """Take over the pools, then bring every Service that changed to where it should be, and tell of both."""
        if self._signs is None or not all(cache.has_synced for cache in self._caches.values()):
            return
        if self._pools_changed:
            self._take_over_pools()
        if self._pools_changed:
            return  # it takes more than is known yet
        if self._untold is not None:
            await self._signs.tell_reading(self._untold)
            self._untold = None
        if self._known is not None:  # else nothing that makes sense was ever configured, and no Service is touched
            await self._serve()
        await self._signs.show_counts(self._caches["pools"], self._allocator.counts())

    async def _serve(self) -> None:
        while self._changed:
            key = next(iter(self._changed))
            del self._changed[key]  # before the work, so that what is heard meanwhile counts as new
            try:
                await self._converge(key)
            except BaseException:
                self._changed[key] = None
                raise
            if self._others_concerned and not self._changed:
                self._look_at_all()

    def _take_over_pools(self) -> None:
        objects = self._caches["pools"].values()
        namespaces = self._caches.get("namespaces")
        if namespaces is None and uses_namespace_labels(objects):
            self._namespaces_needed.set()
            return
        self._pools_changed = False
        try:
            pools = configuration(objects, namespaces.values() if namespaces is not None else ())
        except UnusablePools as why:
            log.warning("MetalLB of %s goes on with the pools it had: %s", self._key, why)
            self._untold = str(why)
            return
        self._untold = ""
        if pools != self._known:
            self._known = pools
            self._allocator.set_pools(pools)
            self._look_at_all()

    def _look_at_all(self) -> None:
        """Those who show an address come first, so that none of them loses it to one who waits."""
        self._others_concerned = False
        services = sorted(self._caches["services"].values(), key=_turn)
        self._changed = dict.fromkeys([key_of(service) for service in services] + list(self._changed))

    async def _converge(self, key: Key) -> None:
        assert self._client is not None
        assert self._events is not None
        cache = self._caches["services"]
        service = cache.get(key)
        if service is None:
            self._others_concerned |= forget(str(key), self._allocator)
            return
        if not is_ours(service):
            return
        outcome = converge(service, self._allocator)
        self._others_concerned |= outcome.concerns_others  # before the write: what was given up is given up
        for note in outcome.notes:
            self._events.record(service, SERVICES, note.reason, note.message, note.type)
        if outcome.patch is None:
            return
        fence = {"resourceVersion": version_of(service)}
        patch = {**outcome.patch, "metadata": outcome.patch.get("metadata", {}) | fence}
        with suppress(NotFound):  # its deletion is about to be heard
            written = await self._client.patch(SERVICES, key.name, patch, key.namespace, subresource="status")
            cache.wrote(written)


def _turn(service: Json) -> tuple[bool, str, str]:
    status = (service.get("status") or {}).get("loadBalancer") or {}
    meta = service["metadata"]
    return not status.get("ingress"), meta.get("creationTimestamp") or "", str(key_of(service))
