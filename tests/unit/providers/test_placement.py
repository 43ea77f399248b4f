"""Which ProviderConfig a cluster is on."""

from __future__ import annotations

from butler.api.codec import from_json
from butler.api.objects import Key
from butler.api.tenantcluster import TenantCluster
from butler.rules.provider.placement import placement


def cluster(**reference: str) -> TenantCluster:
    spec = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 1}}
    if reference:
        spec["providerConfigRef"] = reference
    return from_json(TenantCluster, {"metadata": {"name": "web", "namespace": "team-a"}, "spec": spec})


A, B, DEFAULT, ELSEWHERE = Key("home", "a"), Key("home", "b"), Key("home", "default"), Key("team-a", "own")


def test_a_name_counts_whether_it_exists_or_not() -> None:
    assert placement(cluster(name="gone"), [A], "home") == Key("home", "gone")
    assert placement(cluster(name="own", namespace="team-a"), [A], "home") == ELSEWHERE


def test_without_a_name_it_is_the_default_else_the_only_one() -> None:
    assert placement(cluster(), [A, DEFAULT, B], "home") == DEFAULT
    assert placement(cluster(), [A, ELSEWHERE], "home") == A
    assert placement(cluster(), [A, B], "home") is None
    assert placement(cluster(), [ELSEWHERE], "home") is None
