"""What is on the tenants, against what they hold: MetalLB's pools, Services and nodes. Pure.

A tenant in the middle of a drain, or that got addresses a moment ago, is not judged by what its MetalLB lacks: there
the pool is not as it will be in the end. One that is coming up, or going, is not asked at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of
from butler.api.providerconfig import NetworkMode
from butler.ipam.addresses import Family, address_text
from butler.reports.fsck.finding import Code, FsckFinding, FsckSeverity, Thing
from butler.reports.fsck.holdings import cluster_thing
from butler.reports.fsck.metallb import check_metallb
from butler.rules.allocation.owner import tenant_key
from butler.rules.blocked import Blocked
from butler.rules.loadbalancer.demand import ipv4_addresses
from butler.rules.machines import outside
from butler.rules.tenant.provider import resolve
from butler.rules.tenant.status import is_established

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from butler.api.objects import Json, Key
    from butler.api.tenantcluster import TenantCluster
    from butler.reports.estate import Estate
    from butler.reports.fsck.holdings import Books
    from butler.rules.loadbalancer.service import Balancer


class NodeAddresses(NamedTuple):
    """A node and its internal addresses."""

    name: str
    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TenantAnswers:
    """What was read from one tenant."""

    trouble: str = ""
    """Why nothing could be read."""
    pools: tuple[Json, ...] | None = None
    """MetalLB's IPAddressPools; None: MetalLB is not installed."""
    advertisement: Json | None = None
    """The L2Advertisement of Butler's pool."""
    services: tuple[Balancer, ...] = ()
    nodes: tuple[NodeAddresses, ...] = ()


class AskedTenants(NamedTuple):
    """Which tenants a check asks, and how many it does not."""

    clusters: tuple[TenantCluster, ...]
    coming_or_going: int = 0
    in_cloud_mode: int = 0


def tenants_to_ask(estate: Estate) -> AskedTenants:
    """The clusters that take addresses from pools, and can be asked."""
    providers = {key_of(item): item for item in estate.providers}
    ask, passing, clouds = [], 0, 0
    for cluster in estate.clusters:
        provider = resolve(cluster, providers, estate.home, cluster.status.team or "")
        if not isinstance(provider, Blocked) and provider.spec.network.mode is NetworkMode.CLOUD:
            clouds += 1
        elif cluster.metadata.deletion_timestamp is not None or not is_established(cluster):
            passing += 1
        else:
            ask.append(cluster)
    return AskedTenants(tuple(ask), passing, clouds)


def check_tenants(books: Books, sides: Mapping[Key, TenantAnswers], now: datetime) -> Iterator[FsckFinding]:
    """All findings about what is on the tenants that were asked."""
    asked = [item for item in books.estate.clusters if key_of(item) in sides]
    answered = [(item, side) for item in asked if not (side := sides[key_of(item)]).trouble]
    for cluster in asked:
        if trouble := sides[key_of(cluster)].trouble:
            yield _unreachable(cluster, trouble)
    for cluster, side in answered:
        yield from check_metallb(cluster, side.pools, side.advertisement, side.services, books, now)
        yield from _services(cluster, side.services, books)
        yield from _nodes(cluster, side.nodes, books)
    yield from _shared(
        Code.SERVICE_DUPLICATE,
        "recreate one of the Services, and see why both tenants could announce it (IPAM-S5-ANNOUNCED)",
        (
            (value, cluster, _service_thing(cluster, service))
            for cluster, side in answered
            for service in side.services
            for value in ipv4_addresses(service.addresses)
        ),
    )
    yield from _shared(
        Code.NODE_DUPLICATE,
        "one of the machines has to get another address: traffic for it may reach either",
        (
            (value, cluster, _node_thing(cluster, node))
            for cluster, side in answered
            for node in side.nodes
            for value in ipv4_addresses(node.addresses)
        ),
    )


def _unreachable(cluster: TenantCluster, trouble: str) -> FsckFinding:
    namespace, name = key_of(cluster)
    return FsckFinding(
        FsckSeverity.WARNING,
        Code.TENANT_UNREACHABLE,
        (cluster_thing(cluster),),
        f"it could not be asked: {trouble}",
        f"what is on it was not checked: see `butleradm tenant get {name} -n {namespace}`",
        tenants=frozenset([str(key_of(cluster))]),
    )


# Services and nodes.


def _services(cluster: TenantCluster, services: Sequence[Balancer], books: Books) -> Iterator[FsckFinding]:
    held = [block for _, block in books.held_by(cluster, IPAllocationType.LOAD_BALANCER)]
    for service in services:
        for value in ipv4_addresses(service.addresses):
            if any(span.first <= value <= span.last for span in held):
                continue
            if service.class_name and books.hands_out(value) is None and books.holder(value) is None:
                continue  # served by another load balancer, with addresses of its own
            yield _outside(
                Code.SERVICE_OUTSIDE,
                cluster,
                _service_thing(cluster, service),
                value,
                "a load-balancer address",
                "delete and recreate the Service once MetalLB's pool is right, and it gets one of the tenant's own",
                books,
            )


def _nodes(cluster: TenantCluster, nodes: Sequence[NodeAddresses], books: Books) -> Iterator[FsckFinding]:
    held = [block for _, block in books.held_by(cluster, IPAllocationType.NODES)]

    def is_handed_out(value: int) -> bool:
        return books.hands_out(value) is not None or books.holder(value) is not None

    for node in nodes:
        for value in outside(ipv4_addresses(node.addresses), held, is_handed_out):
            if not held and not is_handed_out(value):
                continue  # its machines get their addresses from the network itself
            yield _outside(
                Code.NODE_OUTSIDE,
                cluster,
                _node_thing(cluster, node),
                value,
                "a node address",
                "replace the machine, or have the address allocated to the tenant (`butleradm allocation pin`)",
                books,
            )


def _outside(
    code: Code, cluster: TenantCluster, thing: Thing, value: int, kind: str, todo: str, books: Books
) -> FsckFinding:
    """An address in use that its tenant does not hold; an error where Butler has given it to others, or could."""
    holder, pool = books.holder(value), books.hands_out(value)
    tenants = {str(key_of(cluster))}
    if holder is not None:
        whose = f"{tenant_key(holder)} holds it ({holder.metadata.name})"
        tenants.add(str(tenant_key(holder)))
    else:
        whose = f"pool {pool} may give it to another tenant" if pool else "no pool hands it out"
    return FsckFinding(
        FsckSeverity.ERROR if holder is not None or pool else FsckSeverity.WARNING,
        code,
        (thing,),
        f"it has {address_text(value, Family.V4)}, which is not {kind} of {key_of(cluster)}: {whose}",
        todo,
        pools=frozenset([pool] if pool else ()),
        tenants=frozenset(tenants),
    )


def _shared(code: Code, todo: str, uses: Iterable[tuple[int, TenantCluster, Thing]]) -> Iterator[FsckFinding]:
    """Addresses that two tenants use; within one tenant it may be meant."""
    by_address: dict[int, dict[Key, Thing]] = {}
    for value, cluster, thing in uses:
        by_address.setdefault(value, {}).setdefault(key_of(cluster), thing)
    for value, users in sorted(by_address.items()):
        if len(users) > 1:
            yield FsckFinding(
                FsckSeverity.ERROR,
                code,
                tuple(users.values()),
                f"{address_text(value, Family.V4)} is used in {len(users)} tenants: {', '.join(map(str, users))}",
                todo,
                tenants=frozenset(map(str, users)),
            )


def _service_thing(cluster: TenantCluster, service: Balancer) -> Thing:
    return Thing("Service", service.name, service.namespace, str(key_of(cluster)))


def _node_thing(cluster: TenantCluster, node: NodeAddresses) -> Thing:
    return Thing("Node", node.name, cluster=str(key_of(cluster)))
