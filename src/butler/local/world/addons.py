"""Addon installation, as Helm would leave it: TenantAddons on the management side, their objects on the tenant.

A key is a TenantAddon. Its next step is decided in `addon_steps`, what it puts on the cluster in `addon_objects`.
The pod network comes first: everything else waits until it is installed and the cluster has nodes, of which one
watch for each tenant tells. Objects are put there once for each generation of the spec, as Helm does, and not
guarded afterwards; only the numbers of DaemonSets follow the nodes. What goes wrong is shown as Failed and tried
again, later and later. A TenantAddon goes when its objects are gone, or when there is no cluster any more that could
have them. Namespaces stay behind, as they do with Helm: other people's things may be in them.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from butler.api.codec import status_patch
from butler.api.labels import Finalizer
from butler.api.objects import Json, Key, finalizers_patch, key_of, with_finalizer, without_finalizer
from butler.api.tenantaddon import TenantAddon, TenantAddonPhase, TenantAddonStatus
from butler.api.tenantcluster import TenantCluster
from butler.kube.controller import After, Controller
from butler.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from butler.kube.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    SERVICES,
    Resource,
    resource_of,
    untyped,
)
from butler.kube.retry import Backoff
from butler.local.world.addon_objects import chart_of, objects, status_of
from butler.local.world.addon_steps import AddonAction, Situation, decide, told
from butler.local.world.nodes import TenantNodes
from butler.local.world.pace import Pace
from butler.local.world.tenants import NoWayIn, tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from butler.kube.client import Client
    from butler.kube.operator import Operator
    from butler.local.world.settings import WorldSettings
    from butler.local.world.tenants import TenantConnections

log = logging.getLogger(__name__)

FAIL: Final = "world.butler.butlerlabs.dev/fail"
"""Annotation on a TenantAddon: do not install it, but fail with this message."""
CNI: Final = "cilium"
TENANT_ADDONS: Final = resource_of(TenantAddon)
BY_CLUSTER: Final = "addons by cluster"
BY_TENANT: Final = "clusters by tenant, for addons"
RETRY: Final = Backoff(first=1.0, cap=60.0)
MANAGER: Final = "helm"
REQUEST_SECONDS: Final = 20.0

DAEMON_SETS: Final = untyped("apps", "v1", "daemonsets", "DaemonSet")
_RESOURCES: Final = {
    resource.kind: resource
    for resource in (
        NAMESPACES,
        CUSTOM_RESOURCE_DEFINITIONS,
        DEPLOYMENTS,
        DAEMON_SETS,
        SERVICES,
        untyped("apps", "v1", "statefulsets", "StatefulSet"),
        untyped("storage.k8s.io", "v1", "storageclasses", "StorageClass", namespaced=False),
        untyped("networking.k8s.io", "v1", "ingressclasses", "IngressClass", namespaced=False),
    )
}


def add_addons(operator: Operator, tenants: TenantConnections, settings: WorldSettings) -> None:
    """Let an operator install TenantAddons."""
    AddonController(operator, tenants, settings)


class AddonController:
    """Takes each TenantAddon from its wish to its objects, and away again."""

    def __init__(self, operator: Operator, tenants: TenantConnections, settings: WorldSettings) -> None:
        self._client = operator.client
        self._tenants = tenants
        self._seconds = settings.addon_seconds
        self._pace = Pace()
        self._rests: dict[str, _Rest] = {}
        self._addons = operator.cache(TENANT_ADDONS)
        self._clusters = operator.cache(resource_of(TenantCluster))
        self._addons.index(BY_CLUSTER, lambda addon: (_cluster_key(addon),))
        self._clusters.index(BY_TENANT, _tenant_keys)
        self._controller = Controller("addons", self.reconcile, workers=settings.workers, metrics=operator.metrics)
        self._controller.watches(self._addons)
        self._controller.watches(self._addons, self._siblings, when=_changes_network)
        self._controller.watches(self._clusters, self._addons_of, when=_is_other_tenant)
        self._nodes = TenantNodes(operator, tenants, self._wake)
        tenants.on_change(self._wake)
        operator.add(self._controller)

    async def reconcile(self, key: Key) -> After | None:
        addon = self._addons.get(key)
        if addon is None:
            return None
        if addon.metadata.deletion_timestamp is not None:
            await self._remove(addon)
            return None
        finalizers = with_finalizer(addon, Finalizer.TENANT_ADDON)
        if finalizers is not None:
            await self._patch(addon, finalizers_patch(addon, finalizers))
            return None  # the answer is on its way as an event
        if (rest := self._rest_of(addon)) > 0:
            return After(rest)
        tenant = self._tenant_of(addon)
        step = decide(addon, self._situation(addon, tenant))
        version = addon.spec.version or chart_of(addon.spec.addon).version
        if step.act is AddonAction.INSTALL and tenant is not None:
            return await self._install(addon, tenant, version)
        await self._tell(addon, told(addon, step.phase, step.message, _now()))
        if step.act is AddonAction.WORK:
            return After(self._seconds_left(addon))
        if step.phase is TenantAddonPhase.INSTALLED and tenant is not None:
            await self._count_nodes(addon, tenant, version)
        return None

    # Looking.

    def _situation(self, addon: TenantAddon, tenant: Key | None) -> Situation:
        return Situation(
            waits_for=self._waits_for(addon, tenant),
            fails_with=addon.metadata.annotations.get(FAIL, ""),
            seconds_left=self._seconds_left(addon),
        )

    def _waits_for(self, addon: TenantAddon, tenant: Key | None) -> str:
        name = addon.spec.cluster_ref.name
        if self._clusters.get(_cluster_key(addon)) is None:
            return f"There is no TenantCluster {name} in namespace {addon.metadata.namespace}."
        if tenant is None or tenant not in self._tenants:
            return f"The API server of cluster {name} is not there yet."
        if addon.spec.addon == CNI:
            return ""
        siblings = self._addons.by(BY_CLUSTER, _cluster_key(addon))
        if any(sibling.spec.addon == CNI and sibling.status.installed_version is None for sibling in siblings):
            return f"The pod network of cluster {name} (addon {CNI}) is not installed yet."
        return "" if self._nodes.count(tenant) else f"Cluster {name} has no nodes yet."

    def _seconds_left(self, addon: TenantAddon) -> float:
        meta, status = addon.metadata, addon.status
        if status.phase not in (TenantAddonPhase.INSTALLING, TenantAddonPhase.UPGRADING):
            return self._seconds
        since = status.last_transition_time
        subject = (meta.uid, meta.generation)
        return self._pace.remaining(subject, None if since is None else since.isoformat(), self._seconds)

    def _tenant_of(self, addon: TenantAddon) -> Key | None:
        cluster = self._clusters.get(_cluster_key(addon))
        return None if cluster is None else tenant_key(cluster)

    def _wake(self, tenant: Key) -> None:
        for cluster in self._clusters.by(BY_TENANT, tenant):
            for key in self._addons_of(cluster):
                self._controller.queue.add(key)

    def _addons_of(self, cluster: TenantCluster) -> Iterable[Key]:
        return [key_of(addon) for addon in self._addons.by(BY_CLUSTER, key_of(cluster))]

    def _siblings(self, addon: TenantAddon) -> Iterable[Key]:
        return [key_of(sibling) for sibling in self._addons.by(BY_CLUSTER, _cluster_key(addon))]

    # Doing.

    async def _install(self, addon: TenantAddon, tenant: Key, version: str) -> After | None:
        try:
            async with self._tenants.borrow(tenant) as client:
                nodes = self._nodes.count(tenant)
                wanted = objects(addon.spec.addon, version, addon.spec.values)
                fresh = addon.status.installed_version is None
                for obj in wanted:
                    await _put(client, obj, nodes, fresh=fresh)
                await _delete(client, _left_out(addon.spec.addon, version, wanted))
        except Conflict:
            raise
        except KubeError as error:
            await self._tell(addon, told(addon, TenantAddonPhase.FAILED, str(error), _now()))
            return After(self._rests.setdefault(addon.metadata.uid, _Rest()).begin(addon))
        self._pace.forget((addon.metadata.uid, addon.metadata.generation))
        self._rests.pop(addon.metadata.uid, None)
        await self._tell(addon, told(addon, TenantAddonPhase.INSTALLED, None, _now(), version))
        return None

    def _rest_of(self, addon: TenantAddon) -> float:
        rest = self._rests.get(addon.metadata.uid)
        return 0.0 if rest is None else rest.left(addon)

    async def _count_nodes(self, addon: TenantAddon, tenant: Key, version: str) -> None:
        """DaemonSets have as many pods as there are nodes."""
        if tenant not in self._tenants or not self._nodes.is_known(tenant):
            return
        sets = [obj for obj in objects(addon.spec.addon, version, addon.spec.values) if obj["kind"] == "DaemonSet"]
        for obj in sets:
            with suppress(NotFound, NoWayIn):  # a user deleted it, and no finalizer guards it
                async with self._tenants.borrow(tenant) as client:
                    meta = obj["metadata"]
                    live = await client.get(DAEMON_SETS, meta["name"], meta["namespace"], timeout=REQUEST_SECONDS)
                    await _show_running(client, DAEMON_SETS, live, self._nodes.count(tenant))

    async def _remove(self, addon: TenantAddon) -> None:
        finalizers = without_finalizer(addon, Finalizer.TENANT_ADDON)
        if finalizers is None:
            return
        tenant = self._tenant_of(addon)
        version = addon.status.installed_version or addon.spec.version or chart_of(addon.spec.addon).version
        # One that never got anywhere may still have left something: a failure comes half-way.
        if tenant is not None and tenant in self._tenants and addon.status.phase is not TenantAddonPhase.PENDING:
            addon = await self._tell(addon, told(addon, TenantAddonPhase.DELETING, None, _now()))
            made = objects(addon.spec.addon, version, addon.spec.values)
            with suppress(NoWayIn):
                async with self._tenants.borrow(tenant) as client:
                    await _delete(client, [*_left_out(addon.spec.addon, version, made), *reversed(made)])
        self._rests.pop(addon.metadata.uid, None)
        self._pace.forget((addon.metadata.uid, addon.metadata.generation))
        with suppress(NotFound):
            await self._patch(addon, finalizers_patch(addon, finalizers))

    async def _tell(self, addon: TenantAddon, status: TenantAddonStatus) -> TenantAddon:
        patch = status_patch(addon.metadata, addon.status, status)
        return addon if patch is None else await self._patch(addon, patch, "status")

    async def _patch(self, addon: TenantAddon, patch: Json, subresource: str = "") -> TenantAddon:
        meta = addon.metadata
        written = await self._client.patch(
            TENANT_ADDONS, meta.name, patch, meta.namespace, subresource=subresource, timeout=REQUEST_SECONDS
        )
        self._addons.wrote(written)
        return written


class _Rest:
    """The pause after a failure, which grows; a change of the addon's spec ends it."""

    def __init__(self) -> None:
        self._failures = 0
        self._until = 0.0
        self._generation = 0

    def begin(self, addon: TenantAddon) -> float:
        seconds = min(RETRY.cap, RETRY.first * RETRY.factor ** min(self._failures, 16))
        self._failures += 1
        self._until = asyncio.get_running_loop().time() + seconds
        self._generation = addon.metadata.generation
        return seconds

    def left(self, addon: TenantAddon) -> float:
        if addon.metadata.generation != self._generation:
            return 0.0
        return max(0.0, self._until - asyncio.get_running_loop().time())


def _left_out(addon: str, version: str, wanted: tuple[Json, ...]) -> list[Json]:
    """What the addon has with other values and not with these, and what Helm would therefore take away."""
    names = {(obj["kind"], key_of(obj)) for obj in wanted}
    return [obj for obj in objects(addon, version, {}) if (obj["kind"], key_of(obj)) not in names]


async def _put(client: Client, obj: Json, nodes: int, *, fresh: bool) -> None:
    """Create or change one object, and let it look as if its pods ran."""
    resource = _RESOURCES[obj["kind"]]
    live: Json | None = None
    if fresh:  # by far the cheapest, and seldom wrong
        with suppress(AlreadyExists):
            live = await client.create(resource, obj, field_manager=MANAGER, timeout=REQUEST_SECONDS)
    if live is None:
        live = await client.apply(resource, obj, force=True, field_manager=MANAGER, timeout=REQUEST_SECONDS)
    await _show_running(client, resource, live, nodes)


async def _show_running(client: Client, resource: Resource[Json], live: Json, nodes: int) -> None:
    status = status_of({**live, "kind": resource.kind}, nodes)
    present = live.get("status") or {}
    if status is None or all(present.get(field, 0) == value for field, value in status.items()):
        return
    key = key_of(live)
    await client.patch(
        resource, key.name, {"status": status}, key.namespace, subresource="status", timeout=REQUEST_SECONDS
    )


async def _delete(client: Client, unwanted: Iterable[Json]) -> None:
    for obj in unwanted:
        if obj["kind"] != "Namespace":
            key = key_of(obj)
            with suppress(NotFound):
                await client.delete(
                    _RESOURCES[obj["kind"]],
                    key.name,
                    key.namespace,
                    propagation="Background",
                    timeout=REQUEST_SECONDS,
                )


def _cluster_key(addon: TenantAddon) -> Key:
    return Key(addon.metadata.namespace, addon.spec.cluster_ref.name)


def _tenant_keys(cluster: TenantCluster) -> Iterable[Key]:
    key = tenant_key(cluster)
    return () if key is None else (key,)


def _changes_network(old: TenantAddon | None, new: TenantAddon | None) -> bool:
    """Whether a pod network came, went or got installed: its siblings wait for that."""
    states = [
        None if addon is None or addon.spec.addon != CNI else addon.status.installed_version is not None
        for addon in (old, new)
    ]
    return states[0] is not states[1]


def _is_other_tenant(old: TenantCluster | None, new: TenantCluster | None) -> bool:
    return old is None or new is None or tenant_key(old) != tenant_key(new)


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
