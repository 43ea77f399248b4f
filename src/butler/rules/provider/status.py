"""What a ProviderConfig's status says, from what was seen. Pure.

`ready` means that clusters can be put here: settings make sense, the credentials are complete and not refused, and in
ipam mode there are pools for what tenants need. A provider that cannot be reached from here is no obstacle: Cluster
API may well reach it, and what runs must not hang on Butler's own view of the network. Nor is a full pool: clusters
wait there for addresses, and say so.

At rest nothing is written. So the two times in the status do not tell of every look, but of the looks that found
something new: `lastValidationTime` of the Secret, `lastProbeTime` of the provider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from butler.api.conditions import find_condition, with_condition
from butler.api.labels import ConditionType, NetworkReason, ProviderReason
from butler.api.meta import ConditionStatus
from butler.api.providerconfig import NetworkMode, ProviderCapacity, ScopeType
from butler.rules.provider.probe_outcome import (
    Accepted,
    Awaited,
    CredentialsRefused,
    Outcome,
    ProviderUnreachable,
    Unclear,
)
from butler.rules.provider.settings import settings_problems

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from butler.api.meta import Condition
    from butler.api.objects import Key
    from butler.api.providerconfig import ProviderConfig, ProviderConfigStatus
    from butler.rules.provider.room import Supply

NAMED = 5
"""How many clusters a message names before it only counts."""


class ProviderFinding(NamedTuple):
    """What a condition says."""

    status: ConditionStatus
    reason: str
    message: str

    @property
    def holds(self) -> bool:
        return self.status is ConditionStatus.TRUE


@dataclass(frozen=True, slots=True)
class SecretState:
    """What is known about the credentials, short of the provider's own opinion."""

    reason: ProviderReason
    message: str

    @property
    def complete(self) -> bool:
        return self.reason in (ProviderReason.COMPLETE, ProviderReason.NOT_NEEDED)


@dataclass(frozen=True, slots=True)
class ObservedProvider:
    """Everything that the status is made from."""

    secret: SecretState
    outcome: Outcome | None
    """What came of asking the provider; None: it was not asked."""
    refusal: CredentialsRefused | None
    """Its last word about these credentials, where that was a no."""
    supply: Supply | None
    """Its pools; None unless in ipam mode."""


def status_of(config: ProviderConfig, seen: ObservedProvider, now: datetime) -> ProviderConfigStatus:
    """The status to write; equal to the present one when there is nothing new."""
    before = config.status
    credentials, reachable = _credentials(seen, before.conditions), _reachable(seen)
    pools = _pools(seen.supply) if seen.supply is not None else None
    ready = _ready(config, credentials, seen.supply)
    conditions = before.conditions
    for kind, finding in (
        (ConditionType.READY, ready),
        (ConditionType.CREDENTIALS_VALID, credentials),
        (ConditionType.REACHABLE, reachable),
        (ConditionType.POOL_AVAILABLE, pools),
    ):
        if finding is None:
            conditions = tuple(condition for condition in conditions if condition.type != kind)
        else:
            conditions = _with(config, conditions, kind, finding, now)
    version = seen.outcome.version if isinstance(seen.outcome, Accepted) else before.provider_version
    validated_anew = seen.secret.complete and (
        not before.validated or _news(before.conditions, ConditionType.CREDENTIALS_VALID, credentials)
    )
    probed_anew = not isinstance(seen.outcome, Awaited | None) and (
        version != before.provider_version or _news(before.conditions, ConditionType.REACHABLE, reachable)
    )
    return msgspec.structs.replace(
        before,
        conditions=conditions,
        ready=ready.holds,
        validated=seen.secret.complete,
        last_validation_time=now if validated_anew else before.last_validation_time,
        last_probe_time=now if probed_anew else before.last_probe_time,
        provider_version=version,
        capacity=None
        if seen.supply is None
        else ProviderCapacity(available_ips=seen.supply.available, estimated_tenants=seen.supply.tenants),
        observed_generation=config.metadata.generation,
    )


def status_while_leaving(config: ProviderConfig, users: Sequence[Key], now: datetime) -> ProviderConfigStatus:
    """The status of one that is being deleted and still used."""
    finding = ProviderFinding(
        ConditionStatus.FALSE,
        ProviderReason.DELETING,
        f"it is being deleted, and goes once no cluster uses it: {named(users)}",
    )
    return msgspec.structs.replace(
        config.status,
        conditions=_with(config, config.status.conditions, ConditionType.READY, finding, now),
        ready=False,
        observed_generation=config.metadata.generation,
    )


def named(users: Sequence[Key]) -> str:
    """The first few clusters, and how many more there are."""
    shown = ", ".join(f"TenantCluster {key}" for key in sorted(users)[:NAMED])
    return f"{shown} and {len(users) - NAMED} more" if len(users) > NAMED else shown


class ProviderNotice(NamedTuple):
    """An event that tells of a change of status."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"]


_EVENTS = {
    ConditionType.READY: ("ProviderReady", "ProviderNotReady"),
    ConditionType.CREDENTIALS_VALID: ("CredentialsValid", "CredentialsInvalid"),
    ConditionType.REACHABLE: ("ProviderReachable", "ProviderUnreachable"),
    ConditionType.POOL_AVAILABLE: ("PoolsAvailable", "PoolsExhausted"),
}


def notices(before: ProviderConfigStatus, after: ProviderConfigStatus) -> list[ProviderNotice]:
    """Events for conditions that turned. That all is well from the start is worth one event, not four."""
    found = []
    for kind, (well, ill) in _EVENTS.items():
        was, now = find_condition(before.conditions, kind), find_condition(after.conditions, kind)
        if now is None or now.status is ConditionStatus.UNKNOWN:
            continue
        if was is not None and (was.status, was.reason) == (now.status, now.reason):
            continue
        if now.status is ConditionStatus.FALSE:
            reason = "DeletionBlocked" if now.reason == ProviderReason.DELETING else ill
            found.append(ProviderNotice(reason, now.message, "Warning"))
        elif kind is ConditionType.READY or (was is not None and was.status is ConditionStatus.FALSE):
            found.append(ProviderNotice(well, now.message, "Normal"))
    return found


# Findings.


def _credentials(seen: ObservedProvider, before: tuple[Condition, ...]) -> ProviderFinding:
    if not seen.secret.complete:
        return ProviderFinding(ConditionStatus.FALSE, seen.secret.reason, seen.secret.message)
    if seen.refusal is not None:
        return ProviderFinding(ConditionStatus.FALSE, ProviderReason.REFUSED, seen.refusal.message)
    was = find_condition(before, ConditionType.CREDENTIALS_VALID)
    if isinstance(seen.outcome, Awaited) and was is not None and was.reason == ProviderReason.REFUSED:
        # After a restart the refusal is not in memory, but it is written here, and the answer is on its way.
        return ProviderFinding(was.status, was.reason, was.message)
    return ProviderFinding(ConditionStatus.TRUE, seen.secret.reason, seen.secret.message)


def _reachable(seen: ObservedProvider) -> ProviderFinding:
    match seen.outcome:
        case Accepted(message):
            return ProviderFinding(ConditionStatus.TRUE, ProviderReason.ACCEPTED, message)
        case CredentialsRefused(message):
            return ProviderFinding(ConditionStatus.FALSE, ProviderReason.REFUSED, message)
        case ProviderUnreachable(message):
            return ProviderFinding(ConditionStatus.FALSE, ProviderReason.UNREACHABLE, message)
        case Unclear(message):
            return ProviderFinding(ConditionStatus.UNKNOWN, ProviderReason.UNCLEAR, message)
        case Awaited(message):
            return ProviderFinding(ConditionStatus.UNKNOWN, ProviderReason.ASKING, message)
        case None:
            why = "there is no server to ask" if seen.secret.complete else "it is not asked without usable credentials"
            return ProviderFinding(ConditionStatus.UNKNOWN, ProviderReason.NOT_ASKED, why)


def _pools(supply: Supply) -> ProviderFinding:
    notes = [f"{name} does not exist" for name in supply.missing]
    notes += [f"{pool} hands out nothing" for pool in supply.idle]
    notes += supply.held_excluded
    also = f"; {'; '.join(notes)}" if notes else ""
    if supply.available:
        message = "free addresses are there" + also
        return ProviderFinding(ConditionStatus.TRUE, NetworkReason.POOL_AVAILABLE, message)
    if supply.unserved and supply.missing:
        return ProviderFinding(ConditionStatus.FALSE, NetworkReason.POOL_NOT_FOUND, _not_found(supply))
    return ProviderFinding(ConditionStatus.FALSE, NetworkReason.POOL_EXHAUSTED, "no address is free" + also)


def _ready(config: ProviderConfig, credentials: ProviderFinding, supply: Supply | None) -> ProviderFinding:
    obstacles: list[tuple[str, str]] = []
    problems = [f"{field}: {message}" for field, message in settings_problems(config.spec)] + _scope_problems(config)
    if problems:
        obstacles.append((ProviderReason.VALIDATION_FAILED, "; ".join(problems)))
    if not credentials.holds:
        obstacles.append((credentials.reason, credentials.message))
    if supply is not None and supply.unserved:
        obstacles.append((NetworkReason.POOL_NOT_FOUND, _not_found(supply)))
    if obstacles:
        return ProviderFinding(ConditionStatus.FALSE, obstacles[0][0], "; ".join(message for _, message in obstacles))
    return ProviderFinding(ConditionStatus.TRUE, ProviderReason.READY, "clusters can be put on this provider")


def _scope_problems(config: ProviderConfig) -> list[str]:
    scope = config.spec.scope
    if scope.type is ScopeType.TEAM and scope.team_ref is None:
        return ["spec.scope.teamRef: scope team needs the team that may use this provider"]
    if config.spec.network.mode is NetworkMode.IPAM and not config.spec.network.pool_refs:
        return ["spec.network.poolRefs: ipam mode takes addresses from NetworkPools: name at least one"]
    return []


def _not_found(supply: Supply) -> str:
    pools = ", ".join(f"NetworkPool {name}" for name in supply.missing)
    what = " and ".join("nodes" if type_ == "nodes" else "load balancers" for type_ in supply.unserved)
    return f"no pool for {what} exists: create {pools}"


def _with(
    config: ProviderConfig,
    conditions: tuple[Condition, ...],
    kind: ConditionType,
    finding: ProviderFinding,
    now: datetime,
) -> tuple[Condition, ...]:
    return with_condition(
        conditions,
        type=kind,
        status=finding.status,
        reason=finding.reason,
        message=finding.message,
        now=now,
        observed_generation=config.metadata.generation,
    )


def _news(conditions: tuple[Condition, ...], kind: ConditionType, finding: ProviderFinding) -> bool:
    known = find_condition(conditions, kind)
    return known is None or (known.status, known.reason, known.message) != finding
