"""What keeps Butler from working: facts in, a verdict and the next step for each out. Pure.

PASS is as it should be. WARN works, and an operator should check it. FAIL does not work, or will not for long.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from butler.api.conditions import find_condition
from butler.api.labels import ConditionType, LoadBalancerReason, TenantClusterReason
from butler.api.networkpool import CapacityTier
from butler.api.objects import covers, key_of
from butler.api.tenantcluster import TenantClusterPhase
from butler.reports.fsck.holdings import counted
from butler.reports.fsck.pools import seen_too_much

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from butler.api.networkpool import NetworkPool
    from butler.api.providerconfig import ProviderConfig
    from butler.api.tenantcluster import TenantCluster

Json = dict[str, Any]
OLDEST = (1, 31)
"""The first Kubernetes whose CEL knows `ip()` and `cidr()`, which the definitions use."""
SKEW_WARN, SKEW_FAIL = 5.0, 300.0
SLOW_LEASE = 2.0
"""How many times its duration a lease may be old before it counts as held by no process."""
NAMED = 3


class CheckLevel(StrEnum):
    """What came of a check."""

    PASS = "PASS"  # noqa: S105 (a verdict)
    WARN = "WARN"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: what it is about, what was seen, and what to do next."""

    name: str
    level: CheckLevel
    says: str
    todo: str = ""


class AdmissionCheck(StrEnum):
    """How admission answered a pool that it has to refuse."""

    ANSWERS = "answers"
    SILENT = "silent"
    """It is registered, and does not answer."""
    ABSENT = "absent"
    """No webhook refused."""
    UNKNOWN = "unknown"
    """It could not be tried."""


def few(names: Iterable[object]) -> str:
    """The first few, and how many more."""
    listed = list(map(str, names))
    more = f" and {len(listed) - NAMED} more" if len(listed) > NAMED else ""
    return ", ".join(listed[:NAMED]) + more


def kubernetes(version: Json, milliseconds: float) -> Check:
    said = str(version.get("gitVersion") or "an unknown version")
    numbers = [int(found[0]) for part in ("major", "minor") if (found := re.match(r"\d+", str(version.get(part, ""))))]
    if len(numbers) == 2 and tuple(numbers) < OLDEST:
        oldest = ".".join(map(str, OLDEST))
        return Check(
            "API server", CheckLevel.FAIL, f"{said} answers", f"Butler needs Kubernetes {oldest} or newer: upgrade it"
        )
    return Check("API server", CheckLevel.PASS, f"{said} answers in {milliseconds:.0f} ms")


def clock(skew: float | None) -> Check:
    """`skew`: seconds that the server is ahead; it tells whole seconds only."""
    if skew is None:
        return Check("Clock", CheckLevel.WARN, "the server does not tell its time", "compare the clocks by hand")
    apart = f"the server's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
    todo = "let both follow the same time servers: certificates and leases go by them"
    if abs(skew) >= SKEW_FAIL:
        return Check("Clock", CheckLevel.FAIL, apart, todo)
    if abs(skew) >= SKEW_WARN:
        return Check("Clock", CheckLevel.WARN, apart, todo)
    return Check("Clock", CheckLevel.PASS, "in step with the server's")


# Definitions.


def definitions(wanted: Sequence[Json], live: Mapping[str, Json]) -> Check:
    """Butler's definitions on the server, by name, against this program's."""
    apply = "`butleradm crds | kubectl apply --server-side -f -`"
    missing = [name for obj in wanted if (name := obj["metadata"]["name"]) not in live]
    if missing:
        return Check("Definitions", CheckLevel.FAIL, f"not on the server: {few(missing)}", f"{apply} installs them")
    older, newer, other = [], [], []
    for obj in wanted:
        name, ours = obj["metadata"]["name"], obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        versions = [
            entry for entry in live[name]["spec"]["versions"] if entry["name"] == obj["spec"]["versions"][0]["name"]
        ]
        theirs = versions[0]["schema"]["openAPIV3Schema"] if versions else {}
        here, there = set(_fields(ours)), set(_fields(theirs))
        if here - there:
            older.append(f"{name} lacks {few(sorted(here - there))}")
        elif there - here:
            newer.append(f"{name} has {few(sorted(there - here))}")
        elif not covers(theirs, ours):
            other.append(name)
    if older:
        return Check(
            "Definitions",
            CheckLevel.FAIL,
            f"older than this program: {'; '.join(older)}",
            f"{apply} brings them up to date",
        )
    if newer:
        return Check(
            "Definitions",
            CheckLevel.WARN,
            f"newer than this program: {'; '.join(newer)}",
            "use the program of that version",
        )
    if other:
        return Check(
            "Definitions", CheckLevel.WARN, f"not as this program has them: {few(other)}", f"{apply} puts them right"
        )
    return Check("Definitions", CheckLevel.PASS, f"all {len(wanted)} kinds, as this program has them")


def _fields(schema: Json, path: str = "") -> Iterator[str]:
    for name, below in (schema.get("properties") or {}).items():
        yield f"{path}.{name}"
        yield from _fields(below, f"{path}.{name}")
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            yield from _fields(schema[part], f"{path}[]")


# Who may, and who works.


def permissions(denied: Sequence[str], *, asked: int, may_look: bool) -> Check:
    if not denied:
        return Check("Permissions", CheckLevel.PASS, f"you may do all {asked} things that operators do")
    level = CheckLevel.WARN if may_look else CheckLevel.FAIL
    return Check(
        "Permissions", level, f"you may not {'; '.join(denied)}", "ask an administrator of the cluster, if you need to"
    )


def controllers(lease: Json | None, admission: AdmissionCheck, now: datetime) -> Check:
    """Whether controllers run: by the lease, or, where there is none, by admission, which runs in the same process."""
    start = "start them with `butleradm controller run`, or see why they stopped"
    if lease is None:
        if admission is AdmissionCheck.ANSWERS:
            return Check("Controllers", CheckLevel.PASS, "running without a lease, as under `butleradm local up`")
        if admission is AdmissionCheck.UNKNOWN:
            return Check(
                "Controllers", CheckLevel.WARN, "there is no lease, and whether they run cannot be told", start
            )
        return Check(
            "Controllers", CheckLevel.FAIL, "none are running: there is no lease, and admission does not answer", start
        )
    spec = lease.get("spec") or {}
    holder, renewed = spec.get("holderIdentity") or "", _moment(spec.get("renewTime"))
    duration = float(spec.get("leaseDurationSeconds") or 15)
    if not holder or renewed is None:
        return Check("Controllers", CheckLevel.FAIL, "no process holds their lease", start)
    ago = max(0.0, (now - renewed).total_seconds())
    if ago > SLOW_LEASE * duration:
        return Check(
            "Controllers", CheckLevel.FAIL, f"{holder} renewed its lease {timedelta(seconds=int(ago))} ago", start
        )
    return Check("Controllers", CheckLevel.PASS, f"{holder} leads, and renewed its lease {ago:.0f} s ago")


def _moment(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def admission_check(admission: AdmissionCheck) -> Check:
    match admission:
        case AdmissionCheck.ANSWERS:
            return Check("Admission", CheckLevel.PASS, "registered and answering")
        case AdmissionCheck.SILENT:
            return Check(
                "Admission",
                CheckLevel.FAIL,
                "registered, but it does not answer: pools and providers cannot be changed",
                "start the controllers, or delete the ValidatingWebhookConfiguration that they left behind",
            )
        case AdmissionCheck.ABSENT:
            return Check(
                "Admission",
                CheckLevel.WARN,
                "not registered: mistakes in pools are told by conditions only, not when they are made",
                "give `butleradm controller run` a --webhook-port",
            )
        case AdmissionCheck.UNKNOWN:
            return Check(
                "Admission", CheckLevel.WARN, "it could not be tried", "run this as a user who may create pools"
            )


# What there is.


def pools(found: Sequence[NetworkPool]) -> list[Check]:
    if not found:
        return [Check("Pools", CheckLevel.WARN, "there are none", "`butleradm pool create` makes one")]
    problems = [check for pool in found if (check := _pool(pool)) is not None]
    return problems or [Check("Pools", CheckLevel.PASS, f"{len(found)} ready, none near its end")]


def _pool(pool: NetworkPool) -> Check | None:
    name, conditions = pool.metadata.name, pool.status.conditions
    ready = find_condition(conditions, ConditionType.READY)
    if ready is None:
        return Check("Pools", CheckLevel.FAIL, f"no controller has looked at {name}", "see Controllers")
    if ready.status != "True":
        return Check(
            "Pools", CheckLevel.FAIL, f"{name} hands out nothing: {ready.message}", f"`butleradm pool get {name}`"
        )
    if seen_too_much(pool):
        says = f"{name} hands out nothing: its status is from another life (a backup, or another cluster)"
        return Check(
            "Pools", CheckLevel.FAIL, says, "see Controllers, who set it right; `butleradm ipam fsck` tells more"
        )
    for tier in (CapacityTier.EXHAUSTED, CapacityTier.CRITICAL, CapacityTier.WARNING):
        reached = find_condition(conditions, tier)
        if reached is not None and reached.status == "True":
            return Check(
                "Pools", CheckLevel.WARN, f"{name}: {reached.message}", f"`butleradm pool grow {name}`, or add another"
            )
    return None


def providers(found: Sequence[ProviderConfig]) -> list[Check]:
    if not found:
        return [Check("Providers", CheckLevel.WARN, "there are none", "`butleradm provider create` makes one")]
    broken = [provider for provider in found if not provider.status.ready]
    checks = []
    for provider in broken:
        ready, name = find_condition(provider.status.conditions, ConditionType.READY), provider.metadata.name
        if provider.status.ready is None:
            checks.append(Check("Providers", CheckLevel.WARN, f"{name} has not been looked at", "see Controllers"))
        else:
            why = ready.message if ready else "it does not say why"
            checks.append(
                Check("Providers", CheckLevel.FAIL, f"{name} is not ready: {why}", f"`butleradm provider get {name}`")
            )
    return checks or [Check("Providers", CheckLevel.PASS, f"{len(found)} ready")]


def tenants(found: Sequence[TenantCluster]) -> list[Check]:
    """Clusters that failed, wait for something, or do not answer."""
    if not found:
        return [Check("Tenants", CheckLevel.PASS, "there are none")]
    unreachable = [cluster for cluster in found if _says(cluster, TenantClusterReason.TENANT_UNREACHABLE)]
    failed = [cluster for cluster in found if cluster.status.phase is TenantClusterPhase.FAILED]
    waiting = [cluster for cluster in found if cluster.status.phase is TenantClusterPhase.PENDING]
    checks = []
    for level, which, words in (
        (CheckLevel.FAIL, failed, "failed"),
        (CheckLevel.FAIL, unreachable, "cannot be reached"),
        (CheckLevel.WARN, waiting, "waiting for something"),
    ):
        if which:
            namespace, name = key_of(which[0])
            todo = f"`butleradm tenant get {name} -n {namespace}`"
            checks.append(Check("Tenants", level, f"{len(which)} {words}: {few(map(key_of, which))}", todo))
    return checks or [Check("Tenants", CheckLevel.PASS, f"{len(found)} known, none in trouble")]


def _says(cluster: TenantCluster, reason: str) -> bool:
    return any(condition.reason == reason and condition.status == "False" for condition in cluster.status.conditions)


def metallb(found: Sequence[TenantCluster]) -> Check:
    """MetalLB lives on the tenants, and each tells whether it has it."""
    without = [cluster for cluster in found if _says(cluster, LoadBalancerReason.NOT_INSTALLED)]
    if without:
        return Check(
            "MetalLB",
            CheckLevel.WARN,
            f"not installed on {few(map(key_of, without))}",
            "Services there get no addresses; enable the addon, or install it",
        )
    asked = [
        cluster for cluster in found if find_condition(cluster.status.conditions, ConditionType.LOAD_BALANCERS_READY)
    ]
    return Check(
        "MetalLB",
        CheckLevel.PASS,
        f"installed on {counted(len(asked), 'tenant')}" if asked else "no tenant needs it yet",
    )


def cluster_api(missing: Sequence[str], *, needed: bool) -> Check:
    """The definitions of Cluster API, Steward and the providers in use; `needed`: there are clusters to build."""
    if not missing:
        return Check(
            "Cluster API", CheckLevel.PASS, "Cluster API, Steward and the providers in use have their definitions"
        )
    todo = "install Cluster API with Steward and the infrastructure providers; addresses work without them"
    return Check(
        "Cluster API", CheckLevel.FAIL if needed else CheckLevel.WARN, f"not on the server: {few(missing)}", todo
    )
