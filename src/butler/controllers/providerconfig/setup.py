"""Providers as a whole: what their controller needs, put together."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from butler.controllers.networkpool.setup import without_address_list
from butler.controllers.providerconfig.controller import ProviderConfigController
from butler.controllers.providerconfig.inspection import Inspection
from butler.controllers.providerconfig.metrics import ProviderMetrics
from butler.controllers.providerconfig.secrets import SecretWatches
from butler.controllers.providerconfig.settings import ProviderSettings
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS

if TYPE_CHECKING:
    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig
    from butler.kube.cache import Cache
    from butler.kube.operator import Operator

SHOW_EVERY: Final = 5.0


def add_providers(operator: Operator, settings: ProviderSettings | None = None) -> None:
    """Let an operator look after ProviderConfigs."""
    settings = settings or ProviderSettings()

    def wake(key: Key) -> None:
        whole.wake(key)

    def secret_changed(key: Key) -> None:
        whole.secret_changed(key)

    configs = operator.cache(PROVIDERS)
    metrics = ProviderMetrics(operator.metrics.registry)
    inspection = Inspection(operator.client, settings, wake, _now)
    secrets = SecretWatches(operator.client, secret_changed)
    whole = ProviderConfigController(
        operator.client,
        configs,
        operator.cache(POOLS, namespace=settings.namespace),
        operator.cache(ALLOCATIONS, namespace=settings.namespace, transform=without_address_list),
        operator.cache(CLUSTERS),
        operator.events,
        inspection,
        secrets,
        settings,
        _now,
    )
    operator.add(whole.controller(operator.metrics))
    operator.add_task(secrets.run)
    operator.add_task(inspection.run)
    operator.add_task(lambda: _show(configs, metrics))


async def _show(configs: Cache[ProviderConfig], metrics: ProviderMetrics) -> None:
    """Keep up to date what is told of providers, while leading."""
    try:
        while True:
            metrics.show(configs.values())
            await asyncio.sleep(SHOW_EVERY)
    finally:
        metrics.show(())


def _now() -> datetime:
    return datetime.now(UTC).replace(microsecond=0)
