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
from butler.rules.tenant.status_urgency import A_FEW, EVERY, LONGEST, SELDOM, StatusUrgency, is_news, is_on_its_way

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
def test_what_a_user_may_act_on_is_news(fields: dict[str, Any]) -> None:
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
    telling, cluster = StatusUrgency(lambda: now[0], lambda: 1), a_cluster()
    progress = changed(cluster, worker_nodes_ready=2)
    pauses = []
    for _ in range(5):
        telling.told(cluster)
        pauses.append(telling.wait(cluster, progress))
    assert pauses == [EVERY, 2 * EVERY, SELDOM, SELDOM, SELDOM]


@pytest.mark.parametrize(("others", "pause"), [(1, EVERY), (A_FEW, EVERY), (2 * A_FEW, 2 * SELDOM), (40, 5 * SELDOM)])
def test_clusters_that_come_together_share_what_a_few_would_write(others: int, pause: float) -> None:
    telling, cluster = StatusUrgency(lambda: 100.0, lambda: others), a_cluster()
    telling.told(cluster)
    assert telling.wait(cluster, changed(cluster, worker_nodes_ready=2)) == pause
    assert telling.wait(cluster, changed(cluster, phase=TenantClusterPhase.FAILED)) == 0, "news never wait"


def test_however_many_come_each_says_now_and_then_how_far_it_is() -> None:
    telling, cluster = StatusUrgency(lambda: 100.0, lambda: 100_000), a_cluster()
    telling.told(cluster)
    assert telling.wait(cluster, changed(cluster, worker_nodes_ready=2)) == LONGEST


def test_however_many_come_each_tells_its_phase_as_soon_as_that_has_lasted_a_moment() -> None:
    now = [100.0]
    telling, cluster = StatusUrgency(lambda: now[0], lambda: 100_000), a_cluster()
    cluster = msgspec.structs.replace(cluster, status=changed(cluster, phase=TenantClusterPhase.PROVISIONING))
    telling.told(cluster)
    now[0] += 20
    installing = changed(cluster, phase=TenantClusterPhase.INSTALLING)
    assert telling.wait(cluster, installing) == EVERY
    now[0] += EVERY - 1
    assert telling.wait(cluster, installing) == 1
    now[0] += 1
    assert telling.wait(cluster, installing) == 0
    telling.told(msgspec.structs.replace(cluster, status=installing))
    assert telling.wait(cluster, installing) == EVERY, "the next phase has a moment of its own"


def test_a_cluster_that_can_be_used_takes_no_account_of_those_that_come() -> None:
    telling, cluster = StatusUrgency(lambda: 100.0, lambda: 1000), a_cluster()
    usable = changed(cluster, kubeconfig_secret_ref=LocalObjectReference(name="web-admin-kubeconfig"))
    cluster = msgspec.structs.replace(cluster, status=usable)
    telling.told(cluster)
    assert telling.wait(cluster, changed(cluster, worker_nodes_ready=2)) == EVERY


def test_a_cluster_is_on_its_way_until_it_can_be_used_or_something_stands_in_the_way() -> None:
    cluster = a_cluster()
    blocked = workers(cluster, "no room", reason="PoolExhausted")
    usable = changed(cluster, kubeconfig_secret_ref=LocalObjectReference(name="web-admin-kubeconfig"))
    going = msgspec.structs.replace(cluster.metadata, deletion_timestamp=NOW)
    assert is_on_its_way(cluster), "nothing was said of it yet"
    assert is_on_its_way(msgspec.structs.replace(cluster, status=changed(cluster, phase=TenantClusterPhase.INSTALLING)))
    assert not is_on_its_way(msgspec.structs.replace(cluster, status=blocked))
    assert not is_on_its_way(msgspec.structs.replace(cluster, status=usable))
    assert not is_on_its_way(msgspec.structs.replace(cluster, metadata=going))


def test_the_endpoint_of_a_cluster_that_cannot_be_used_yet_is_no_news() -> None:
    cluster = a_cluster()
    cluster = msgspec.structs.replace(cluster, status=changed(cluster, phase=TenantClusterPhase.PROVISIONING))
    assert not is_news(cluster.status, changed(cluster, control_plane_endpoint="https://10.0.0.1:6443"))


def test_counts_are_no_news() -> None:
    assert not is_news(a_cluster().status, changed(a_cluster(), worker_nodes_ready=2))


def test_progress_waits_for_its_time_and_news_does_not() -> None:
    now = [100.0]
    telling, cluster = StatusUrgency(lambda: now[0], lambda: 1), a_cluster()
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
