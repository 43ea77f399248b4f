"""What the live stream says of a change: which objects look different after it, and how each looks now.

Items are those of the lists, made by the same functions. A change of an allocation changes the counters of its pools
and what its tenant has; one of a tenant changes how many a provider has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from butler.api.objects import Key, key_of
from butler.api.tenantcluster import TenantCluster
from butler.server.cache import pool_summaries
from butler.server.cache.cluster_state import ClusterState, StateChange
from butler.server.cache.list_items import ListItems
from butler.server.models.common import Model
from butler.server.permissions import is_in
from butler.server.presenters.activity import activity_item
from butler.server.presenters.providers import provider_item
from butler.server.stream.changes import Touch
from butler.server.stream.permissions import StreamPermissions


async def item(state: ClusterState, list_items: ListItems, touch: Touch, seen: StreamPermissions) -> Model | None:
    """How an object looks in a user's lists by now; None when it is gone."""
    key = touch.key
    if touch.kind == "pool":
        pool = state.pools.get(key)
        where = seen.where("provider")
        return await pool_summaries.item(state, pool, providers=where, exactly=True) if pool else None
    if touch.kind == "allocation":
        return list_items.allocations.get(key)
    if touch.kind == "activity":
        return list_items.activity.get(key)
    if touch.kind == "tenant":
        cluster = state.clusters.get(key)
        allocations = seen.where("allocation") is None
        return (
            list_items.tenant(cluster, allocations=allocations, providers=seen.where("provider")) if cluster else None
        )
    provider = state.providers.get(key)
    return provider_item(provider, _tenants_on(list_items, key, seen)) if provider else None


def _tenants_on(list_items: ListItems, provider: Key, seen: StreamPermissions) -> int:
    where = seen.where("tenant")
    return sum(is_in(tenant.partition("/")[0], where) for tenant in list_items.tenants_of(provider))


def touched(state: ClusterState, list_items: ListItems, moved: StateChange) -> Iterator[Touch]:
    """The object itself, then those that show something of it."""
    old, new = moved.change.old, moved.change.new
    if moved.kind == "activity" and not any(event is not None and activity_item(event) for event in (old, new)):
        return  # about something that is none of Butler's
    yield Touch(moved.kind, moved.change.key, moved.pools, moved.tenants)
    if moved.kind == "allocation":
        yield from (_pool(state, name) for name in sorted(moved.pools))
        yield from (_tenant(name) for name in sorted(moved.tenants))
    elif moved.kind == "tenant":
        for config in {
            key_of(found) for cluster in (old, new) if cluster and (found := list_items.provider_of(cluster))
        }:
            yield Touch("provider", config, tenants=moved.tenants, itself=False)
    elif moved.kind == "provider" and (old is None or new is None or old.spec != new.spec):
        yield from (_pool(state, name) for name in sorted(_pools_of(old) | _pools_of(new)))
        # Where a cluster goes that names no provider depends on all of them.
        clusters: list[TenantCluster] = state.clusters.values()
        yield from (_tenant(str(key_of(cluster))) for cluster in clusters)


def _pool(state: ClusterState, name: str) -> Touch:
    return Touch("pool", Key(state.home, name), pools=frozenset({name}))


def _tenant(name: str) -> Touch:
    return Touch("tenant", Key(*name.split("/", 1)), tenants=frozenset({name}))


def _pools_of(provider: Any) -> set[str]:
    return set() if provider is None else {pool_ref.name for pool_ref in provider.spec.network.pool_refs}
