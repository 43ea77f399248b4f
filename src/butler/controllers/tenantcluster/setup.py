"""Tenant clusters as a whole: what their controller needs, put together."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from butler.api.objects import namespace_of
from butler.controllers.ipallocation.release import Releases
from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
from butler.controllers.loadbalancers.setup import add_load_balancers
from butler.controllers.networkpool.setup import without_address_list
from butler.controllers.tenant_caches import Views
from butler.controllers.tenantcluster.bring_up import Building
from butler.controllers.tenantcluster.build_slots import Turnstile
from butler.controllers.tenantcluster.controller import TenantClusterController
from butler.controllers.tenantcluster.credentials import Credentials
from butler.controllers.tenantcluster.foreign_objects import ForeignObjects
from butler.controllers.tenantcluster.half_tenants import HalfTenants
from butler.controllers.tenantcluster.metrics import TenantMetrics
from butler.controllers.tenantcluster.status_writer import StatusWriter
from butler.controllers.tenantcluster.teardown import Teardown
from butler.controllers.tenantcluster.tenant_side import ADMIN_KUBECONFIGS, TenantAccess, without_contents
from butler.kube.kinds import ADDONS, ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS
from butler.kube.resource import SECRETS
from butler.providers.teams import NAMESPACE_HEADS, WITH_A_TEAM, Teams
from butler.rules.tenant.status_urgency import StatusUrgency
from butler.tenant.clusters import TenantClients

if TYPE_CHECKING:
    from butler.api.objects import Json, Key
    from butler.controllers.networkpool.metrics import IpamMetrics
    from butler.controllers.service_looks import ServiceLooks
    from butler.kube.controller import Controller
    from butler.kube.operator import Operator
    from butler.rules.tenant.settings import TenantSettings

COUNT_EVERY = 5.0


def add_tenants(
    operator: Operator,
    settings: TenantSettings,
    ipam: IpamMetrics,
    *,
    namespace: str = "",
    looks: ServiceLooks | None = None,
) -> None:
    """Let an operator look after TenantClusters. `namespace` is where IPAM looks; empty: everywhere."""
    namespaces = operator.cache(NAMESPACE_HEADS, label_selector=WITH_A_TEAM)
    views = Views(
        clusters=operator.cache(CLUSTERS),
        providers=operator.cache(PROVIDERS),
        pools=operator.cache(POOLS, namespace=namespace),
        allocations=operator.cache(ALLOCATIONS, namespace=namespace, transform=without_address_list),
        addons=operator.cache(ADDONS),
        home=settings.home_namespace,
        teams=Teams(namespaces),
    )
    views.add_indexes()
    client, metrics = operator.client, TenantMetrics(operator.metrics.registry)
    secrets = KubeconfigSecrets(client)

    def kubeconfig_seen(secret: Json) -> Json:
        if views.is_coming_up(namespace_of(secret)):
            secrets.saw(secret)
        return without_contents(secret)

    kubeconfigs = operator.cache(SECRETS, label_selector=ADMIN_KUBECONFIGS, transform=kubeconfig_seen)
    controllers: list[Controller] = []

    def wake(namespace: str) -> None:
        for controller in controllers:
            for key in views.in_namespace(namespace):
                controller.changed(key)

    def wake_cluster(key: Key) -> None:
        controllers[0].queue.add(key)

    live = ForeignObjects(client, wake, operator.metrics)
    tenants = TenantClients(views.endpoint_of)
    side = TenantAccess(client, live, kubeconfigs, tenants, secrets)
    releases = Releases(client, views.pools, operator.events, ipam, _now)
    balancers = add_load_balancers(
        operator,
        settings.load_balancers,
        views,
        kubeconfigs,
        secrets,
        tenants,
        releases,
        wake_cluster,
        looks,
    )
    telling = StatusUrgency(time.monotonic, views.on_their_way)
    writer = StatusWriter(client, views.clusters, operator.events, metrics, telling, _now)
    building = Building(
        client,
        views,
        live,
        Credentials(client),
        side,
        balancers.problem,
        settings.home_namespace,
        _now,
        Turnstile(time.monotonic, wake_cluster),
        writer,
        HalfTenants(client, views, releases, _now),
        releases,
    )
    teardown = Teardown(client, views, live, side, releases, operator.events, settings, _now)
    whole = TenantClusterController(
        views, building, teardown, writer, metrics, settings, _now, balancers.with_first_word
    )
    controllers.append(whole.controller(kubeconfigs, namespaces, metrics=operator.metrics))
    operator.add(controllers[0])
    operator.add_service(live.run)
    operator.add_service(lambda: _hang_up_at_the_end(tenants))
    operator.add_task(lambda: _count(views, metrics))
    operator.add_task(secrets.while_leading)


async def _hang_up_at_the_end(tenants: TenantClients) -> None:
    async with tenants:
        await asyncio.Event().wait()


async def _count(views: Views, metrics: TenantMetrics) -> None:
    """Keep up to date which clusters are in which phase, while leading."""
    try:
        while True:
            metrics.show(list(views.clusters.values()))
            await asyncio.sleep(COUNT_EVERY)
    finally:
        metrics.show(())


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
