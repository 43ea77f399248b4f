"""The caches that the controllers of clusters and of load balancers share, and the questions asked of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from butler.api.ipallocation import IPAllocation, IPAllocationPhase
from butler.api.labels import Label
from butler.api.meta import TeamReference
from butler.api.objects import Key, is_being_deleted, key_of
from butler.ipam.requests import read_unbuilt_tenant
from butler.rules.allocation.owner import is_taken_over, named_owners, owner_lives, tenant_key
from butler.rules.blocked import Blocked
from butler.rules.pool.tenant_blocks import is_block_of_a_tenant
from butler.rules.tenant.addons import belongs_to
from butler.rules.tenant.provider import provider_key, resolve
from butler.rules.tenant.status import endpoint_url
from butler.rules.tenant.status_urgency import A_FEW, is_on_its_way
from butler.rules.tenant_namespace import tenant_namespace

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantaddon import TenantAddon
    from butler.api.tenantcluster import TenantCluster
    from butler.kube.cache import Cache
    from butler.providers.teams import Teams
    from butler.rules.tenant.blueprint import Endpoint

BY_NAMESPACE: Final = "clusters by tenant namespace"
BY_PROVIDER: Final = "clusters by named provider"
BY_HOME: Final = "clusters by the namespace they are declared in"
BY_UID: Final = "clusters by uid"
BY_NAME: Final = "clusters by name"
ON_THEIR_WAY: Final = "clusters on their way"
BY_CLUSTER: Final = "allocations and addons by cluster"
BLOCKS: Final = "blocks of unbuilt clusters, by the cluster's UID"
REFUSED_BLOCKS: Final = "refused blocks of unbuilt clusters"
CALM_EACH: Final = 0.01
CALMEST: Final = 1.0
"""Seconds for which changes of a cluster are collected, for each that is being built beyond a few; and at most."""


@dataclass(frozen=True, slots=True)
class Views:
    """What is known about Butler's own kinds."""

    clusters: Cache[TenantCluster]
    providers: Cache[ProviderConfig]
    pools: Cache[NetworkPool]
    allocations: Cache[IPAllocation]
    addons: Cache[TenantAddon]
    home: str
    teams: Teams
    endpoints: dict[str, str] = field(default_factory=dict)
    """Where API servers of clusters are, by UID, by the word of Cluster API and until their statuses say so."""

    def add_indexes(self) -> None:
        """Make the questions below cheap."""
        self.teams.add_index()
        self.clusters.index(BY_NAMESPACE, lambda cluster: [tenant_namespace(cluster)])
        self.clusters.index(BY_PROVIDER, lambda cluster: [provider_key(cluster, self.home)])
        self.clusters.index(BY_HOME, lambda cluster: [cluster.metadata.namespace])
        self.clusters.index(BY_UID, lambda cluster: [cluster.metadata.uid])
        self.clusters.index(BY_NAME, lambda cluster: [cluster.metadata.name])
        self.clusters.index(ON_THEIR_WAY, lambda cluster: [True] if is_on_its_way(cluster) else [])
        self.allocations.index(BY_CLUSTER, lambda allocation: [tenant_key(allocation)])
        self.allocations.index(BLOCKS, lambda block: [_tenant(block)] if is_block_of_a_tenant(block) else [])
        self.allocations.index(
            REFUSED_BLOCKS,
            _refused_block,
        )
        self.addons.index(BY_CLUSTER, lambda addon: [Key(addon.metadata.namespace, addon.spec.cluster_ref.name)])

    def all_providers(self) -> dict[Key, ProviderConfig]:
        return {key_of(provider): provider for provider in self.providers.values()}

    def pools_by_name(self) -> dict[str, NetworkPool]:
        return {pool.metadata.name: pool for pool in self.pools.values() if pool.metadata.namespace == self.home}

    def allocations_for(self, cluster: TenantCluster) -> list[IPAllocation]:
        """Those that were made for this cluster, by itself or by a person ahead of it; not those of a namesake."""
        named = self.allocations.by(BY_CLUSTER, key_of(cluster))
        return [allocation for allocation in named if owner_lives(allocation, cluster)]

    def usable_by(self, cluster: TenantCluster) -> list[IPAllocation]:
        """Those of them that the cluster may use: what came back from a backup may be in use elsewhere."""
        return [allocation for allocation in self.allocations_for(cluster) if is_taken_over(allocation, cluster)]

    def allocations_of(self, cluster: TenantCluster) -> list[IPAllocation]:
        """Those that surely belong to this very cluster, and go with it."""
        named = self.allocations.by(BY_CLUSTER, key_of(cluster))
        return [allocation for allocation in named if cluster.metadata.uid in named_owners(allocation)]

    def younger_halves_hold(self, cluster: TenantCluster, pool: str | None) -> bool:
        """Whether a younger cluster holds a block from a pool while its other block is refused.

        Looks at all clusters that wait, and only where one of them holds a single block.
        """
        age = (cluster.metadata.creation_timestamp, cluster.metadata.uid)
        for refused in self.allocations.by(REFUSED_BLOCKS, True):
            tenant = read_unbuilt_tenant(refused)
            if tenant is None or (tenant.created, tenant.uid) <= age:
                continue
            if any(
                block.status.phase is IPAllocationPhase.ALLOCATED and block.spec.pool_ref.name == pool
                for block in self.allocations.by(BLOCKS, tenant.uid)
            ):
                return True
        return False

    def is_allocation(self, name: str) -> bool:
        return Key(self.home, name) in self.allocations

    def on_their_way(self) -> int:
        """How many clusters are being built, or wait for their turn."""
        return self.clusters.count(ON_THEIR_WAY, True)

    def calm(self, key: Key) -> float:
        """Seconds for which changes of a cluster are collected before it is looked at.

        A cluster that is being built changes some sixty times, and a few looks would do. Where only a few are built,
        each goes on at once; of many, all wait for the same processors, and each look less is a gain for all.
        """
        cluster = self.clusters.get(key)
        if cluster is None or cluster.status.tenant_namespace is None or not is_on_its_way(cluster):
            return 0.0
        return min(max(0, self.on_their_way() - A_FEW) * CALM_EACH, CALMEST)

    def endpoint_of(self, uid: str) -> str | None:
        """Where the API server of the cluster with this UID is."""
        found = next(iter(self.clusters.by(BY_UID, uid)), None)
        said = found.status.control_plane_endpoint if found is not None else None
        return said or self.endpoints.get(uid)

    def note_endpoint(self, cluster: TenantCluster, endpoint: Endpoint | None) -> None:
        """The status tells it with the next thing worth a write; who talks to the tenant need not wait for that."""
        if cluster.status.control_plane_endpoint is not None:
            self.endpoints.pop(cluster.metadata.uid, None)
        elif endpoint is not None:
            self.endpoints[cluster.metadata.uid] = endpoint_url(endpoint)

    def team_of(self, cluster: TenantCluster) -> str:
        """The team of a cluster, which is that of its namespace; empty when it has none."""
        return self.teams.of(cluster.metadata.namespace)

    def in_its_team(self, cluster: TenantCluster) -> TenantCluster:
        """The cluster with the team that it really has in place of the one that its author wrote."""
        team = self.team_of(cluster)
        reference = TeamReference(name=team) if team else None
        if cluster.spec.team_ref == reference:
            return cluster
        return msgspec.structs.replace(cluster, spec=msgspec.structs.replace(cluster.spec, team_ref=reference))

    def addons_of(self, cluster: TenantCluster) -> list[TenantAddon]:
        return [addon for addon in self.addons.by(BY_CLUSTER, key_of(cluster)) if belongs_to(addon, cluster)]

    def of_the_same_team(self, cluster: TenantCluster, provider: ProviderConfig) -> list[TenantCluster]:
        """The team's other clusters on the same provider, as far as they stay."""
        wanted = key_of(provider)
        namespaces = self.teams.namespaces(self.team_of(cluster)) or [cluster.metadata.namespace]
        found = (other for namespace in namespaces for other in self._others(BY_HOME, namespace, cluster))
        staying = [other for other in found if not is_being_deleted(other)]
        return [other for other, placed in self._placed(staying) if key_of(placed) == wanted]

    def namesakes(self, cluster: TenantCluster, provider: ProviderConfig) -> list[TenantCluster]:
        """Other clusters of the same name on the same platform, those that are going included."""
        platform = provider.spec.provider
        same = self._placed(self._others(BY_NAME, cluster.metadata.name, cluster))
        return [other for other, placed in same if placed.spec.provider is platform]

    def _others(self, index: str, value: Hashable, cluster: TenantCluster) -> list[TenantCluster]:
        return [other for other in self.clusters.by(index, value) if other.metadata.uid != cluster.metadata.uid]

    def _placed(self, clusters: Iterable[TenantCluster]) -> list[tuple[TenantCluster, ProviderConfig]]:
        everything = self.all_providers()
        found = ((cluster, resolve(cluster, everything, self.home, self.team_of(cluster))) for cluster in clusters)
        return [(other, placed) for other, placed in found if not isinstance(placed, Blocked)]

    def declared_in(self, namespace: str) -> list[Key]:
        """The clusters that people declared in a namespace."""
        return [key_of(cluster) for cluster in self.clusters.by(BY_HOME, namespace)]

    def is_coming_up(self, namespace: str) -> bool:
        """Whether this is the namespace of a cluster that comes up."""
        return any(is_on_its_way(cluster) for cluster in self.clusters.by(BY_NAMESPACE, namespace))

    def in_namespace(self, namespace: str) -> list[Key]:
        """The cluster whose tenant namespace this is."""
        return [key_of(cluster) for cluster in self.clusters.by(BY_NAMESPACE, namespace)]


def _refused_block(allocation: IPAllocation) -> list[bool]:
    refused = allocation.status.phase is IPAllocationPhase.FAILED and is_block_of_a_tenant(allocation)
    return [True] if refused else []


def _tenant(allocation: IPAllocation) -> str:
    return allocation.metadata.labels[Label.TENANT_UID]
