"""Many elastic tenants, brought up in the cheapest honest way.

Everything that a tenant has is there and was made by those who would make it: Butler wrote the Cluster API objects, the
world answered each of them, and every tenant has an API server of its own with MetalLB and Traefik on it. Cheap is only
what the controllers do not see: one machine each, no waiting, and few at a time, so that no request has to be repeated
because the one process that serves all tenants is busy.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from bench_tenants import API, HOME, TEAM
from ipam.report import note

if TYPE_CHECKING:
    from control_planes import ControlPlane

TERMS = {
    "loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 2, "growthIncrement": 1, "defaultPoolSize": 2}
}
WAVE = 100
AT_ONCE = 8
PATIENCE = 900.0
_CLUSTERS = f"{API}/namespaces/{TEAM}/tenantclusters"


def bring_up(plane: ControlPlane, tenants: int) -> list[str]:
    """Create so many tenants, wave by wave; returns the names of those that are Ready when nothing more comes."""
    began = time.monotonic()
    names = [f"t{number:04}" for number in range(tenants)]
    with ThreadPoolExecutor(AT_ONCE) as users:
        for first in range(0, tenants, WAVE):
            wave = names[first : first + WAVE]
            list(users.map(lambda name: _create(plane, name), wave))
            ready = _wait(plane, wave)
            note(
                f"{first + len(wave):,} tenants after {time.monotonic() - began:.0f} s, {len(ready)} of the last Ready"
            )
    return sorted(name for name, cluster in _clusters(plane).items() if _is_ready(cluster))


def _create(plane: ControlPlane, name: str) -> None:
    body = {
        "apiVersion": API.removeprefix("/apis/"),
        "kind": "TenantCluster",
        "metadata": {"name": name},
        "spec": {
            "kubernetesVersion": "v1.33.2",
            "providerConfigRef": {"name": "lab", "namespace": HOME},
            "workers": {"replicas": 1},
        },
    }
    status, answer = plane.request("POST", _CLUSTERS, body)
    assert status == 201, answer


def _wait(plane: ControlPlane, wave: list[str]) -> list[str]:
    """Until all of a wave are Ready, or patience is at its end; a few that are not spoil no figure."""
    deadline = time.monotonic() + PATIENCE
    waiting = list(wave)
    while waiting and time.monotonic() < deadline:
        time.sleep(1.0)
        # One by one from the front: a list of all of them is work for the server that is being measured.
        while waiting and _is_ready(plane.request("GET", f"{_CLUSTERS}/{waiting[0]}")[1]):
            waiting.pop(0)
    return [name for name in wave if name not in waiting]


def _clusters(plane: ControlPlane) -> dict[str, dict[str, Any]]:
    status, answer = plane.request("GET", _CLUSTERS)
    assert status == 200, answer
    return {item["metadata"]["name"]: item for item in answer["items"]}


def _is_ready(cluster: dict[str, Any]) -> bool:
    return bool((cluster.get("status") or {}).get("phase") == "Ready")
