"""What a status tells at once, and what waits a moment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from butler.api.conditions import with_condition
from butler.api.labels import ConditionType
from butler.api.meta import LocalObjectReference
from butler.api.tenantcluster import DeletionProgress, DeletionStage, TenantCluster, TenantClusterPhase
from butler.controllers.tenantcluster.telling import EVERY, SELDOM, Telling, is_news

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_cluster(uid: str = "u") -> TenantCluster:
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3}}
    body = {"metadata": {"name": "web", "namespace": "team", "uid": uid}, "spec": spec}
    return msgspec.convert(body, TenantCluster)


def changed(cluster: TenantCluster, **fields: Any) -> Any:
    return msgspec.structs.replace(cluster.status, **fields)


def workers(cluster: TenantCluster, message: str, *, status: bool = False, reason: str = "Provisioning") -> Any:
    conditions = with_condition(
        cluster.status.conditions,
        type=ConditionType.WORKERS_READY,
        status=status,
        reason=reason,
        message=message,
        now=NOW,
        observed_generation=1,
    )
    return changed(cluster, conditions=conditions)


@pytest.mark.parametrize(
    "fields",
    [
        {"phase": TenantClusterPhase.READY},
        {"tenant_namespace": "web-u"},
        {"control_plane_endpoint": "https://10.0.0.1:6443"},
        {"kubeconfig_secret_ref": LocalObjectReference(name="web-admin-kubeconfig")},
        {"deletion": DeletionProgress(stage=DeletionStage.MACHINES, since=NOW)},
        {"observed_generation": 2},
    ],
)
def test_what_somebody_may_act_on_is_news(fields: dict[str, Any]) -> None:
    assert is_news(a_cluster().status, changed(a_cluster(), **fields))


def test_a_condition_that_turns_or_has_another_reason_is_news_and_another_message_is_not() -> None:
    cluster = a_cluster()
    cluster = msgspec.structs.replace(cluster, status=workers(cluster, "0 of 3"))
    assert not is_news(cluster.status, workers(cluster, "1 of 3"))
    assert is_news(cluster.status, workers(cluster, "3 of 3", status=True))
    assert is_news(cluster.status, workers(cluster, "m1 failed", reason="MachineFailed"))


def test_of_a_cluster_that_is_being_built_only_what_stands_in_its_way_is_news() -> None:
    cluster = a_cluster()
    building = changed(cluster, phase=TenantClusterPhase.PROVISIONING)
    cluster = msgspec.structs.replace(cluster, status=building)
    assert not is_news(cluster.status, workers(cluster, "3 of 3", status=True))
    assert not is_news(cluster.status, changed(cluster, phase=TenantClusterPhase.INSTALLING))
    assert is_news(cluster.status, workers(cluster, "m1 failed", reason="MachineFailed"))
    assert is_news(cluster.status, changed(cluster, phase=TenantClusterPhase.FAILED))
    assert is_news(cluster.status, changed(cluster, phase=TenantClusterPhase.READY))


def test_the_longer_a_cluster_is_on_its_way_the_less_often_its_progress_is_written() -> None:
    now = [100.0]
    telling, cluster = Telling(lambda: now[0]), a_cluster()
    progress = changed(cluster, worker_nodes_ready=2)
    pauses = []
    for _ in range(5):
        telling.told(cluster)
        pauses.append(telling.wait(cluster, progress))
    assert pauses == [EVERY, 2 * EVERY, SELDOM, SELDOM, SELDOM]


def test_counts_are_no_news() -> None:
    assert not is_news(a_cluster().status, changed(a_cluster(), worker_nodes_ready=2))


def test_progress_waits_for_its_time_and_news_does_not() -> None:
    now = [100.0]
    telling, cluster = Telling(lambda: now[0]), a_cluster()
    progress, news = changed(cluster, worker_nodes_ready=2), changed(cluster, phase=TenantClusterPhase.READY)
    assert telling.wait(cluster, progress) == 0, "nothing was said before"
    telling.told(cluster)
    assert telling.wait(cluster, progress) == EVERY
    assert telling.wait(cluster, news) == 0
    assert telling.wait(a_cluster("other"), progress) == 0, "each cluster has its own time"
    now[0] += EVERY
    assert telling.wait(cluster, progress) == 0
    telling.told(cluster)
    telling.forget(cluster)
    assert telling.wait(cluster, progress) == 0
