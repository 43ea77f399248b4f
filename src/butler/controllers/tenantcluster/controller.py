"""TenantCluster: watches, and one reconcile.

Whatever a cluster is made of wakes it: its own spec, its provider, the pools it waits for, its allocations, its
addons, and every Cluster API object in its namespace. Its own status does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from butler.api.conditions import condition_holds, find_condition
from butler.api.labels import ConditionType
from butler.api.objects import Key, key_of, namespace_of
from butler.controllers.tenant_caches import BY_PROVIDER
from butler.controllers.tenantcluster.bring_up import NoLongerWanted
from butler.kube.controller import After, Controller
from butler.providers.teams import team_of_labels
from butler.rules.allocation.owner import tenant_key
from butler.rules.tenant.deletion import paused_status
from butler.rules.tenant.status import is_established, new_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Json
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantaddon import TenantAddon
    from butler.api.tenantcluster import TenantCluster, TenantClusterStatus
    from butler.controllers.tenant_caches import Views
    from butler.controllers.tenantcluster.bring_up import Building
    from butler.controllers.tenantcluster.metrics import TenantMetrics
    from butler.controllers.tenantcluster.status_writer import StatusWriter
    from butler.controllers.tenantcluster.teardown import Teardown
    from butler.kube.cache import Cache
    from butler.kube.metrics import Metrics
    from butler.providers.teams import NamespaceHead
    from butler.rules.tenant.settings import TenantSettings

WAITING_FOR_NETWORK = "clusters that wait for addresses"


class TenantClusterController:
    """Brings clusters up and takes them down. `clock` gives the time of day, in UTC.

    `with_first_word` adds to the status of a cluster that can first be used what is known of its load balancers.
    """

    def __init__(
        self,
        views: Views,
        building: Building,
        teardown: Teardown,
        writer: StatusWriter,
        metrics: TenantMetrics,
        settings: TenantSettings,
        clock: Callable[[], datetime],
        with_first_word: Callable[[TenantCluster, TenantClusterStatus], TenantClusterStatus],
    ) -> None:
        self._views = views
        self._building = building
        self._teardown = teardown
        self._writer = writer
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._with_first_word = with_first_word
        views.clusters.index(WAITING_FOR_NETWORK, lambda cluster: [True] if _waits_for_network(cluster) else [])

    def controller(
        self,
        kubeconfigs: Cache[Json],
        namespaces: Cache[NamespaceHead],
        *,
        workers: int = 32,
        metrics: Metrics | None = None,
    ) -> Controller:
        """The queue and the watches that call `reconcile`."""
        views = self._views
        controller = Controller("tenantcluster", self.reconcile, workers=workers, calm=views.calm, metrics=metrics)
        controller.watches(views.clusters, when=_wish_changed)
        controller.watches(views.clusters, lambda _: self._over_quota(), when=lambda _, new: new is None)
        controller.watches(views.providers, self._placed_on, when=_provider_changed)
        controller.watches(views.pools, lambda _: self._waiting(), when=_may_hold_more)
        controller.watches(views.allocations, lambda allocation: [tenant_key(allocation)], when=_allocation_changed)
        controller.watches(views.addons, _cluster_of_addon)
        controller.watches(kubeconfigs, lambda secret: views.in_namespace(namespace_of(secret)))
        controller.watches(namespaces, lambda found: views.declared_in(found.metadata.name), when=_other_team)
        return controller

    def _placed_on(self, provider: ProviderConfig) -> Iterable[Key]:
        clusters = self._views.clusters
        named, free = clusters.by(BY_PROVIDER, key_of(provider)), clusters.by(BY_PROVIDER, None)
        return [key_of(cluster) for cluster in (*named, *free)]

    def _over_quota(self) -> Iterable[Key]:
        """Those that were refused: a cluster that went makes room within the limits."""
        return [key_of(cluster) for cluster in self._views.clusters.values() if _over_quota(cluster)]

    def _waiting(self) -> Iterable[Key]:
        return [key_of(cluster) for cluster in self._views.clusters.by(WAITING_FOR_NETWORK, True)]

    async def reconcile(self, key: Key) -> After | None:
        """Observe, act, and write what there is to say."""
        cluster = self._views.clusters.get(key)
        if cluster is None:
            return None
        try:
            if cluster.metadata.deletion_timestamp is not None:
                return await self._end(cluster)
            built = await self._building.bring_up(cluster)
        except NoLongerWanted:
            return After(1.0)
        again = built.again if built.again is not None else self._settings.look_again
        if built.facts is None:
            return After(again)
        status = new_status(built.cluster, built.facts, self._clock())
        if status.kubeconfig_secret_ref is not None and not is_established(built.cluster):
            status = self._with_first_word(built.cluster, status)
        written = await self._writer.write(built.cluster, status)
        return After(min(again, written.wait) if written.wait else again)

    async def _end(self, cluster: TenantCluster) -> After | None:
        if cluster.spec.paused:
            await self._writer.write(cluster, paused_status(cluster, self._clock()))
            return None
        torn = await self._teardown.take_down(cluster)
        if torn.status is not None:
            again = torn.again or self._settings.look_again
            written = await self._writer.write(cluster, torn.status)
            return After(min(again, written.wait) if written.wait else again)
        await self._teardown.let_go(cluster)
        self._writer.forget(cluster)
        self._views.endpoints.pop(cluster.metadata.uid, None)
        asked = cluster.metadata.deletion_timestamp
        if asked is not None:
            self._metrics.went((self._clock() - asked).total_seconds())
        return None


def _wish_changed(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    """Whether anything but the status changed."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        before.uid != after.uid
        or before.generation != after.generation
        or before.deletion_timestamp != after.deletion_timestamp
        or before.annotations != after.annotations
        or before.finalizers != after.finalizers
    )


def _other_team(old: NamespaceHead | None, new: NamespaceHead | None) -> bool:
    before, after = (
        team_of_labels(namespace_head.metadata.labels) if namespace_head is not None else ""
        for namespace_head in (old, new)
    )
    return before != after


def _provider_changed(old: ProviderConfig | None, new: ProviderConfig | None) -> bool:
    if old is None or new is None:
        return True
    return old.metadata.generation != new.metadata.generation or old.status.ready != new.status.ready


def _may_hold_more(old: NetworkPool | None, new: NetworkPool | None) -> bool:
    """Whether a pool may now meet what it could not before."""
    if new is None or old is None:
        return True
    ready = condition_holds(new.status.conditions, ConditionType.READY)
    return (
        old.metadata.generation != new.metadata.generation
        or ready != condition_holds(old.status.conditions, ConditionType.READY)
        or (new.status.largest_free_block or 0) > (old.status.largest_free_block or 0)
    )


def _allocation_changed(old: IPAllocation | None, new: IPAllocation | None) -> bool:
    if old is None:
        return False  # it is ours, or it waits
    return (
        new is None
        or old.status.phase is not new.status.phase
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or _refusal(old) != _refusal(new)
    )


def _refusal(allocation: IPAllocation) -> str | None:
    ready = find_condition(allocation.status.conditions, ConditionType.READY)
    return ready.message if ready else None


def _cluster_of_addon(addon: TenantAddon) -> Iterable[Key]:
    return [Key(addon.metadata.namespace, addon.spec.cluster_ref.name)]


def _waits_for_network(cluster: TenantCluster) -> bool:
    found = find_condition(cluster.status.conditions, ConditionType.NETWORK_READY)
    return found is not None and not condition_holds(cluster.status.conditions, ConditionType.NETWORK_READY)


def _over_quota(cluster: TenantCluster) -> bool:
    found = find_condition(cluster.status.conditions, ConditionType.QUOTA_SATISFIED)
    return found is not None and not condition_holds(cluster.status.conditions, ConditionType.QUOTA_SATISFIED)
