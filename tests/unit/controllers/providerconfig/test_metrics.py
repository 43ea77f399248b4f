"""What providers tell Prometheus."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry

from butler.api.codec import from_json
from butler.api.providerconfig import ProviderConfig
from butler.controllers.providerconfig.metrics import ProviderMetrics

NAME = {"namespace": "butler-system", "provider_config": "harvester"}


def provider(**status: Any) -> ProviderConfig:
    return from_json(
        ProviderConfig,
        {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "ProviderConfig",
            "metadata": {"name": "harvester", "namespace": "butler-system"},
            "spec": {
                "provider": "harvester",
                "credentialsRef": {"name": "x"},
                "harvester": {"networkName": "default/vlan60"},
            },
            "status": status,
        },
    )


def refused() -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False", "reason": "Refused", "message": "no"}
    return {"ready": False, "conditions": [{**ready, "lastTransitionTime": "2026-02-15T10:00:00Z"}]}


def test_a_provider_is_shown_with_its_reason_and_its_room() -> None:
    metrics = ProviderMetrics(registry := CollectorRegistry())
    metrics.show([provider(**refused(), capacity={"availableIPs": 527, "estimatedTenants": 16})])
    labels = {**NAME, "provider": "harvester", "reason": "Refused"}
    assert registry.get_sample_value("butler_provider_ready", labels) == 0
    assert registry.get_sample_value("butler_provider_available_ips", NAME) == 527
    assert registry.get_sample_value("butler_provider_estimated_tenants", NAME) == 16


def test_nothing_is_said_of_a_provider_that_was_not_looked_at() -> None:
    metrics = ProviderMetrics(registry := CollectorRegistry())
    metrics.show([provider()])
    assert [sample for family in registry.collect() for sample in family.samples] == []


def test_a_provider_that_is_gone_is_no_longer_shown() -> None:
    metrics = ProviderMetrics(registry := CollectorRegistry())
    metrics.show([provider(**refused())])
    metrics.show([])
    assert [sample for family in registry.collect() for sample in family.samples] == []
