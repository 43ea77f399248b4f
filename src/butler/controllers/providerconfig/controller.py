"""The ProviderConfig controller: observe the Secret, the provider and the pools; decide; write one status.

Nothing is written while nothing changes. What pools have room for changes with every address that is handed out, so
it is counted at most every few seconds, while a pool that appears or goes is noticed at once. A ProviderConfig that
is deleted stays until the last TenantCluster that uses it is gone, because its credentials are needed to delete that
cluster's machines; that none is left is read from the server, not from a cache.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from butler.api.codec import status_patch
from butler.api.conditions import condition_holds
from butler.api.labels import ConditionType, Finalizer
from butler.api.objects import Key, finalizers_patch, key_of, with_finalizer, without_finalizer
from butler.api.providerconfig import NetworkMode
from butler.kube.controller import After, Controller
from butler.kube.errors import NotFound
from butler.kube.kinds import CLUSTERS, PROVIDERS, WRITE_TIMEOUT
from butler.rules.pool.excluded_addresses import held_excluded
from butler.rules.pool.holdings import Holdings
from butler.rules.provider.placement import placement
from butler.rules.provider.room import survey
from butler.rules.provider.settings import secret_key
from butler.rules.provider.status import ObservedProvider, notices, status_of, status_while_leaving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Change
    from butler.api.providerconfig import ProviderConfig, ProviderConfigStatus
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.providerconfig.inspection import Inspection
    from butler.controllers.providerconfig.secrets import SecretWatches
    from butler.controllers.providerconfig.settings import ProviderSettings
    from butler.ipam.layout import PoolLayout
    from butler.kube.cache import Cache
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.kube.metrics import Metrics
    from butler.rules.provider.room import Supply

BY_POOL: Final = "provider configs by pool"
LEAVING: Final = "provider configs by whether they are being deleted"
WORKERS: Final = 64
"""The first question to a provider is waited for; one that hangs must leave workers for the others."""
LOOK_FOR_USERS_EVERY: Final = 30.0
"""Seconds until a deletion that waits looks again; the clusters' own end wakes it earlier."""


class ProviderConfigController:
    def __init__(
        self,
        client: Client,
        configs: Cache[ProviderConfig],
        pools: Cache[NetworkPool],
        allocations: Cache[IPAllocation],
        clusters: Cache[TenantCluster],
        events: EventRecorder,
        inspection: Inspection,
        secrets: SecretWatches,
        settings: ProviderSettings,
        clock: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._configs = configs
        self._pools = pools
        self._clusters = clusters
        self._events = events
        self._inspection = inspection
        self._secrets = secrets
        self._settings = settings
        self._clock = clock
        self._holdings = Holdings(lambda _: None)  # the pool's own controller reports what cannot be read
        self._controller: Controller | None = None
        configs.index(BY_POOL, _pool_names)
        configs.index(LEAVING, lambda config: [config.metadata.deletion_timestamp is not None])
        allocations.on_change(self._holdings.changed)

    def controller(self, metrics: Metrics | None = None) -> Controller:
        """With its watches."""
        made = Controller("providerconfig", self.reconcile, workers=WORKERS, metrics=metrics)
        made.watches(self._configs, when=_wanted_otherwise)
        made.watches(self._pools, self._users_of_pool, when=_pool_came_went_or_turned)
        made.watches(self._clusters, self._leaving, when=lambda _, new: new is None)
        self._pools.on_change(self._count_again)
        self._controller = made
        return made

    def wake(self, key: Key) -> None:
        """Look at a ProviderConfig as soon as possible."""
        if self._controller is not None:
            self._controller.queue.add(key)

    def secret_changed(self, key: Key) -> None:
        """The Secret that a ProviderConfig names is not what it was."""
        self._inspection.secret_changed(key)
        self.wake(key)

    def _users_of_pool(self, pool: NetworkPool) -> Iterable[Key]:
        if pool.metadata.namespace != self._settings.home_namespace:
            return []
        return [key_of(config) for config in self._configs.by(BY_POOL, pool.metadata.name)]

    def _count_again(self, change: Change[NetworkPool]) -> None:
        pool = change.new or change.old
        if self._controller is None or pool is None or self._controller.queue.closed:
            return
        if change.new is None:
            self._holdings.close(change.key)
        for key in self._users_of_pool(pool):
            self._controller.queue.add_after(key, self._settings.capacity_every)

    def _leaving(self, _: TenantCluster) -> Iterable[Key]:
        """Those whose deletion may go on now that a cluster is gone."""
        return [key_of(config) for config in self._configs.by(LEAVING, True)]

    async def reconcile(self, key: Key) -> After | None:
        """Observe, decide, act."""
        if self._settings.namespace not in ("", key.namespace):
            return None  # another controller's
        config = self._configs.get(key)
        if config is None or config.metadata.deletion_timestamp is not None:
            self._secrets.follow(key, None)
            self._inspection.forget(key)
            return None if config is None else await self._leave(config)
        finalizers = with_finalizer(config, Finalizer.PROVIDER_CONFIG)
        if finalizers is not None:
            config = await self._set_finalizers(config, finalizers)
        self._secrets.follow(key, secret_key(config))
        known, again = await self._inspection.look(config)
        latest = self._configs.get(key)
        if latest is None or latest.metadata.generation != config.metadata.generation:
            return None  # changed while the provider was asked: its watch has put it in the queue again
        seen = ObservedProvider(known.state, known.outcome, known.refusal, self._supply(latest))
        await self._write(latest, status_of(latest, seen, self._clock()))
        return After(again)

    def _supply(self, config: ProviderConfig) -> Supply | None:
        network = config.spec.network
        if network.mode is not NetworkMode.IPAM:
            return None
        home = self._settings.home_namespace
        return survey(network, lambda name: self._pools.get(Key(home, name)), self._holes, self._held_excluded)

    def _holes(self, pool: NetworkPool, layout: PoolLayout) -> Mapping[int, int]:
        return self._holdings.book(key_of(pool), layout).free.lengths()

    def _held_excluded(self, pool: NetworkPool, layout: PoolLayout) -> list[str]:
        return held_excluded(self._holdings.book(key_of(pool), layout)) if layout.excluded else []

    # Leaving.

    async def _leave(self, config: ProviderConfig) -> After | None:
        finalizers = without_finalizer(config, Finalizer.PROVIDER_CONFIG)
        if finalizers is None:
            return None
        key, home = key_of(config), self._settings.home_namespace
        providers = {key, *map(key_of, self._configs.values())}
        clusters = (await self._client.list(CLUSTERS)).items
        users = [key_of(cluster) for cluster in clusters if placement(cluster, providers, home) == key]
        if not users:
            with suppress(NotFound):
                await self._set_finalizers(config, finalizers)
            return None
        await self._write(config, status_while_leaving(config, users, self._clock()))
        return After(LOOK_FOR_USERS_EVERY)

    # Act.

    async def _set_finalizers(self, config: ProviderConfig, finalizers: list[str]) -> ProviderConfig:
        key = key_of(config)
        written = await self._client.patch(
            PROVIDERS, key.name, finalizers_patch(config, finalizers), key.namespace, timeout=WRITE_TIMEOUT
        )
        self._configs.wrote(written)
        return written

    async def _write(self, config: ProviderConfig, status: ProviderConfigStatus) -> None:
        patch = status_patch(config.metadata, config.status, status)
        if patch is None:
            return
        key = key_of(config)
        written = await self._client.patch(
            PROVIDERS, key.name, patch, key.namespace, subresource="status", timeout=WRITE_TIMEOUT
        )
        self._configs.wrote(written)
        for notice in notices(config.status, status):
            self._events.record(written, PROVIDERS, notice.reason, notice.message, notice.type)


def _pool_names(config: ProviderConfig) -> list[str]:
    return [reference.name for reference in config.spec.network.pool_refs]


def _wanted_otherwise(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    """Whether a ProviderConfig changed in more than its status.

    To reconcile because of our own write would make a loop while addresses come and go: each write would find the next
    figure, and the interval that was set for counting would have no effect.
    """
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (before.uid, before.generation, before.deletion_timestamp, before.finalizers) != (
        after.uid,
        after.generation,
        after.deletion_timestamp,
        after.finalizers,
    )


def _pool_came_went_or_turned(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    """Whether a pool changed in more than its figures."""
    if old is None or new is None:
        return True
    return (
        old.metadata.generation != new.metadata.generation
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.status.excluded_addresses != new.status.excluded_addresses
        or condition_holds(old.status.conditions, ConditionType.READY)
        != condition_holds(new.status.conditions, ConditionType.READY)
    )
