"""What needs attention, worst first. Pure: what the user may see goes in, sentences come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from butler.api.networkpool import CapacityTier
from butler.api.tenantcluster import TenantClusterPhase
from butler.reports.pool.overlaps import OverlapFinding, OverlapTrouble
from butler.server.models.activity import Attention
from butler.server.models.allocations import AllocationItem
from butler.server.models.common import Link
from butler.server.models.pools import PoolItem
from butler.server.models.providers import ProviderItem
from butler.server.models.tenants import TenantItem

PATIENCE: Final = timedelta(minutes=1)
"""How long a request or a provider may be new before it is missed."""
MOST: Final = 200
NAMED: Final = 3
_WORST_FIRST: Final = ("critical", "warning", "info")
_TIERS: Final = {
    CapacityTier.EXHAUSTED.value: ("critical", "is all but full"),
    CapacityTier.CRITICAL.value: ("critical", "is nearly full"),
    CapacityTier.WARNING.value: ("warning", "is filling up"),
}
_TROUBLES: Final = {
    OverlapTrouble.POOLS: "Two pools overlap",
    OverlapTrouble.TWICE: "Addresses are held twice",
    OverlapTrouble.OUTSIDE: "Addresses are held outside their pool",
    OverlapTrouble.NO_POOL: "Addresses are held of a pool that is not there",
    OverlapTrouble.UNREADABLE: "An allocation holds what is no range",
}
Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True, slots=True)
class VisibleEstate:
    """What the person may see of the estate."""

    pools: Sequence[PoolItem] = ()
    doubts: Sequence[tuple[PoolItem, Sequence[str]]] = ()
    """Pools whose own counters differ from a recount for some time now."""
    unmet: Sequence[AllocationItem] = ()
    """Requests that hold nothing."""
    tenants: Sequence[TenantItem] = ()
    providers: Sequence[ProviderItem] = ()
    overlaps: Sequence[OverlapFinding] = ()
    now: datetime = field(kw_only=True)


def attention(seen: VisibleEstate) -> list[Attention]:
    """All of it, the worst first; within that pools, requests, tenants and providers."""
    found = [
        *_overlaps(seen.overlaps),
        *_pools(seen.pools),
        *_unmet(seen.unmet, seen.now),
        *_tenants(seen.tenants),
        *_providers(seen.providers, seen.now),
        *_doubts(seen.doubts),
    ]
    return sorted(found, key=lambda finding: _WORST_FIRST.index(finding.severity))[:MOST]


def _pools(pools: Iterable[PoolItem]) -> Iterator[Attention]:
    for pool in pools:
        link = Link(kind="pool", namespace=pool.namespace, name=pool.name)
        if pool.problem:
            title = f"Pool {pool.name} hands out nothing"
            yield Attention(severity="critical", title=title, detail=pool.problem, link=link)
        if pool.tier is not None and pool.total is not None:
            severity, words = _TIERS[pool.tier]
            detail = (
                f"{pool.allocated} of {pool.total} addresses are held ({int(pool.percent or 0)}%);"
                f" the longest free run is {pool.largest_free_block}"
            )
            yield Attention(severity=_severity(severity), title=f"Pool {pool.name} {words}", detail=detail, link=link)


def _severity(word: str) -> Severity:
    return "critical" if word == "critical" else "warning" if word == "warning" else "info"


def _doubts(doubts: Iterable[tuple[PoolItem, Sequence[str]]]) -> Iterator[Attention]:
    for pool, said in doubts:
        link = Link(kind="pool", namespace=pool.namespace, name=pool.name)
        title = f"The counters of pool {pool.name} are not what its allocations add up to"
        yield Attention(severity="warning", title=title, detail="; ".join(said), link=link)


def _unmet(unmet: Iterable[AllocationItem], now: datetime) -> Iterator[Attention]:
    """Requests, by pool: a full pool is one thing to look at, not a hundred."""
    by_pool: dict[tuple[str, str], list[AllocationItem]] = {}
    for allocation_item in unmet:
        if allocation_item.phase == "Failed" or (
            allocation_item.created_at is not None and now - allocation_item.created_at > PATIENCE
        ):
            by_pool.setdefault((allocation_item.namespace, allocation_item.pool), []).append(allocation_item)
    for (namespace, pool), waiting in sorted(by_pool.items()):
        first = waiting[0]
        if len(waiting) == 1:
            link = Link(kind="allocation", namespace=namespace, name=first.name)
            title = f"{first.name} {'was refused' if first.phase == 'Failed' else 'waits'} in pool {pool}"
            yield Attention(severity="warning", title=title, detail=_why(first), link=link)
            continue
        link = Link(kind="pool", namespace=namespace, name=pool)
        more = f" and {len(waiting) - NAMED} more" if len(waiting) > NAMED else ""
        names = ", ".join(allocation_item.name for allocation_item in waiting[:NAMED])
        title = f"{len(waiting)} requests hold nothing yet in pool {pool}"
        yield Attention(severity="warning", title=title, detail=f"{names}{more}: {_why(first)}", link=link)


def _why(item: AllocationItem) -> str:
    return item.message or "no controller has looked at it yet: check that Butler's controllers run"


def _tenants(tenants: Iterable[TenantItem]) -> Iterator[Attention]:
    for tenant in tenants:
        link = Link(kind="tenant", namespace=tenant.namespace, name=tenant.name)
        name = f"{tenant.namespace}/{tenant.name}"
        if tenant.trouble:
            failed = tenant.phase == TenantClusterPhase.FAILED.value
            title = f"Tenant {name} has failed" if failed else f"Tenant {name} needs a look"
            severity: Severity = "critical" if failed else "warning"
            yield Attention(severity=severity, title=title, detail="; ".join(tenant.trouble), link=link)
        elif tenant.services_waiting:
            number = tenant.services_waiting
            title = f"{number} {'Service waits' if number == 1 else 'Services wait'} for an address in {name}"
            detail = (
                f"it holds {tenant.load_balancer_addresses or 0} and {tenant.load_balancers_in_use or 0} are in use"
            )
            yield Attention(severity="warning", title=title, detail=detail, link=link)


def _providers(providers: Iterable[ProviderItem], now: datetime) -> Iterator[Attention]:
    for provider in providers:
        is_new = provider.created_at is not None and now - provider.created_at < PATIENCE
        if provider.ready or (is_new and not provider.problem):
            continue
        link = Link(kind="provider", namespace=provider.namespace, name=provider.name)
        detail = provider.problem or "no controller has looked at it yet: check that Butler's controllers run"
        severity: Severity = "critical" if provider.tenants else "warning"
        yield Attention(severity=severity, title=f"Provider {provider.name} is not ready", detail=detail, link=link)


def _overlaps(findings: Iterable[OverlapFinding]) -> Iterator[Attention]:
    for finding in findings:
        kind, _, key = finding.subjects[0].partition(" ")
        namespace, _, name = key.partition("/")
        link = Link(kind="pool" if kind == "NetworkPool" else "allocation", namespace=namespace, name=name)
        title = f"{_TROUBLES[finding.trouble]}: {finding.start}-{finding.end}"
        yield Attention(severity="critical", title=title, detail=finding.message, link=link)
