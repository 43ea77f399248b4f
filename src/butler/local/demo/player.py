"""The demo's eyes and hands: looking at the estate, and doing one step in it through the API, as people would.

Whatever it changes or deletes carries the demo's label, and is named by its UID as it was seen, so that no object of
a user is hit, even if it has come under the same name in the meantime.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final

from butler.api.labels import ConditionType, Label, NetworkReason
from butler.api.meta import ConditionStatus
from butler.api.objects import Json, is_being_deleted, key_of, labels_of, name_of, namespace_of, uid_of, version_of
from butler.kube.errors import AlreadyExists, ApiError, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.objects import to_json
from butler.kube.resource import CONFIGMAPS, NAMESPACES, SECRETS, SERVICES, Resource
from butler.local.demo import imported, objects
from butler.local.demo.scene import DemoPool, DemoService, DemoTenant, Scene
from butler.local.demo.story import Come, Cursor, Grow, Leave, Publish, Step, TakeBack, Withdraw
from butler.local.world.addon_objects import ADDON
from butler.tenant.clusters import TenantClients, kubeconfig_secret

if TYPE_CHECKING:
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.client import Client

log = logging.getLogger(__name__)

AT_ONCE: Final = 8
BUILT_IN: Final = ("default", "kube-system", "kube-public", "kube-node-lease")


class NoStage(Exception):
    """Why the demo cannot be played here, in one sentence."""


class Player:
    def __init__(self, client: Client, tenants: TenantClients, home: str, seed: int) -> None:
        self._client, self._tenants, self._home, self._seed = client, tenants, home, seed

    # The stage.

    async def set_stage(self) -> None:
        """Pools and provider, as far as they are missing; NoStage where a user's own are in the way."""
        home = self._home
        wanted: list[tuple[Resource[Any], Json]] = [
            (POOLS, objects.pool(objects.POOL, home, objects.SMALL)),
            (POOLS, objects.pool(objects.NODE_POOL, home, objects.NODES)),
            (SECRETS, objects.credentials(home)),
            (PROVIDERS, objects.provider(home)),
        ]
        for resource, obj in wanted:
            await self._ensure(resource, obj)

    async def import_estate(self) -> None:
        """The addresses from before Butler; once, as users do not want back what they have deleted."""
        try:
            await self._ensure(POOLS, objects.pool(imported.POOL, self._home, imported.SPEC))
        except NoStage:
            return  # a user has this network or this name: the story does without
        for allocation in imported.allocations(self._home, self._seed):
            await self._create(ALLOCATIONS, allocation)

    async def _ensure(self, resource: Resource[Any], obj: Json) -> None:
        name = f"{resource.kind} {key_of(obj)}"
        try:
            found = await self._client.get(resource, name_of(obj), namespace_of(obj))
        except NotFound:
            try:
                await self._create(resource, obj)
            except ApiError as error:
                raise NoStage(f"{name} cannot be created: {error.status.message}") from error
            return
        if not _is_ours(found):
            raise NoStage(f"{name} is there already and is not the demo's")

    async def _create(self, resource: Resource[Any], obj: Json) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._client.create(resource, obj, namespace_of(obj))

    # Where the story stands.

    async def read_cursor(self) -> tuple[Cursor, bool]:
        """Where the story stands, and whether the estate has been imported."""
        try:
            found = await self._client.get(CONFIGMAPS, objects.CURSOR, self._home)
        except NotFound:
            return Cursor(), False
        data = found.get("data") or {}
        try:
            cursor = Cursor(*(int(data.get(name, 0)) for name in Cursor._fields))
        except ValueError:
            cursor = Cursor()
        return cursor, "imported" in data

    async def write_cursor(self, cursor: Cursor) -> None:
        data = {name: str(value) for name, value in cursor._asdict().items()} | {"imported": "yes"}
        try:
            await self._client.patch(CONFIGMAPS, objects.CURSOR, {"data": data}, self._home)
        except NotFound:
            await self._create(CONFIGMAPS, objects.cursor(self._home, data))

    # Looking.

    async def look(self) -> Scene | None:
        """The scene; None while the pool is on its way out."""
        pool = await self._client.get(POOLS, objects.POOL, self._home)
        if is_being_deleted(pool) or not _is_ours(pool):
            return None
        clusters = (await self._client.list(CLUSTERS)).items
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(cluster: TenantCluster) -> DemoTenant:
            async with gate:
                return await self._tenant(cluster)

        tenants = await asyncio.gather(*(one(cluster) for cluster in clusters if _is_ours(cluster)))
        return Scene(
            DemoPool(pool.status.total_ips or 0, pool.status.allocated_ips or 0, _size(to_json(pool.spec))),
            tuple(sorted(tenants, key=lambda tenant: tenant.key)),
            frozenset(
                (cluster.metadata.namespace, cluster.metadata.name) for cluster in clusters if not _is_ours(cluster)
            ),
        )

    async def _tenant(self, cluster: TenantCluster) -> DemoTenant:
        conditions = {condition.type: condition for condition in cluster.status.conditions}
        ready, network = conditions.get(ConditionType.READY), conditions.get(ConditionType.NETWORK_READY)
        is_ready = ready is not None and ready.status is ConditionStatus.TRUE
        leaving = is_being_deleted(cluster)
        use = cluster.status.load_balancers
        services, lived_in = await self._inside(cluster) if is_ready and not leaving else (None, False)
        return DemoTenant(
            cluster.metadata.namespace,
            cluster.metadata.name,
            cluster.metadata.uid,
            ready=is_ready,
            waiting=network is not None and network.reason == NetworkReason.POOL_EXHAUSTED,
            leaving=leaving,
            held=use.held if use else 0,
            services=services,
            lived_in=lived_in,
        )

    async def _inside(self, cluster: TenantCluster) -> tuple[tuple[DemoService, ...] | None, bool]:
        """The demo's Services in a cluster, and whether a user has something there; None: no answer."""
        try:
            client = await self._way_in(cluster)
            found = (await client.list(SERVICES, field_selector="spec.type=LoadBalancer")).items
            namespaces = (await client.list(NAMESPACES)).items
        except KubeError as error:
            log.debug("%s was not asked: %s", key_of(cluster), error)
            return None, True
        ours = sorted(
            (service for service in found if _is_ours(service)),
            key=lambda service: str(service["metadata"]["creationTimestamp"]),
        )
        strange = [
            service
            for service in found
            if not _is_ours(service) and Label.PLATFORM_LOAD_BALANCER not in labels_of(service)
        ]
        strange += [
            namespace
            for namespace in namespaces
            if name_of(namespace) not in BUILT_IN and ADDON not in labels_of(namespace)
        ]
        return tuple(DemoService(name_of(own), uid_of(own)) for own in ours), bool(strange)

    async def _way_in(self, cluster: TenantCluster) -> Client:
        secret = await self._client.get(
            SECRETS, kubeconfig_secret(cluster.metadata.name), cluster.status.tenant_namespace or ""
        )
        return await self._tenants.client(key_of(cluster), uid_of(cluster), secret)

    # Doing.

    async def do(self, step: Step) -> None:
        """One step. What is refused, or gone in the meantime, is left: the next look shows how things stand."""
        try:
            await self._do(step)
        except KubeError as error:
            log.debug("the demo's %s did not happen: %s", type(step).__name__, error)

    async def _do(self, step: Step) -> None:
        if isinstance(step, Come):
            await self._create(NAMESPACES, objects.namespace(step.namespace))
            await self._create(CLUSTERS, objects.cluster(step.namespace, step.name))
        elif isinstance(step, Leave):
            tenant = step.tenant
            await self._client.delete(CLUSTERS, tenant.name, tenant.namespace, uid=tenant.uid)
            await self._tenants.forget(tenant.uid)
        elif isinstance(step, Publish):
            if client := await self._client_of(step.tenant):
                await client.create(SERVICES, objects.service(step.service), objects.SERVICE_NAMESPACE)
        elif isinstance(step, Withdraw):
            if client := await self._client_of(step.tenant):
                await client.delete(SERVICES, step.service.name, objects.SERVICE_NAMESPACE, uid=step.service.uid)
        elif isinstance(step, Grow):
            await self._resize(objects.SMALL, objects.GROWN)
        elif isinstance(step, TakeBack):
            await self._resize(objects.GROWN, objects.SMALL)

    async def _client_of(self, tenant: DemoTenant) -> Client | None:
        """The way into a cluster; None when another one has its name by now."""
        cluster = await self._client.get(CLUSTERS, tenant.name, tenant.namespace)
        return await self._way_in(cluster) if uid_of(cluster) == tenant.uid else None

    async def _resize(self, old: Json, new: Json) -> None:
        """Unless a user has changed the pool since it was seen."""
        pool = await self._client.get(POOLS, objects.POOL, self._home)
        if _is_ours(pool) and objects.window_of(to_json(pool.spec)) == old:
            fence = {"uid": uid_of(pool), "resourceVersion": version_of(pool)}
            await self._client.patch(POOLS, objects.POOL, {"metadata": fence, "spec": objects.resized(new)}, self._home)


def _is_ours(obj: object) -> bool:
    name, value = objects.LABEL
    return labels_of(obj).get(name) == value


def _size(spec: Json) -> str:
    shape = objects.window_of(spec)
    return "small" if shape == objects.SMALL else "grown" if shape == objects.GROWN else "other"
