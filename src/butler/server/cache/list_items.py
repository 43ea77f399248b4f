"""List items of allocations, tenants and what happened, kept up to date as changes come."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Final

from butler.api.ipallocation import IPAllocation
from butler.api.objects import Change, Json, Key, key_of
from butler.api.providerconfig import ProviderConfig
from butler.api.tenantcluster import TenantCluster
from butler.ipam.addresses import BadAddress, parse_address
from butler.kube.recent_results import RecentResults
from butler.rules.provider.placement import placement
from butler.server.cache.cluster_state import MOST_EVENTS, ClusterState, StateChange
from butler.server.cache.sorted_list import SortedList
from butler.server.models.activity import ActivityItem
from butler.server.models.allocations import AllocationItem
from butler.server.models.tenants import TenantItem
from butler.server.permissions import Namespaces, is_in
from butler.server.presenters.activity import activity_item
from butler.server.presenters.allocations import allocation_item
from butler.server.presenters.tenants import tenant_item

BY_TENANT: Final = "tenant"
SETTLED: Final = 15.0
"""Seconds without a change after which a pool's own counters have to be right."""


def _when(at: datetime | None) -> float | None:
    return at.timestamp() if at else None


def in_pool(pool: str) -> str:
    """The group of the allocations that ask a pool."""
    return f"pool {pool}"


def of_tenant(tenant: str) -> str:
    """The group of the allocations of `namespace/name`."""
    return f"tenant {tenant}"


def in_phase(phase: str) -> str:
    return f"phase {phase}"


def address_of(text: str | None) -> int | None:
    """An address as a number; None where there is none. Only IPv4 is ever granted, so numbers tell all apart."""
    try:
        return parse_address(text)[1] if text else None
    except BadAddress:
        return None


ALLOCATION_SORTS: Final[dict[str, Callable[[AllocationItem], str | int | float | None]]] = {
    "name": lambda allocation: allocation.name,
    "pool": lambda allocation: allocation.pool,
    "tenant": lambda allocation: f"{allocation.tenant_namespace}/{allocation.tenant}",
    "type": lambda allocation: allocation.type,
    "phase": lambda allocation: allocation.phase,
    "state": lambda allocation: allocation.state,
    "start": lambda allocation: address_of(allocation.start),
    "count": lambda allocation: allocation.count,
    "createdAt": lambda allocation: _when(allocation.created_at),
    "allocatedAt": lambda allocation: _when(allocation.allocated_at),
    "idleSince": lambda allocation: _when(allocation.idle_since),
    "releasedAt": lambda allocation: _when(allocation.released_at),
}


def _allocation_text(item: AllocationItem) -> str:
    owner = f"{item.tenant_namespace}/{item.tenant}"
    return f"{item.namespace}/{item.name} {owner} {item.pool} {item.start or ''}-{item.end or ''}"


def _activity_text(item: ActivityItem) -> str:
    about = f"{item.about.kind} {item.about.namespace}/{item.about.name}" if item.about else ""
    return f"{about} {item.reason} {item.message} {item.source} {item.actor}"


class ListItems:
    """Build it before the operator runs, as it watches the state."""

    def __init__(self, state: ClusterState, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._state = state
        self._clock = clock
        self.allocations: SortedList[AllocationItem] = SortedList(ALLOCATION_SORTS, _allocation_text)
        self.activity: SortedList[ActivityItem] = SortedList({"at": lambda event: event.at.timestamp()}, _activity_text)
        self.drift = RecentResults(10.0)
        """What tenants said when all of them were asked, by who asked."""
        self._ranges: dict[Key, tuple[int, int]] = {}
        self._tenants: dict[tuple[str, bool, bool], TenantItem] = {}
        self._changed: dict[str, float] = {}
        self._clusters_on: dict[Key, list[str]] | None = None
        state.allocations.index(BY_TENANT, lambda allocation: (_tenant(allocation),))
        state.on_change(self._moved)

    # Reading.

    def allocations_of(self, tenant: str) -> list[IPAllocation]:
        """All that name a tenant, `namespace/name`, in whatever phase."""
        return self._state.allocations.by(BY_TENANT, tenant)

    def touching(self, first: int, last: int) -> list[Key]:
        """The allocations that hold, held or insist on some of these addresses."""
        return [key for key, (begin, end) in self._ranges.items() if begin <= last and first <= end]

    def tenant(self, cluster: TenantCluster, *, allocations: bool, providers: Namespaces) -> TenantItem:
        """A tenant as lists and the stream show it to a user who may read allocations or not, and the providers of
        these namespaces."""
        name, provider = str(key_of(cluster)), self.provider_of(cluster, providers)
        found = self._tenants.get((name, allocations, provider is not None))
        if found is None or found.resource_version != cluster.metadata.resource_version:
            own = self.allocations_of(name) if allocations else None
            found = tenant_item(cluster, own, provider, self._state.home)
            self._tenants[name, allocations, provider is not None] = found
        return found

    def provider_of(self, cluster: TenantCluster, namespaces: Namespaces = None) -> ProviderConfig | None:
        """The ProviderConfig that a cluster is on, where there is one, in one of these namespaces."""
        keys = self._state.of_all(
            "keys of providers", lambda: {key_of(provider) for provider in self._state.providers.values()}
        )
        key = placement(cluster, keys, self._state.home)
        return self._state.providers.get(key) if key and is_in(key.namespace, namespaces) else None

    def tenants_of(self, provider: Key) -> list[str]:
        """The clusters on a provider, as `namespace/name`, sorted."""
        if self._clusters_on is None:
            self._clusters_on = {}
            for cluster in sorted(self._state.clusters.values(), key=key_of):
                on = self.provider_of(cluster)
                if on is not None:
                    self._clusters_on.setdefault(key_of(on), []).append(str(key_of(cluster)))
        return self._clusters_on.get(provider, [])

    def is_settled(self, pool: str) -> bool:
        """Whether nothing about a pool has changed for a while."""
        return self._clock() - self._changed.get(pool, 0.0) > SETTLED

    # Following.

    def _moved(self, moved: StateChange) -> None:
        now = self._clock()
        self._changed.update(dict.fromkeys(moved.pools, now))
        if moved.kind == "allocation":
            self._allocation(moved.change)
        elif moved.kind == "activity":
            self._event(moved.change)
        elif moved.kind == "tenant":
            self._clusters_on = None
        elif moved.kind == "provider":
            self._clusters_on = None
            self._tenants.clear()
        for name in moved.tenants:
            for allocations in (True, False):
                for providers in (True, False):
                    self._tenants.pop((name, allocations, providers), None)

    def _allocation(self, change: Change[IPAllocation]) -> None:
        self._ranges.pop(change.key, None)
        if change.new is None:
            self.allocations.drop(change.key)
            return
        item = allocation_item(change.new)
        first, last = address_of(item.start), address_of(item.end)
        if first is not None and last is not None:
            self._ranges[change.key] = (first, last)
        groups = (
            in_pool(change.new.spec.pool_ref.name),
            of_tenant(_tenant(change.new)),
            in_phase(change.new.status.phase.value),
        )
        self.allocations.put(change.key, item, groups)

    def _event(self, change: Change[Json]) -> None:
        item = activity_item(change.new) if change.new is not None else None
        if item is None:
            self.activity.drop(change.key)
            return
        self.activity.put(change.key, item)
        if len(self.activity) > MOST_EVENTS and (oldest := self.activity.first("at")) is not None:
            self.activity.drop(oldest)


def _tenant(allocation: IPAllocation) -> str:
    reference = allocation.spec.tenant_cluster_ref
    return f"{reference.namespace}/{reference.name}"
