"""Whose an address is: the pool it lies in and what that pool says of it, who holds it, who had it, who waits for it.

The same for a range, cut where the answer changes. What is drawn of a pool here is what `views.segments` draws, so
this and the map cannot disagree. Released allocations are kept for a day, and so long they are remembered here. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType, Label
from butler.api.objects import key_of
from butler.ipam.addresses import BadAddress, Family, Range, address_text, parse_network, parse_range, range_text
from butler.ipam.range_difference import without
from butler.reports.exchange.import_check import nearest
from butler.reports.pool.segments import HELD, Kind, segments_of
from butler.rules.allocation.held import granted_range, readable_range
from butler.rules.allocation.owner import owner_lives, recorded_owner, tenant_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.api.objects import Key
    from butler.reports.estate import Estate

NOWHERE = "in no pool"


class TenantIs(StrEnum):
    """Whether the TenantCluster that an allocation was made for is there.

    Only of one that was seen can Butler say that it is gone. An allocation may be for a cluster that Butler does not
    manage: imported with its addresses, or prepared ahead. Nothing may then be concluded about who uses them.
    """

    EXISTS = "exists"
    GONE = "gone"
    REPLACED = "replaced"
    UNSEEN = "unseen"

    @property
    def words(self) -> str:
        """In words that stand beside the tenant's name."""
        return _STANDING[self]


_STANDING = {
    TenantIs.EXISTS: "exists",
    TenantIs.GONE: "does not exist any more",
    TenantIs.REPLACED: "was replaced by another of that name",
    TenantIs.UNSEEN: "never seen by Butler",
}


@dataclass(frozen=True, slots=True)
class AddressOwner:
    """An allocation with some of the addresses: now, before, or perhaps one day."""

    allocation: str
    tenant: Key
    tenant_is: TenantIs
    """Whether its TenantCluster is there."""
    type: str
    role: str
    pool: str
    addresses: Range
    phase: str
    since: datetime | None
    idle_since: datetime | None
    draining_since: datetime | None
    released_at: datetime | None
    why: str
    """What its Ready condition says, where it is not Allocated."""


@dataclass(frozen=True, slots=True)
class AddressPlace:
    """Addresses about which one thing is to be said."""

    addresses: Range
    pool: str | None
    kind: str
    """As the segments of a pool have it, or `in no pool`."""
    description: str = ""
    owners: tuple[AddressOwner, ...] = ()
    stranded: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """All that the management cluster knows."""

    family: Family
    asked: Range
    places: tuple[AddressPlace, ...]
    earlier: tuple[AddressOwner, ...]
    """Those that had some of the addresses, the latest first."""
    wanted: tuple[AddressOwner, ...]
    """Requests that insist on some of them, and wait."""
    pools: tuple[tuple[str, str], ...]
    """Name and network of each pool with some of them."""
    nearest: tuple[str, str] | None
    """The same of the nearest pool, where no pool has any."""
    known_as: tuple[str, ...]
    """What else is known by one of these addresses."""

    @property
    def text(self) -> str:
        return range_text(self.asked, self.family)

    @property
    def is_known(self) -> bool:
        """Whether any of them is on record anywhere."""
        return bool(self.pools or self.earlier or self.wanted or self.known_as or self.owners)

    @property
    def owners(self) -> list[AddressOwner]:
        """Who holds some of them now, in order of address."""
        return list(dict.fromkeys(owner for place in self.places for owner in place.owners))


def read_asked(text: str) -> tuple[Family, Range]:
    """An address, `start-end` or a network. Raises BadAddress."""
    if "/" in text:
        return parse_network(text)
    start, dash, end = text.partition("-")
    return parse_range(start.strip(), end.strip() if dash else start.strip())


def who(estate: Estate, family: Family, asked: Range) -> Answer:
    """What is known of these addresses."""
    networks = [(network, pool) for pool in estate.pools for network in _network(pool, family)]
    touched = [pool for network, pool in networks if network.overlaps(asked)]
    near = None if touched or family is not Family.V4 else nearest(asked, networks)
    by_name = {allocation.metadata.name: allocation for allocation in estate.allocations}
    places = [place for pool in touched for place in _places(pool, asked, by_name, estate)]
    places += _nowhere(asked, family, [place.addresses for place in places], estate)
    overlapping = [
        (allocation, found) for allocation in estate.allocations for found in _granted(allocation, family, asked)
    ]
    earlier = [
        _owner(allocation, found, estate) for allocation, found in overlapping if readable_range(allocation) is None
    ]
    return Answer(
        family,
        asked,
        tuple(sorted(places, key=lambda item: (item.addresses, item.pool or ""))),
        tuple(sorted(earlier, key=lambda owner: str(owner.released_at or owner.since), reverse=True)),
        tuple(_wanted(estate, family, asked)),
        tuple((pool.metadata.name, pool.spec.cidr) for pool in touched),
        (near.metadata.name, near.spec.cidr) if near else None,
        tuple(_known_as(estate, family, asked)),
    )


def _network(pool: NetworkPool, family: Family) -> Iterator[Range]:
    try:
        other, network = parse_network(pool.spec.cidr)
    except BadAddress:
        return
    if other is family:
        yield network


def _places(
    pool: NetworkPool, asked: Range, by_name: dict[str, IPAllocation], estate: Estate
) -> Iterator[AddressPlace]:
    for segment in segments_of(pool, estate.allocations).within(asked).segments:
        owners = []
        for holder in segment.holders:
            allocation = by_name.get(holder.allocation)
            if allocation is not None:
                found = granted_range(allocation)
                owners.append(_owner(allocation, found[1] if found else segment.range, estate))
        yield AddressPlace(
            segment.range, pool.metadata.name, segment.kind.value, segment.description, tuple(owners), segment.stranded
        )


def _nowhere(asked: Range, family: Family, seen: Iterable[Range], estate: Estate) -> Iterator[AddressPlace]:
    """The parts that no pool has; some may be held all the same, from a pool that is gone."""
    held = sorted(
        (found[1], item.metadata.name, item)
        for item in estate.allocations
        if (found := readable_range(item)) is not None and found[0] is family and found[1].overlaps(asked)
    )
    for gap in without(asked, seen):
        at = gap.first
        for addresses, _, allocation in held:
            first, last = max(addresses.first, at), min(addresses.last, gap.last)
            if first <= last:
                owner = _owner(allocation, addresses, estate)
                yield AddressPlace(Range(first, last), None, Kind.ALLOCATED.value, owners=(owner,), stranded=True)
                at = last + 1
        yield from (AddressPlace(rest, None, NOWHERE) for rest in without(gap, [addresses for addresses, _, _ in held]))


def _granted(allocation: IPAllocation, family: Family, asked: Range) -> Iterator[Range]:
    found = granted_range(allocation)
    if found is not None and found[0] is family and found[1].overlaps(asked):
        yield found[1]


def _wanted(estate: Estate, family: Family, asked: Range) -> Iterator[AddressOwner]:
    for allocation in estate.allocations:
        pinned = allocation.spec.pinned_range
        if pinned is None or allocation.status.phase not in (IPAllocationPhase.PENDING, IPAllocationPhase.FAILED):
            continue
        try:
            other, wanted = parse_range(pinned.start_address, pinned.end_address)
        except BadAddress:
            continue
        if other is family and wanted.overlaps(asked):
            yield _owner(allocation, wanted, estate)


def _owner(allocation: IPAllocation, addresses: Range, estate: Estate) -> AddressOwner:
    status, spec = allocation.status, allocation.spec
    ready = find_condition(status.conditions, ConditionType.READY)
    is_granted = status.phase is IPAllocationPhase.ALLOCATED
    return AddressOwner(
        allocation.metadata.name,
        tenant_key(allocation),
        tenant_standing(allocation, estate),
        str(spec.type),
        role_of(allocation),
        spec.pool_ref.name,
        addresses,
        str(status.phase),
        status.allocated_at,
        status.idle_since,
        status.draining_since,
        status.released_at,
        "" if is_granted or ready is None else ready.message,
    )


def role_of(allocation: IPAllocation) -> str:
    """What the allocation is to its tenant: `initial`, `growth`, or `pinned` where its label is missing."""
    said = allocation.metadata.labels.get(Label.ALLOCATION_ROLE, "")
    return said or ("pinned" if allocation.spec.pinned_range is not None else "")


def tenant_standing(allocation: IPAllocation, estate: Estate) -> TenantIs:
    """Whether the TenantCluster that an allocation was made for is there."""
    key = tenant_key(allocation)
    named = next((cluster for cluster in estate.clusters if key_of(cluster) == key), None)
    if named is None:
        return TenantIs.UNSEEN if recorded_owner(allocation) is None else TenantIs.GONE
    return TenantIs.EXISTS if owner_lives(allocation, named) else TenantIs.REPLACED


def _known_as(estate: Estate, family: Family, asked: Range) -> Iterator[str]:
    """Gateways and name servers of providers, endpoints of control planes."""

    def is_asked(text: str | None) -> bool:
        try:
            other, value = read_asked(text or "")
        except BadAddress:
            return False
        return other is family and asked.contains(value)

    for provider in estate.providers:
        name, network = provider.metadata.name, provider.spec.network
        gateways = dict.fromkeys([network.gateway, *(pool_ref.gateway for pool_ref in network.pool_refs)])
        yield from (f"gateway {gateway} of ProviderConfig {name}" for gateway in gateways if is_asked(gateway))
        yield from (
            f"name server {dns_server} of ProviderConfig {name}"
            for dns_server in network.dns_servers
            if is_asked(dns_server)
        )
    for cluster in estate.clusters:
        endpoint = cluster.status.control_plane_endpoint
        try:
            host = urlsplit(endpoint or "").hostname
        except ValueError:
            continue
        if is_asked(host):
            yield f"endpoint {endpoint} of the control plane of {key_of(cluster)}"


# As JSON.


def range_json(addresses: Range, family: Family) -> dict[str, Any]:
    """A range for programs."""
    return {
        "start": address_text(addresses.first, family),
        "end": address_text(addresses.last, family),
        "count": addresses.size,
    }


def answer_json(answer: Answer) -> dict[str, Any]:
    """The answer for programs."""
    family = answer.family
    return {
        "asked": range_json(answer.asked, family),
        "known": answer.is_known,
        "places": [
            {
                **range_json(place.addresses, family),
                "pool": place.pool,
                "kind": "none" if place.kind == NOWHERE else place.kind,
                "description": place.description or None,
                "stranded": place.stranded,
                "held": place.kind in tuple(HELD),
                "owners": [owner_json(owner, family) for owner in place.owners],
            }
            for place in answer.places
        ],
        "earlier": [owner_json(item, family) for item in answer.earlier],
        "wanted": [owner_json(item, family) for item in answer.wanted],
        "pools": [{"name": name, "cidr": cidr} for name, cidr in answer.pools],
        "nearestPool": {"name": answer.nearest[0], "cidr": answer.nearest[1]} if answer.nearest else None,
        "knownAs": list(answer.known_as),
    }


def owner_json(owner: AddressOwner, family: Family) -> dict[str, Any]:
    return {
        "allocation": owner.allocation,
        "tenant": str(owner.tenant),
        "tenantExists": owner.tenant_is is TenantIs.EXISTS,
        "tenantIs": owner.tenant_is.value,
        "type": owner.type,
        "role": owner.role or None,
        "pool": owner.pool,
        "range": range_json(owner.addresses, family),
        "phase": owner.phase,
        "allocatedAt": owner.since,
        "idleSince": owner.idle_since,
        "drainingSince": owner.draining_since,
        "releasedAt": owner.released_at,
        "why": owner.why or None,
    }
