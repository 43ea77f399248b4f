"""Who holds what, for the checks: every live allocation and every grant under way, read once. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, range_text
from butler.ipam.granted import comes_back
from butler.ipam.layout import InvalidPool, pool_layout
from butler.reports.fsck.finding import Thing
from butler.rules.allocation.held import pool_key, readable_range
from butler.rules.allocation.owner import recorded_owner, tenant_key
from butler.rules.pool.holdings import LiveAllocations, holding_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from butler.api.ipallocation import IPAllocation, IPAllocationType
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.layout import PoolLayout
    from butler.reports.estate import Estate


@dataclass(frozen=True, slots=True)
class Books:
    """An estate, sorted for questions."""

    estate: Estate
    by_uid: Mapping[str, IPAllocation]
    by_tenant: Mapping[Key, list[IPAllocation]]
    live: LiveAllocations
    """What each allocation holds, by its UID."""
    senseless: Mapping[str, str]
    """Why what an allocation holds cannot be told, by its UID."""
    layouts: Mapping[str, PoolLayout | InvalidPool]
    """By the name of the pool."""
    coming_back: tuple[IPAllocation, ...] = ()
    """Those that wait for addresses that they had before, which pools keep for them."""

    def pool_of(self, allocation: IPAllocation) -> NetworkPool | None:
        return self.estate.pool(allocation.spec.pool_ref.name)

    def held_by(self, cluster: TenantCluster, type_: IPAllocationType) -> list[tuple[IPAllocation, Range]]:
        """What belongs to this very cluster, or was made for it before it was seen; in order of address."""
        found = [
            (allocation, held[1])
            for allocation in self.by_tenant.get(key_of(cluster), ())
            if allocation.spec.type is type_
            and recorded_owner(allocation) in (None, cluster.metadata.uid)
            and (held := readable_range(allocation)) is not None
            and held[0] is Family.V4
        ]
        return sorted(found, key=lambda pair: pair[1])

    def holder(self, address: int) -> IPAllocation | None:
        """The allocation that holds an IPv4 address."""
        for uid, holding in self.live.items():
            if holding.family is Family.V4 and holding.range.first <= address <= holding.range.last:
                return self.by_uid[uid]
        return None

    def hands_out(self, address: int) -> str | None:
        """The pool that hands out an IPv4 address."""
        for name, layout in self.layouts.items():
            if not isinstance(layout, InvalidPool) and any(
                span.first <= address <= span.last for span in layout.usable
            ):
                return name
        return None

    def hand_out_of(self, addresses: Range) -> list[str]:
        """The pools that hand out any of these IPv4 addresses."""
        return [
            name
            for name, layout in self.layouts.items()
            if not isinstance(layout, InvalidPool)
            and layout.family is Family.V4
            and any(span.overlaps(addresses) for span in layout.usable)
        ]


def read_books(estate: Estate) -> Books:
    live = LiveAllocations()
    senseless: dict[str, str] = {}
    by_tenant: dict[Key, list[IPAllocation]] = {}
    for allocation in estate.allocations:
        by_tenant.setdefault(tenant_key(allocation), []).append(allocation)
        try:
            holding = holding_of(allocation)
        except BadAddress as error:
            senseless[allocation.metadata.uid] = str(error)
            continue
        if holding is not None:
            live.add(allocation.metadata.uid, holding)
    return Books(
        estate,
        {item.metadata.uid: item for item in estate.allocations},
        by_tenant,
        live,
        senseless,
        {pool.metadata.name: _layout(pool) for pool in estate.pools},
        tuple(filter(comes_back, estate.allocations)),
    )


def _layout(pool: NetworkPool) -> PoolLayout | InvalidPool:
    try:
        return pool_layout(pool)
    except InvalidPool as invalid:
        return invalid


def pool_thing(pool: NetworkPool) -> Thing:
    return Thing("NetworkPool", pool.metadata.name, pool.metadata.namespace)


def allocation_thing(allocation: IPAllocation) -> Thing:
    return Thing("IPAllocation", allocation.metadata.name, allocation.metadata.namespace)


def cluster_thing(cluster: TenantCluster) -> Thing:
    return Thing("TenantCluster", cluster.metadata.name, cluster.metadata.namespace)


def tenants_of(*allocations: IPAllocation) -> frozenset[str]:
    return frozenset(str(tenant_key(allocation)) for allocation in allocations)


def pools_of(*allocations: IPAllocation) -> frozenset[str]:
    return frozenset(pool_key(allocation).name for allocation in allocations)


def ranges_text(ranges: Iterable[Range]) -> str:
    return ", ".join(range_text(span, Family.V4) for span in ranges)


def counted(count: int, noun: str = "address", plural: str = "") -> str:
    """`1 address`, `3 addresses`."""
    return f"{count} {noun if count == 1 else plural or noun + ('es' if noun.endswith('s') else 's')}"
