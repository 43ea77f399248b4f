"""A look at everything, and how it is told. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from butler.api.objects import Key
from butler.reports.fsck.allocations import check_allocations
from butler.reports.fsck.finding import Code, FsckFinding, FsckSeverity, Thing
from butler.reports.fsck.holdings import read_books
from butler.reports.fsck.pools import check_pools
from butler.reports.fsck.tenants import check_tenants

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from butler.reports.estate import Estate
    from butler.reports.fsck.holdings import Books
    from butler.reports.fsck.tenants import TenantAnswers


@dataclass(frozen=True, slots=True)
class UnreadableObject:
    """An object that is there and makes no sense to us."""

    kind: str
    key: Key
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """What was looked at, and what stood."""

    findings: tuple[FsckFinding, ...]
    pools: int
    allocations: int
    tenants: int
    """How many were asked and answered."""
    not_asked: tuple[str, ...] = ()
    """Which tenants were not asked, in words."""
    passed: int = 0
    """How many findings of the first look were gone at the second."""

    @property
    def is_clean(self) -> bool:
        """Notes are no stain."""
        return not any(finding.is_bad for finding in self.findings)

    @property
    def counts(self) -> dict[FsckSeverity, int]:
        found = Counter(finding.severity for finding in self.findings)
        return {severity: found[severity] for severity in FsckSeverity}


def look_once(
    estate: Estate, sides: Mapping[Key, TenantAnswers], now: datetime, unreadable: Iterable[UnreadableObject] = ()
) -> list[FsckFinding]:
    """All findings of one moment; `sides` are the tenants that were asked."""
    books = read_books(estate)
    strange = list(unreadable)
    return [
        *map(_unreadable, strange),
        *check_pools(books, now, recount=not any(item.kind == "IPAllocation" for item in strange)),
        *check_allocations(books),
        *(_with_pools(check_tenant, books) for check_tenant in check_tenants(books, sides, now)),
    ]


def _with_pools(finding: FsckFinding, books: Books) -> FsckFinding:
    """What is wrong on a tenant concerns every pool that it has addresses of."""
    pools = {
        allocation.spec.pool_ref.name
        for tenant in finding.tenants
        for allocation in books.by_tenant.get(Key(*tenant.split("/", 1)), ())
    }
    return replace(finding, pools=finding.pools | pools)


def concerning(findings: Iterable[FsckFinding], pool: str | None, tenant: str | None) -> list[FsckFinding]:
    """Those about one pool, or one cluster, where that is asked."""
    return [
        finding
        for finding in findings
        if finding.code is Code.UNREADABLE  # it is unknown which pools and tenants it concerns
        or ((pool is None or pool in finding.pools) and (tenant is None or tenant in finding.tenants))
    ]


def _unreadable(strange: UnreadableObject) -> FsckFinding:
    return FsckFinding(
        FsckSeverity.ERROR,
        Code.UNREADABLE,
        (Thing(strange.kind, strange.key.name, strange.key.namespace),),
        f"it cannot be read: {strange.why}",
        "run the version of Butler that wrote it, or put it right with kubectl edit",
    )


def report_json(report: Report) -> dict[str, Any]:
    return {
        "clean": report.is_clean,
        "checked": {"pools": report.pools, "allocations": report.allocations, "tenants": report.tenants},
        "notAsked": list(report.not_asked),
        "findings": [finding_json(finding) for finding in report.findings],
    }


def finding_json(finding: FsckFinding) -> dict[str, Any]:
    return {
        "severity": str(finding.severity),
        "code": str(finding.code),
        "objects": [_thing_json(thing) for thing in finding.things],
        "what": finding.what,
        "todo": finding.todo,
        "repair": str(finding.repair) if finding.repair else None,
    }


def _thing_json(thing: Thing) -> dict[str, str]:
    said = {"kind": thing.kind, "namespace": thing.namespace, "name": thing.name, "tenantCluster": thing.cluster}
    return {field: value for field, value in said.items() if value}
