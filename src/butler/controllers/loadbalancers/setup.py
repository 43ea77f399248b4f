"""Load-balancer addresses as a whole: what their controller needs, put together."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from secrets import token_hex
from typing import TYPE_CHECKING

from butler.controllers.loadbalancers.allocations import Ledger
from butler.controllers.loadbalancers.controller import LoadBalancerController
from butler.controllers.loadbalancers.deletions import Deletions
from butler.controllers.loadbalancers.draining import Draining
from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
from butler.controllers.loadbalancers.publisher import Publisher
from butler.controllers.loadbalancers.service_record import ServiceRecord
from butler.controllers.loadbalancers.status_writer import LoadBalancerStatusWriter
from butler.tenant.service_feed import TenantFeeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json, Key
    from butler.controllers.ipallocation.release import Releases
    from butler.controllers.kubeconfig_secrets import KubeconfigSecrets
    from butler.controllers.service_looks import ServiceLooks
    from butler.controllers.tenant_caches import Views
    from butler.kube.cache import Cache
    from butler.kube.operator import Operator
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.tenant.clusters import TenantClients

SHOW_EVERY = 5.0


def add_load_balancers(
    operator: Operator,
    settings: LoadBalancerSettings,
    views: Views,
    kubeconfigs: Cache[Json],
    secrets: KubeconfigSecrets,
    tenants: TenantClients,
    releases: Releases,
    told: Callable[[Key], None],
    looks: ServiceLooks | None = None,
) -> LoadBalancerController:
    """Let an operator look after tenants' load-balancer addresses.

    `told` is called with a cluster when something changed about whether its MetalLB has its addresses.
    """
    client, events, metrics = operator.client, operator.events, LoadBalancerMetrics(operator.metrics.registry)
    record = ServiceRecord(views.clusters, events, metrics, time.monotonic)

    def wake(key: Key) -> None:
        controller.queue.add(key)

    feeds = TenantFeeds(tenants, wake, on_service=record.changed)
    ledger = Ledger(client, views.allocations, releases, views.home)
    publisher = Publisher(ledger, events, metrics, settings, _now, time.monotonic)
    draining = Draining(
        ledger,
        publisher,
        events,
        metrics,
        settings,
        lambda: token_hex(4),
        _now,
        time.monotonic,
    )
    deletions = Deletions(ledger, events, _now, time.monotonic)
    writer = LoadBalancerStatusWriter(client, views.clusters, events, _now, time.monotonic)
    whole = LoadBalancerController(
        client,
        views,
        feeds,
        kubeconfigs,
        secrets,
        ledger,
        publisher,
        draining,
        deletions,
        writer,
        record,
        metrics,
        settings,
        told,
        _now,
        time.monotonic,
        looks,
    )
    if looks is not None:
        looks.wakes(wake)
    controller = whole.controller(metrics=operator.metrics)
    operator.add(controller)
    operator.add_task(lambda: _while_leading(whole, looks))
    return whole


async def _while_leading(whole: LoadBalancerController, looks: ServiceLooks | None) -> None:
    """Keep the metrics up to date; and hang up when another process leads."""
    if looks is not None:
        looks.leads()
    try:
        while True:
            whole.show()
            await asyncio.sleep(SHOW_EVERY)
    finally:
        await whole.stand_down()


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
