"""Who reads the fields that no object of Cluster API shows: decisions of the TenantCluster controller, made twice.

Each entry makes one decision without a change of the field and one with it. The decisions are the controller's own
functions, so an entry cannot stay true when the code stops reading the field.
"""

from __future__ import annotations

import asyncio
import copy
from typing import TYPE_CHECKING, Any, cast

import msgspec

from butler.api.codec import from_json
from butler.api.ipallocation import IPAllocation
from butler.api.networkpool import NetworkPool
from butler.api.objects import Key
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.controllers.tenantcluster.credentials import Credentials
from butler.rules.tenant.addons import wanted_addons
from butler.rules.tenant.addresses import plan
from butler.rules.tenant.provider import quota, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from butler.api.objects import Json
    from butler.kube.client import Client

    Decide = Callable[[TenantCluster, ProviderConfig], object]

Decisions = tuple[object, object]
"""What is decided without the change, and with it."""

HOME = "butler-system"
CLUSTER: Json = {"kubernetesVersion": "v1.33.2", "workers": {"replicas": 3}, "teamRef": {"name": "payments"}}
PROVIDER: Json = {
    "provider": "harvester",
    "credentialsRef": {"name": "login"},
    "harvester": {"networkName": "default/vlan60"},
    "network": {"mode": "ipam", "gateway": "10.60.0.1", "poolRefs": [{"name": "one"}, {"name": "two"}]},
}
READY = {
    "type": "Ready",
    "status": "True",
    "reason": "Ready",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
POOLS = {
    name: from_json(
        NetworkPool,
        {
            "metadata": {"name": name, "namespace": HOME},
            "spec": {"cidr": "10.60.0.0/16"},
            "status": {"largestFreeBlock": 4096, "conditions": [READY]},
        },
    )
    for name in ("one", "two")
}


def _cluster(spec: Json, name: str = "shop") -> TenantCluster:
    metadata = {"name": name, "namespace": "team-payments", "uid": f"{name}-1b4e28ba"}
    return from_json(TenantCluster, {"metadata": metadata, "spec": spec, "status": {"tenantNamespace": f"{name}-1"}})


def _provider(spec: Json, name: str = "here", namespace: str = HOME) -> ProviderConfig:
    metadata = {"name": name, "namespace": namespace}
    return from_json(ProviderConfig, {"metadata": metadata, "spec": spec, "status": {"ready": True}})


def _addons(cluster: TenantCluster, _: ProviderConfig) -> object:
    return wanted_addons(cluster, load_balancers=True)


def _addresses(cluster: TenantCluster, provider: ProviderConfig) -> object:
    found = plan(cluster, provider, POOLS, (), lambda _: False, HOME)
    return [(allocation.metadata.name, allocation.spec) for allocation in found.create], found.blocked


def _growth(cluster: TenantCluster, provider: ProviderConfig) -> object:
    """What is asked for when a cluster with two load-balancer addresses wants four."""
    spec = {
        "poolRef": {"name": "one"},
        "tenantClusterRef": {"name": "shop", "namespace": "team-payments"},
        "type": "loadbalancer",
        "count": 2,
    }
    status = {"phase": "Allocated", "startAddress": "10.60.1.0", "endAddress": "10.60.1.1"}
    held = from_json(IPAllocation, {"metadata": {"name": "shop-lb", "namespace": HOME}, "spec": spec, "status": status})
    networking = msgspec.structs.replace(cluster.spec.networking, lb_pool_size=4)
    wider = msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, networking=networking))
    return [allocation.spec for allocation in plan(wider, provider, POOLS, (held,), lambda _: False, HOME).create]


def _access(cluster: TenantCluster, provider: ProviderConfig) -> object:
    return resolve(cluster, {Key(HOME, "here"): provider}, HOME, "payments")


def _quota(cluster: TenantCluster, provider: ProviderConfig) -> object:
    new = msgspec.structs.replace(cluster, status=msgspec.structs.replace(cluster.status, tenant_namespace=None))
    return quota(new, provider, [_cluster(CLUSTER, "older")], workers_now=0, team="payments")


def _where(cluster: TenantCluster, _: ProviderConfig) -> object:
    places = [Key(HOME, "here"), Key(HOME, "there"), Key("team-payments", "here")]
    return resolve(cluster, {key: _provider(PROVIDER, key.name, key.namespace) for key in places}, HOME, "payments")


def _secret(_: TenantCluster, provider: ProviderConfig) -> object:
    class Secrets:
        async def get(self, _: object, name: str, namespace: str) -> Json:
            allows = {"butler.butlerlabs.dev/provider-configs": "butler-system/here"}
            return {"metadata": {"name": name, "namespace": namespace, "annotations": allows}, "data": {}}

    return asyncio.run(Credentials(cast("Client", Secrets())).of(provider))


def _merged(base: Json, more: Json) -> Json:
    merged = copy.deepcopy(base)
    for key, value in more.items():
        inner = merged.get(key)
        merged[key] = _merged(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
    return merged


def _of_cluster(decide: Decide, before: Json, after: Json) -> Callable[[], Decisions]:
    """The decision for two clusters on one provider."""
    provider = _provider(PROVIDER)
    first, second = (_cluster(_merged(CLUSTER, obj)) for obj in (before, after))
    return lambda: (decide(first, provider), decide(second, provider))


def _of_provider(decide: Decide, before: Json, after: Json) -> Callable[[], Decisions]:
    """The decision for one cluster on two providers."""
    cluster = _cluster(CLUSTER)
    first, second = (_provider(_merged(PROVIDER, obj)) for obj in (before, after))
    return lambda: (decide(cluster, first), decide(cluster, second))


def _addon(addon: str, field: str, value: Any, **given: Any) -> Callable[[], Decisions]:
    return _of_cluster(_addons, {"addons": {addon: given}}, {"addons": {addon: {**given, field: value}}})


def _repository(field: str, value: Any) -> Callable[[], Decisions]:
    given = {"url": "https://git.example.com/a"}
    return _addon("gitops", "repository", {**given, field: value}, repository=given)


def _balancers(field: str, value: Any, **given: Any) -> Callable[[], Decisions]:
    before, after = ({"network": {"loadBalancer": obj}} for obj in (given, {**given, field: value}))
    return _of_provider(_addresses, before, after)


def _network(before: Json, after: Json) -> Callable[[], Decisions]:
    return _of_provider(_addresses, {"network": before}, {"network": after})


def _pools(*pools: Json) -> Json:
    return {"poolRefs": list(pools)}


_PICKED = {"start": "10.60.1.0", "end": "10.60.1.9"}

READERS: dict[str, Callable[[], Decisions]] = {
    # Which provider a cluster goes to, and whose credentials are used.
    "TenantCluster.spec.providerConfigRef.name": _of_cluster(
        _where, {"providerConfigRef": {"name": "here"}}, {"providerConfigRef": {"name": "there"}}
    ),
    "TenantCluster.spec.providerConfigRef.namespace": _of_cluster(
        _where,
        {"providerConfigRef": {"name": "here"}},
        {"providerConfigRef": {"name": "here", "namespace": "team-payments"}},
    ),
    "ProviderConfig.spec.credentialsRef.name": _of_provider(_secret, {}, {"credentialsRef": {"name": "other"}}),
    "ProviderConfig.spec.credentialsRef.namespace": _of_provider(
        _secret, {}, {"credentialsRef": {"name": "login", "namespace": "vault"}}
    ),
    # Who may use a provider, and how much of it.
    "ProviderConfig.spec.scope.type": _of_provider(
        _access, {}, {"scope": {"type": "team", "teamRef": {"name": "search"}}}
    ),
    "ProviderConfig.spec.scope.teamRef.name": _of_provider(
        _access,
        {"scope": {"type": "team", "teamRef": {"name": "payments"}}},
        {"scope": {"type": "team", "teamRef": {"name": "search"}}},
    ),
    "ProviderConfig.spec.limits.maxClustersPerTeam": _of_provider(_quota, {}, {"limits": {"maxClustersPerTeam": 1}}),
    "ProviderConfig.spec.limits.maxNodesPerTeam": _of_provider(_quota, {}, {"limits": {"maxNodesPerTeam": 5}}),
    # How many addresses a cluster gets, and from where.
    "TenantCluster.spec.networking.lbPoolSize": _of_cluster(_addresses, {}, {"networking": {"lbPoolSize": 4}}),
    "TenantCluster.spec.networking.loadBalancerPool.start": _of_cluster(
        _addresses,
        {"networking": {"loadBalancerPool": _PICKED}},
        {"networking": {"loadBalancerPool": _PICKED | {"start": "10.60.1.5"}}},
    ),
    "TenantCluster.spec.networking.loadBalancerPool.end": _of_cluster(
        _addresses,
        {"networking": {"loadBalancerPool": _PICKED}},
        {"networking": {"loadBalancerPool": _PICKED | {"end": "10.60.1.5"}}},
    ),
    "ProviderConfig.spec.network.mode": _network({}, {"mode": "cloud"}),
    "ProviderConfig.spec.network.poolRefs[].name": _network(_pools({"name": "one"}), _pools({"name": "two"})),
    "ProviderConfig.spec.network.poolRefs[].priority": _network(
        {}, _pools({"name": "one", "priority": 5}, {"name": "two"})
    ),
    "ProviderConfig.spec.network.poolRefs[].gateway": _network(
        _pools({"name": "one"}), _pools({"name": "one", "gateway": "10.61.0.1"})
    ),
    "ProviderConfig.spec.network.poolRefs[].types": _network(
        _pools({"name": "one"}), _pools({"name": "one", "types": ["loadbalancer"]})
    ),
    "ProviderConfig.spec.network.loadBalancer.allocationMode": _balancers("allocationMode", "elastic"),
    "ProviderConfig.spec.network.loadBalancer.defaultPoolSize": _balancers("defaultPoolSize", 3),
    "ProviderConfig.spec.network.loadBalancer.initialPoolSize": _balancers(
        "initialPoolSize", 5, allocationMode="elastic"
    ),
    "ProviderConfig.spec.network.loadBalancer.growthIncrement": _of_provider(
        _growth,
        {"network": {"loadBalancer": {"allocationMode": "elastic"}}},
        {"network": {"loadBalancer": {"allocationMode": "elastic", "growthIncrement": 6}}},
    ),
    "ProviderConfig.spec.network.quotaPerTenant.maxNodeIPs": _network({}, {"quotaPerTenant": {"maxNodeIPs": 2}}),
    "ProviderConfig.spec.network.quotaPerTenant.maxLoadBalancerIPs": _network(
        {}, {"quotaPerTenant": {"maxLoadBalancerIPs": 2}}
    ),
    # What is installed on the cluster, and by whom.
    "TenantCluster.spec.managementPolicy.mode": _of_cluster(_addons, {}, {"managementPolicy": {"mode": "Observe"}}),
    "TenantCluster.spec.addons.cni.version": _addon("cni", "version", "2", version="1"),
    "TenantCluster.spec.addons.cni.values": _addon("cni", "values", {"a": 1}, version="1"),
    "TenantCluster.spec.addons.certManager.enabled": _addon("certManager", "enabled", False, version="1"),
    "TenantCluster.spec.addons.certManager.version": _addon("certManager", "version", "2", version="1"),
    "TenantCluster.spec.addons.certManager.values": _addon("certManager", "values", {"a": 1}, version="1"),
    "TenantCluster.spec.addons.loadBalancer.version": _addon("loadBalancer", "version", "2", version="1"),
    "TenantCluster.spec.addons.loadBalancer.values": _addon("loadBalancer", "values", {"a": 1}, version="1"),
    "TenantCluster.spec.addons.storage.provider": _addon("storage", "provider", "linstor", version="1"),
    "TenantCluster.spec.addons.storage.version": _addon("storage", "version", "2", version="1"),
    "TenantCluster.spec.addons.storage.values": _addon("storage", "values", {"a": 1}, version="1"),
    "TenantCluster.spec.addons.ingress.enabled": _addon("ingress", "enabled", False),
    "TenantCluster.spec.addons.ingress.provider": _addon("ingress", "provider", "nginx"),
    "TenantCluster.spec.addons.ingress.version": _addon("ingress", "version", "2"),
    "TenantCluster.spec.addons.ingress.values": _addon("ingress", "values", {"a": 1}),
    "TenantCluster.spec.addons.gitops.provider": _addon("gitops", "provider", "argocd"),
    "TenantCluster.spec.addons.gitops.version": _addon("gitops", "version", "2"),
    "TenantCluster.spec.addons.gitops.repository.url": _repository("url", "https://git.example.com/b"),
    "TenantCluster.spec.addons.gitops.repository.branch": _repository("branch", "next"),
    "TenantCluster.spec.addons.gitops.repository.path": _repository("path", "clusters/shop"),
    "TenantCluster.spec.addons.gitops.repository.secretRef.name": _repository("secretRef", {"name": "git"}),
}
