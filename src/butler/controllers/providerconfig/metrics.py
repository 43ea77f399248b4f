"""What providers tell Prometheus: whether clusters can be put on them, and for how many more there is room.

Read from the statuses that the controller has written, so that a graph and `kubectl get` never disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Gauge

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry

    from butler.api.providerconfig import ProviderConfig


class ProviderMetrics:
    """The metrics of ProviderConfigs, in the registry of the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        name = ["namespace", "provider_config"]
        self._ready = Gauge(
            "butler_provider_ready",
            "1 when clusters can be put on a provider, 0 when not.",
            [*name, "provider", "reason"],
            registry=registry,
        )
        self._available = Gauge(
            "butler_provider_available_ips", "Free addresses in the pools of a provider.", name, registry=registry
        )
        self._tenants = Gauge(
            "butler_provider_estimated_tenants",
            "Roughly how many more tenant clusters the pools of a provider have room for.",
            name,
            registry=registry,
        )

    def show(self, configs: Iterable[ProviderConfig]) -> None:
        """Where all providers stand now; of one that was not looked at yet, nothing is said."""
        for gauge in (self._ready, self._available, self._tenants):
            gauge.clear()
        for config in configs:
            name, status = (config.metadata.namespace, config.metadata.name), config.status
            if status.ready is not None:
                ready = find_condition(status.conditions, ConditionType.READY)
                why = ready.reason if ready else ""
                self._ready.labels(*name, config.spec.provider.value, why).set(int(status.ready))
            if status.capacity is not None:
                self._available.labels(*name).set(status.capacity.available_ips or 0)
                self._tenants.labels(*name).set(status.capacity.estimated_tenants or 0)
