"""MetalLB's pools on one tenant, against the load-balancer addresses that it holds. Pure.

The rule is one-sided and strict: MetalLB may announce only what the tenant holds (S5). That something is missing harms
no other tenant. Pools that Butler did not make are judged by whose addresses they have.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from butler.api.ipallocation import IPAllocationType
from butler.api.objects import key_of, name_of
from butler.ipam.addresses import Family, address_text
from butler.ipam.range_difference import without
from butler.reports.fsck.finding import Code, FsckFinding, FsckSeverity, LookAgain, Thing
from butler.reports.fsck.holdings import cluster_thing, counted, ranges_text
from butler.rules.allocation.owner import tenant_key
from butler.rules.loadbalancer.demand import ipv4_addresses
from butler.rules.loadbalancer.service import POOL
from butler.tenant.metallb import (
    ADDRESS_POOLS,
    ADVERTISEMENT,
    ADVERTISEMENTS,
    NAMESPACE,
    address_pool,
    advertisement,
    differs,
    ipv4_range,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.objects import Json
    from butler.api.tenantcluster import TenantCluster
    from butler.ipam.addresses import Range
    from butler.reports.fsck.holdings import Books
    from butler.rules.loadbalancer.service import Balancer

BY_ITSELF = "Butler compares it every five minutes and puts it right; --repair makes it do so now"
TELLING = timedelta(seconds=20)
"""How long a tenant that is slow may take to be told of new addresses."""
LONGEST = 128
"""Characters that are told of one text of a tenant's."""
AT_A_PRICE = (
    "Butler puts it right within five minutes, and takes addresses out then that a Service uses (IPAM-S5-ANNOUNCED):"
    " warn its owner first"
)
PAUSED = "the cluster is paused, and Butler leaves it alone until spec.paused is unset"


def check_metallb(
    cluster: TenantCluster,
    pools: Sequence[Json] | None,
    announced: Json | None,
    services: Sequence[Balancer],
    books: Books,
    now: datetime,
) -> Iterator[FsckFinding]:
    """`pools`: None where MetalLB is not installed; `announced`: the L2Advertisement of Butler's pool."""
    blocks = books.held_by(cluster, IPAllocationType.LOAD_BALANCER)
    held = [block for _, block in blocks]
    if pools is None:
        if held:
            yield _not_installed(cluster, held)
        return
    ours = next((obj for obj in pools if name_of(obj) == POOL), None)
    for pool in pools:
        yield from _announced(cluster, pool, held, services, books)
    if any(_is_under_way(allocation, now) for allocation, _ in blocks):
        return
    found = _amiss(cluster, ours, announced, held)
    if _using(services, _extra(ours, held)):
        # One look of the controllers puts everything right at once, also what a Service would lose its address by.
        found = (
            replace(finding, repair=None, todo=AT_A_PRICE if finding.repair else finding.todo) for finding in found
        )
    yield from found


def _amiss(
    cluster: TenantCluster, ours: Json | None, announced: Json | None, held: Sequence[Range]
) -> Iterator[FsckFinding]:
    """How Butler's own pool and its advertisement are not as they should be, apart from addresses too many."""
    there = readable(ours)
    missing = [piece for span in held for piece in without(span, there)]
    if missing:
        yield _finding(
            FsckSeverity.WARNING,
            Code.METALLB_MISSING,
            cluster,
            ours or POOL,
            f"it lacks {counted(sum(span.size for span in missing))} that the tenant holds: {ranges_text(missing)}",
            BY_ITSELF,
        )
    if held and not missing and not _extra(ours, held) and ours is not None and differs(address_pool(held), ours):
        settings = ours.get("spec") or {}
        yield _finding(
            FsckSeverity.WARNING,
            Code.METALLB_DRIFT,
            cluster,
            ours,
            f"it is not as Butler writes it: addresses {', '.join(entries(ours))},"
            f" autoAssign {_shown(settings.get('autoAssign', True))},"
            f" avoidBuggyIPs {_shown(settings.get('avoidBuggyIPs', False))}",
            BY_ITSELF,
        )
    if held and differs(advertisement(), announced):
        names = ", ".join(_listed(announced, "ipAddressPools")) or "every pool"
        yield FsckFinding(
            FsckSeverity.WARNING,
            Code.METALLB_DRIFT,
            (Thing(ADVERTISEMENTS.kind, ADVERTISEMENT, NAMESPACE, str(key_of(cluster))),),
            f"it announces {names}, and should announce {POOL}"
            if announced is not None
            else f"it does not exist, so nothing of {POOL} is announced",
            PAUSED if cluster.spec.paused else BY_ITSELF,
            tenants=frozenset([str(key_of(cluster))]),
            repair=_look_again(cluster),
        )


def _is_under_way(allocation: IPAllocation, now: datetime) -> bool:
    """Whether MetalLB is being told: to take addresses back, or of some that were granted a moment ago."""
    status = allocation.status
    leaves = status.draining_since is not None or allocation.metadata.deletion_timestamp is not None
    return leaves or (status.allocated_at is not None and timedelta() <= now - status.allocated_at < TELLING)


def entries(pool: Json | None) -> list[str]:
    """The addresses of an IPAddressPool as they are written."""
    return _listed(pool, "addresses")


def _listed(obj: Json | None, field: str) -> list[str]:
    """The texts of a list in the spec of an object; tenants are not trusted to have one."""
    found: Any = (obj or {}).get("spec")
    found = found.get(field) if isinstance(found, dict) else None
    return [str(item)[:LONGEST] for item in found] if isinstance(found, list) else []


def readable(pool: Json | None) -> list[Range]:
    return sorted(found for entry in entries(pool) if (found := ipv4_range(entry)) is not None)


def _announced(
    cluster: TenantCluster, pool: Json, held: Sequence[Range], services: Sequence[Balancer], books: Books
) -> Iterator[FsckFinding]:
    extra = _extra(pool, held)
    if not extra:
        return
    is_ours = name_of(pool) == POOL
    others = _others(extra, books)
    if not is_ours and not others:
        yield _finding(
            FsckSeverity.NOTE,
            Code.METALLB_FOREIGN,
            cluster,
            pool,
            f"it has {counted(sum(span.size for span in extra))} of no pool of Butler's: {ranges_text(extra)}",
            "nothing, if the tenant's owners and the network's agree on it",
            repairable=False,
        )
        return
    using = _using(services, extra)
    if not is_ours:
        todo = (
            f"it is not Butler's pool: have the tenant's owners take the addresses out of IPAddressPool {name_of(pool)}"
        )
    elif using:
        names = ", ".join(using[:3]) + (f" and {len(using) - 3} more" if len(using) > 3 else "")
        todo = (
            f"Butler takes them out within five minutes, and Service {names} gets another address then: warn its owner"
        )
    else:
        todo = BY_ITSELF
    yield _finding(
        FsckSeverity.ERROR,
        Code.ANNOUNCED,
        cluster,
        pool,
        f"it may announce {counted(sum(span.size for span in extra))} that the tenant does not hold:"
        f" {ranges_text(extra)}{f' ({others})' if others else ''}",
        todo,
        repairable=is_ours and not using,
    )


def _extra(pool: Json | None, held: Sequence[Range]) -> list[Range]:
    """What MetalLB may announce of a pool, and the tenant does not hold."""
    return [piece for span in readable(pool) for piece in without(span, held)]


def _using(services: Sequence[Balancer], pieces: Sequence[Range]) -> list[str]:
    """The Services with any of these addresses."""
    return sorted(
        str(service)
        for service in services
        if any(piece.first <= value <= piece.last for value in ipv4_addresses(service.addresses) for piece in pieces)
    )


def _others(pieces: Sequence[Range], books: Books) -> str:
    """Whose these addresses are, or could be; empty where they are no tenant's."""
    holders = sorted(
        {
            f"{tenant_key(books.by_uid[uid])} holds {address_text(max(piece.first, holding.range.first), Family.V4)}"
            for uid, holding in books.live.items()
            for piece in pieces
            if holding.family is Family.V4 and holding.range.overlaps(piece)
        }
    )
    if holders:
        return ", ".join(holders[:3]) + (f" and {len(holders) - 3} more" if len(holders) > 3 else "")
    pools = sorted({name for piece in pieces for name in books.hand_out_of(piece)})
    return f"pool {', '.join(pools)} may give them to another tenant" if pools else ""


def _not_installed(cluster: TenantCluster, held: Sequence[Range]) -> FsckFinding:
    return FsckFinding(
        FsckSeverity.NOTE,
        Code.METALLB_MISSING,
        (cluster_thing(cluster),),
        f"the tenant holds {counted(sum(span.size for span in held))}"
        f" for load balancers ({ranges_text(held)}), and MetalLB is not installed",
        "nothing, if it is meant to come later: the addresses are kept for it",
        tenants=frozenset([str(key_of(cluster))]),
    )


def _finding(
    severity: FsckSeverity,
    code: Code,
    cluster: TenantCluster,
    pool: Json | str,
    what: str,
    todo: str,
    *,
    repairable: bool = True,
) -> FsckFinding:
    name = pool if isinstance(pool, str) else name_of(pool)
    return FsckFinding(
        severity,
        code,
        (Thing(ADDRESS_POOLS.kind, name, NAMESPACE, str(key_of(cluster))),),
        what,
        PAUSED if cluster.spec.paused and name == POOL else todo,
        tenants=frozenset([str(key_of(cluster))]),
        repair=_look_again(cluster) if repairable else None,
    )


def _look_again(cluster: TenantCluster) -> LookAgain | None:
    return None if cluster.spec.paused else LookAgain("TenantCluster", key_of(cluster))


def _shown(value: object) -> str:
    return str(value)[:LONGEST].lower()
