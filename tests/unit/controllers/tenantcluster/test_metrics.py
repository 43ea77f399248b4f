"""What tenant clusters tell Prometheus."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from prometheus_client import CollectorRegistry

from butler.api.codec import from_json
from butler.api.tenantcluster import TenantCluster
from butler.controllers.tenantcluster.metrics import TenantMetrics

SINCE = datetime(2026, 2, 15, 10, 0, tzinfo=UTC)


def cluster(name: str, phase: str, *conditions: tuple[str, str], **status: Any) -> TenantCluster:
    said = [
        {"type": kind, "status": "False", "reason": reason, "message": "", "lastTransitionTime": "2026-02-15T10:00:00Z"}
        for kind, reason in conditions
    ]
    return from_json(
        TenantCluster,
        {
            "apiVersion": "butler.butlerlabs.dev/v1alpha1",
            "kind": "TenantCluster",
            "metadata": {"name": name, "namespace": "team", "creationTimestamp": "2026-02-15T09:00:00Z"},
            "spec": {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}},
            "status": {
                "phase": phase,
                "conditions": said,
                "lastTransitionTime": "2026-02-15T10:00:00Z",
                **status,
            },
        },
    )


def shown(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    name = "butler_tenant_cluster_phase_since_timestamp_seconds"
    samples = [sample for family in registry.collect() for sample in family.samples if sample.name == name]
    return {tuple(sample.labels[key] for key in ("cluster", "phase", "reason")): sample.value for sample in samples}


def test_a_cluster_that_is_not_ready_is_shown_with_why_and_since_when() -> None:
    metrics = TenantMetrics(registry := CollectorRegistry())
    metrics.show(
        [
            cluster("fine", "Ready", ("Ready", "Ready")),
            cluster("waits", "Pending", ("NetworkReady", "PoolExhausted"), ("Ready", "PoolExhausted")),
            cluster("goes", "Deleting", ("Ready", "Deleting"), ("Deleting", "Stalled")),
        ]
    )
    began = SINCE.timestamp()
    assert shown(registry) == {("waits", "Pending", "PoolExhausted"): began, ("goes", "Deleting", "Stalled"): began}
    assert registry.get_sample_value("butler_tenant_clusters", {"phase": "Ready"}) == 1
    assert registry.get_sample_value("butler_tenant_clusters", {"phase": "Failed"}) == 0


def test_a_cluster_without_a_word_about_itself_waits_since_its_creation() -> None:
    metrics = TenantMetrics(registry := CollectorRegistry())
    metrics.show([cluster("new", "Pending", lastTransitionTime=None)])
    assert shown(registry) == {("new", "Pending", ""): SINCE.timestamp() - 3600}


def test_a_cluster_that_became_ready_or_went_is_no_longer_shown() -> None:
    metrics = TenantMetrics(registry := CollectorRegistry())
    metrics.show([cluster("web", "Provisioning"), cluster("old", "Deleting")])
    metrics.show([cluster("web", "Ready")])
    assert shown(registry) == {}
