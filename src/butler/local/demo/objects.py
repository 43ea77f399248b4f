"""The objects that the demo creates, as JSON: those of examples/eight-tenants, and Services in clusters. Pure."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from butler.api import GROUP, VERSION
from butler.api.labels import Label

if TYPE_CHECKING:
    from butler.api.objects import Json

LABEL: Final = ("butler.butlerlabs.dev/demo", "true")
"""On everything that the demo has made. Without it an object belongs to a user, and is left alone."""
SELECTOR: Final = "=".join(LABEL)

POOL: Final = "production-pool"
NODE_POOL: Final = "production-nodes"
PROVIDER: Final = "harvester-production"
CURSOR: Final = "butler-demo"
"""The ConfigMap that keeps where the story stands."""
SERVICE_NAMESPACE: Final = "default"
TEAM_PREFIX: Final = "team-"

SMALL: Final[Json] = {
    "cidr": "10.92.90.0/23",
    "tenantAllocation": {"start": "10.92.90.49", "end": "10.92.90.80"},
}
"""A /23 with 32 usable addresses."""
GROWN: Final[Json] = {
    "cidr": "10.92.88.0/22",
    "tenantAllocation": {
        "ranges": [
            {"start": "10.92.88.16", "end": "10.92.88.31"},
            {"start": "10.92.90.49", "end": "10.92.90.80"},
        ]
    },
}
"""The same in a network twice as large, with 16 addresses of the new half."""
NODES: Final[Json] = {
    "cidr": "10.92.92.0/23",
    "reserved": [{"cidr": "10.92.92.0/28", "description": "Gateway and DNS"}],
    "tenantAllocation": {"defaults": {"nodesPerTenant": 3}},
}

# A name that never resolves: a demo must not call real servers.
_HARVESTER: Final = """\
apiVersion: v1
kind: Config
current-context: harvester
contexts:
  - name: harvester
    context: {cluster: harvester, user: butler}
clusters:
  - name: harvester
    cluster: {server: "https://harvester.demo.invalid"}
users:
  - name: butler
    user: {token: a-demo-has-no-token}
"""


def _object(kind: str, name: str, namespace: str = "", api_version: str = "v1", **content: Any) -> Json:
    metadata: Json = {"name": name, "labels": dict([LABEL])}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _ours(kind: str, name: str, namespace: str, spec: Json) -> Json:
    return _object(kind, name, namespace, f"{GROUP}/{VERSION}", spec=spec)


def pool(name: str, home: str, spec: Json) -> Json:
    return _ours("NetworkPool", name, home, spec)


def credentials(home: str) -> Json:
    return _object(
        "Secret", PROVIDER, home, data={"kubeconfig": base64.b64encode(_HARVESTER.encode()).decode()}, type="Opaque"
    )


def provider(home: str) -> Json:
    """Tenants start with two load-balancer addresses and grow one by one."""
    spec = {
        "provider": "harvester",
        "credentialsRef": {"name": PROVIDER},
        "harvester": {"namespace": "default", "networkName": "default/workloads"},
        "network": {
            "mode": "ipam",
            "gateway": "10.92.92.1",
            "dnsServers": ["10.92.92.2"],
            "poolRefs": [{"name": POOL, "types": ["loadbalancer"]}, {"name": NODE_POOL, "types": ["nodes"]}],
            "loadBalancer": {"allocationMode": "elastic", "initialPoolSize": 2, "growthIncrement": 1},
        },
    }
    return _ours("ProviderConfig", PROVIDER, home, spec)


def namespace(name: str) -> Json:
    made = _object("Namespace", name)
    if name.startswith(TEAM_PREFIX):
        made["metadata"]["labels"] = {Label.TEAM.value: name.removeprefix(TEAM_PREFIX)}
    return made


def cluster(team: str, name: str) -> Json:
    spec = {
        "kubernetesVersion": "v1.33.2",
        "providerConfigRef": {"name": PROVIDER},
        "workers": {"replicas": 2},
    }
    return _ours("TenantCluster", name, team, spec)


def service(name: str) -> Json:
    spec = {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"name": "https", "port": 443}]}
    return _object("Service", name, SERVICE_NAMESPACE, spec=spec)


def cursor(home: str, data: dict[str, str]) -> Json:
    return _object("ConfigMap", CURSOR, home, data=data)


def window_of(spec: Json) -> Json:
    """A pool's network and windows alone, to tell which of the two above it has."""
    given = spec.get("tenantAllocation") or {}
    kept = {name: given[name] for name in ("start", "end") if given.get(name)}
    if given.get("ranges"):
        kept["ranges"] = list(given["ranges"])
    return {"cidr": spec.get("cidr"), "tenantAllocation": kept}


def resized(spec: Json) -> Json:
    """The merge patch that gives a pool another network and other windows."""
    absent = {"start": None, "end": None, "ranges": None}
    return {"cidr": spec["cidr"], "tenantAllocation": {**absent, **spec["tenantAllocation"]}}
