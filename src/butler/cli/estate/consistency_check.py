"""Looking at a whole estate twice, and telling what stood both times; and the few repairs that cannot do harm.

Nothing here writes an address anywhere. A repair makes the controllers look again, deletes a request that holds
nothing, or puts labels right. A deletion and a label are valid only for the very object and version that was looked
at. Looking again goes by name: whatever has the name by then gets what it would get within minutes anyhow.
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from butler.api.labels import Annotation
from butler.api.objects import Key, key_of
from butler.cli.estate.tenant_queries import ask_tenants
from butler.cli.toolkit.objects import as_json, load_object
from butler.cli.toolkit.session import Failure
from butler.kube.absence import read
from butler.kube.errors import ApiError, Conflict, KubeError, NotFound
from butler.kube.kinds import ALLOCATIONS, CLUSTERS, POOLS, PROVIDERS, TENANT_IDENTITIES
from butler.reports.estate import Estate
from butler.reports.fsck import Report, UnreadableObject, concerning, look_once, standing, tenants_to_ask
from butler.reports.fsck.finding import DropRequest, LookAgain, Relabel
from butler.reports.fsck.holdings import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from butler.api.tenantcluster import TenantCluster
    from butler.cli.toolkit.follow import ProgressLine
    from butler.cli.toolkit.session import CommandSession
    from butler.kube.resource import Resource
    from butler.reports.fsck import FsckFinding, Repair
    from butler.reports.fsck.tenants import AskedTenants

BETWEEN: Final = 3.0
"""Seconds between the two looks: a grant is carried out, and published, in less."""
MENDING: Final = 8.0
"""Seconds that the controllers get to put something right."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What to check."""

    tenants: bool = True
    pool: str | None = None
    tenant: str | None = None
    """`namespace/name`."""


@dataclass(slots=True)
class _Look:
    """One look."""

    estate: Estate
    asked: AskedTenants
    answered: int
    findings: list[FsckFinding] = field(default_factory=list)


async def check(session: CommandSession, scope: Scope, line: ProgressLine) -> Report:
    """Look; and where something is found, look again at what it is about."""
    first = await _look(session, scope, line)
    found, passed = tuple(first.findings), 0
    if found:
        line.show(f"{len(found)} found; looking again, because what is under way passes")
        await asyncio.sleep(BETWEEN)
        concerned = frozenset(name for finding in found for name in finding.tenants)
        second = await _look(session, scope, line, concerned)
        found = standing(found, second.findings)
        passed = len(first.findings) - len(found)
    return Report(
        found,
        pools=len(first.estate.pools),
        allocations=len(first.estate.allocations),
        tenants=first.answered,
        not_asked=_not_asked(first.asked, scope),
        passed=passed,
    )


def _not_asked(asked: AskedTenants, scope: Scope) -> tuple[str, ...]:
    if not scope.tenants:
        return ("tenants were left out (--no-tenants)",)
    if scope.tenant or scope.pool:
        return ()
    coming = f"{asked.coming_or_going} not asked, as they are coming up or going" if asked.coming_or_going else ""
    clouds = f"{asked.in_cloud_mode} without addresses from pools" if asked.in_cloud_mode else ""
    return tuple(text for text in (coming, clouds) if text)


async def _look(session: CommandSession, scope: Scope, line: ProgressLine, only: frozenset[str] | None = None) -> _Look:
    line.show("reading pools, allocations and clusters")
    estate, strange = await read_tolerantly(session)
    _exists(estate, scope)
    asked = tenants_to_ask(estate)
    ask = [cluster for cluster in asked.clusters if _is_wanted(cluster, estate, scope, only)]
    sides = {}
    if ask:
        line.show(f"asking {counted(len(ask), 'tenant')}")
        told = sys.stderr.isatty()  # a line for each tenant would be too many elsewhere
        sides = await ask_tenants(
            session, ask, lambda done: line.show(f"asked {done} of {counted(len(ask), 'tenant')}") if told else None
        )
    findings = look_once(estate, sides, datetime.now(UTC), strange)
    answered = sum(1 for side in sides.values() if not side.trouble)
    return _Look(estate, asked, answered, concerning(findings, scope.pool, scope.tenant))


def _exists(estate: Estate, scope: Scope) -> None:
    from butler.cli.toolkit.objects import pool_of
    from butler.cli.toolkit.session import missing
    from butler.reports.estate import tenant_of

    if scope.pool is not None:
        pool_of(estate, scope.pool)
    if scope.tenant is not None:
        known = {str(key_of(cluster)) for cluster in estate.clusters} | {
            tenant_of(allocation) for allocation in estate.allocations
        }
        if scope.tenant not in known:
            namespace, _, name = scope.tenant.partition("/")
            raise missing("TenantCluster", name, namespace, known)


def _is_wanted(cluster: TenantCluster, estate: Estate, scope: Scope, only: frozenset[str] | None) -> bool:
    key = str(key_of(cluster))
    if not scope.tenants or (only is not None and key not in only) or scope.tenant not in (None, key):
        return False
    if scope.pool is None:
        return True
    wanted = key_of(cluster)
    return any(_names(allocation.spec.tenant_cluster_ref) == wanted for allocation in estate.of_pool(scope.pool))


def _names(reference: Any) -> Key:
    return Key(reference.namespace, reference.name)


async def read_tolerantly(session: CommandSession) -> tuple[Estate, list[UnreadableObject]]:
    """The estate, and what of it cannot be read; other commands stop at that, a check tells of it."""
    later: Sequence[tuple[Resource[Any], str]] = (
        (ALLOCATIONS, session.home),
        (PROVIDERS, session.home),
        (CLUSTERS, ""),
    )
    pools = await session.client.list(as_json(POOLS), session.home)  # before the allocations, see `read_addresses`
    listed = await asyncio.gather(*(session.client.list(as_json(kind), namespace) for kind, namespace in later))
    strange: list[UnreadableObject] = []
    found = []
    for kind, page in zip((POOLS, *(kind for kind, _ in later)), (pools, *listed), strict=True):
        readable = []
        for raw in page.items:
            try:
                readable.append(load_object(kind, raw).obj)
            except Failure as error:
                strange.append(UnreadableObject(kind.kind, key_of(raw), str(error.__context__ or error)))
        found.append(tuple(sorted(readable, key=key_of)))
    return Estate(session.home, *found), strange


# Repairs.


@dataclass(frozen=True, slots=True)
class Repaired:
    """What came of a repair."""

    repair: Repair
    problem: str = ""


def repairs_in(findings: Iterable[FsckFinding]) -> list[Repair]:
    """Each repair once: one look of the controllers may put several things right."""
    return list(dict.fromkeys(finding.repair for finding in findings if finding.repair is not None))


async def carry_out(session: CommandSession, repairs: Sequence[Repair], *, dry_run: bool) -> list[Repaired]:
    """One after the other; what cannot be done is told, and keeps no other from being done."""
    done = []
    for repair in repairs:
        try:
            problem = await _do(session, repair, dry_run=dry_run)
        except (Conflict, NotFound):
            problem = "it was changed meanwhile, so it was left alone"
        except ApiError as error:
            problem = error.message or str(error)
        except KubeError as error:
            problem = str(error)
        done.append(Repaired(repair, problem))
    return done


async def _do(session: CommandSession, repair: Repair, *, dry_run: bool) -> str:
    client = session.client
    match repair:
        case LookAgain(kind, key):
            patch = {"metadata": {"annotations": {Annotation.LOOK_AGAIN.value: f"{datetime.now(UTC):%FT%H:%M:%S.%fZ}"}}}
            resource = as_json(POOLS if kind == POOLS.kind else CLUSTERS)
            await client.patch(resource, key.name, patch, key.namespace, dry_run=dry_run)
        case Relabel(key, uid, version, labels):
            fenced = {"metadata": {"uid": uid, "resourceVersion": version, "labels": dict(labels)}}
            await client.patch(as_json(ALLOCATIONS), key.name, fenced, key.namespace, dry_run=dry_run)
        case DropRequest(key, uid, version, tenant, owners):
            found = await read(client, TENANT_IDENTITIES, tenant)
            if found is not None and (not found.metadata.uid or found.metadata.uid in owners):
                return f"TenantCluster {tenant} is there after all"
            await client.delete(
                ALLOCATIONS, key.name, key.namespace, uid=uid, resource_version=version, dry_run=dry_run
            )
    return ""


async def await_mending(
    session: CommandSession, scope: Scope, repaired: Sequence[FsckFinding], line: ProgressLine
) -> None:
    """Give the controllers time to put right what they were asked to look at; checking again tells what came of it."""
    known = {(finding.code, finding.things) for finding in repaired if finding.repair is not None}
    concerned = frozenset(name for finding in repaired for name in finding.tenants)
    until = time.monotonic() + MENDING
    while True:
        left = [
            finding
            for finding in (await _look(session, scope, line, concerned)).findings
            if (finding.code, finding.things) in known
        ]
        if not left or time.monotonic() >= until:
            return
        line.show(f"waiting for the controllers: {left[0].things[0]}")
        await asyncio.sleep(0.5)
