"""Addresses of pools that Services of tenants show without a grant: they are not handed out meanwhile.

A tenant's MetalLB is the tenant's: with an address pool of its own it announces what it likes. The controller of load
balancers sees what Services show, and writes into the TenantCluster's status which of it is an address of a pool
that the tenant does not hold. Here these addresses are kept from being granted to others, because two clusters must
not answer for one address. A tenant whose own request pins such an address gets it: that is how a running estate is
taken over.

A tenant cannot block a pool that way: `MOST_FOREIGN` addresses of a tenant count, and `MOST_WITHHELD` of a pool. What
goes beyond is told, and granted like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from butler.api.meta import NamespacedObjectReference
from butler.api.networkpool import MOST_WITHHELD, ForeignAddress
from butler.api.objects import Key, key_of
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_address, parse_range
from butler.ipam.granted import BadRecord, wanted_range
from butler.ipam.range_index import RangeIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Change
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.free_space import FreeSpace


class Shown(NamedTuple):
    """A Service of a tenant shows an address that the tenant does not hold."""

    address: int
    tenant: Key
    family: Family = Family.V4

    @property
    def range(self) -> Range:
        return Range(self.address, self.address)

    @property
    def holder(self) -> str:
        """Who stands in the way, for a refusal."""
        return f"a Service of TenantCluster {self.tenant} (not allocated to it)"


def shown_by(cluster: TenantCluster | None) -> list[Shown]:
    """What a TenantCluster's status says of its Services. Pure."""
    if cluster is None or cluster.status.load_balancers is None:
        return []
    return _read((text, key_of(cluster)) for text in cluster.status.load_balancers.foreign_addresses)


def shown_in(pool: NetworkPool) -> list[Shown]:
    """What a pool withholds, by its status. Pure."""
    found = pool.status.foreign_addresses
    return _read(
        (
            foreign_address.address,
            Key(foreign_address.tenant_cluster_ref.namespace, foreign_address.tenant_cluster_ref.name),
        )
        for foreign_address in found
    )


def _read(pairs: Iterable[tuple[str, Key]]) -> list[Shown]:
    found = []
    for text, tenant in pairs:
        try:
            family, value = parse_address(text)
        except BadAddress:
            continue
        found.append(Shown(value, tenant, family))
    return found


def withheld(shown: Iterable[Shown], asking: Sequence[IPAllocation], free: FreeSpace) -> list[Shown]:
    """Those that a decision must leave alone: free, and not asked for by the tenant itself. Pure."""
    found: dict[int, Shown] = {}
    for item in sorted(shown):
        if item.address in found or not free.is_free(item.range):
            continue
        if not any(_takes_over(item, request, free) for request in asking):
            found[item.address] = item
    return list(found.values())[:MOST_WITHHELD]


def _takes_over(shown: Shown, request: IPAllocation, free: FreeSpace) -> bool:
    """Whether a tenant asks for the very address that its Service shows, and can have all that it asks for."""
    tenant = request.spec.tenant_cluster_ref
    try:
        pinned = wanted_range(request)
    except BadRecord:
        return False
    if pinned is None or Key(tenant.namespace, tenant.name) != shown.tenant:
        return False
    try:
        family, wanted = parse_range(pinned.start_address, pinned.end_address)
    except BadAddress:
        return False
    return family is shown.family and wanted.contains(shown.range) and free.is_free(wanted)


def as_told(shown: Iterable[Shown]) -> tuple[ForeignAddress, ...]:
    """As a pool's status says it. Pure."""
    return tuple(
        ForeignAddress(
            address=address_text(item.address, item.family),
            tenant_cluster_ref=NamespacedObjectReference(name=item.tenant.name, namespace=item.tenant.namespace),
        )
        for item in shown
    )


class ForeignAddresses:
    """All of them, found by address; kept in step with the cache of TenantClusters."""

    def __init__(self) -> None:
        self._by_address = {family: RangeIndex[Key]() for family in Family}

    def changed(self, change: Change[TenantCluster]) -> None:
        """Take in what the cache reports."""
        before, after = set(shown_by(change.old)), set(shown_by(change.new))
        for shown in before - after:
            self._by_address[shown.family].remove(shown.range, shown.tenant)
        for shown in after - before:
            self._by_address[shown.family].add(shown.range, shown.tenant)

    def within(self, family: Family, addresses: Range) -> list[Shown]:
        """Those in a range, lowest first."""
        return [Shown(found.first, tenant, family) for found, tenant in self._by_address[family].touching(addresses)]
