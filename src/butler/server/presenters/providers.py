"""Providers as the API shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from butler.api.networkpool import NetworkPool
from butler.api.providerconfig import NetworkMode, ProviderConfig
from butler.ipam.estimate import in_order
from butler.kube.kinds import PROVIDERS
from butler.reports.provider.summary import provider_view
from butler.server.models.providers import ProviderDetail, ProviderItem, ProviderPool
from butler.server.presenters.common import condition
from butler.server.presenters.manifest import as_yaml, written


def provider_item(config: ProviderConfig, tenants: int) -> ProviderItem:
    """`tenants`: how many clusters on it the person may see."""
    meta, network, capacity = config.metadata, config.spec.network, config.status.capacity
    found = provider_view(config, (), None, None, (), meta.namespace)
    sizes = network.load_balancer
    return ProviderItem(
        namespace=meta.namespace,
        name=meta.name,
        provider=config.spec.provider.value,
        mode=network.mode.value,
        ready=bool(found.ready),
        problem=found.why,
        allocation_mode=sizes.allocation_mode.value if sizes else "static" if network.mode is NetworkMode.IPAM else "",
        pools=[reference.name for reference in in_order(network.pool_refs)],
        tenants=tenants,
        available=capacity.available_ips if capacity else None,
        estimated_tenants=found.room,
        created_at=meta.creation_timestamp,
        resource_version=meta.resource_version,
    )


def provider_detail(
    config: ProviderConfig, pools: Mapping[str, NetworkPool] | None, tenants: Iterable[str]
) -> ProviderDetail:
    """`pools` is None where they may not be read: then all are taken to be there. `tenants` are those to be seen."""
    on_it = list(tenants)
    found = provider_view(config, (pools or {}).values(), None, None, (), config.metadata.namespace)
    return ProviderDetail(
        provider=provider_item(config, len(on_it)),
        pools=[
            ProviderPool(
                name=pool.name,
                priority=pool.priority,
                purpose=pool.purpose,
                exists=pools is None or pool.pool is not None,
                gateway=pool.gateway,
            )
            for pool in found.pools
        ],
        scope=_scope(config),
        quotas=list(_quotas(config)),
        conditions=[condition(found) for found in config.status.conditions],
        tenants=on_it,
        yaml=as_yaml(written(config, PROVIDERS)),
    )


def _scope(config: ProviderConfig) -> str:
    scope = config.spec.scope
    return f"team {scope.team_ref.name}" if scope.team_ref else scope.type.value


def _quotas(config: ProviderConfig) -> Iterator[str]:
    quota, limits = config.spec.network.quota_per_tenant, config.spec.limits
    for most, what in (
        (quota.max_node_ips if quota else None, "node addresses for each tenant"),
        (quota.max_load_balancer_ips if quota else None, "load-balancer addresses for each tenant"),
        (limits.max_clusters_per_team if limits else None, "clusters for each team"),
        (limits.max_nodes_per_team if limits else None, "workers for each team"),
    ):
        if most is not None:
            yield f"at most {most} {what}"
