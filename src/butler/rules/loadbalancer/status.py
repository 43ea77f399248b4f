"""What a TenantCluster's status says about its load-balancer addresses. Pure.

One condition, LoadBalancersReady, and the figures behind it. What passes by itself within a moment, mostly, is not
worth a condition that goes up and down: a Service that waits while MetalLB hands out an address, or while addresses
come. It is told when it lasts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from butler.api.conditions import find_condition, with_condition
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.api.tenantcluster import LoadBalancerUse
from butler.rules.loadbalancer.deletion import in_words, named
from butler.rules.loadbalancer.foreign_addresses import as_told
from butler.rules.loadbalancer.growth import waiting_in_words
from butler.rules.loadbalancer.usage import users_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from butler.api.tenantcluster import PoolChange, TenantCluster, TenantClusterStatus
    from butler.rules.loadbalancer.growth import Short
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.usage import HeldBlock, Usage

LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class AllocationTrouble:
    """Why allocations could not be written, or read."""

    message: str
    passes: bool
    """Whether it mostly passes by itself: a server that does not answer, not one that refuses."""
    tries: int = 1
    """How often in a row."""


@dataclass(frozen=True, slots=True)
class Obstacles:
    """What the controller met beside the Services and allocations of a tenant."""

    problem: str = ""
    """Why MetalLB does not have its addresses; empty when it has, or was not asked yet."""
    problem_reason: LoadBalancerReason | None = None
    refusal: str = ""
    """Why MetalLB does not accept its configuration."""
    trouble: AllocationTrouble | None = None
    """What the management cluster did not do."""


@dataclass(frozen=True, slots=True)
class PoolChanges:
    """Addresses that came and went, and that the status does not tell of yet."""

    growth: PoolChange | None = None
    shrink: PoolChange | None = None


class LoadBalancerVerdict(NamedTuple):
    """What the condition says."""

    holds: bool
    reason: LoadBalancerReason
    message: str
    passes: bool = False
    """Whether this mostly passes by itself within a moment."""


def unreachable(why: str) -> LoadBalancerVerdict:
    """It is unknown how things stand on the tenant, and nothing of it is given back meanwhile."""
    message = f"the tenant cannot be reached, and keeps all addresses that it has: {why}"
    return LoadBalancerVerdict(False, LoadBalancerReason.TENANT_UNREACHABLE, message, passes=True)


def verdict(
    found: Usage,
    obstacles: Obstacles,
    short: Short | None,
    services: Sequence[Balancer] = (),
    *,
    paused: bool = False,
    foreign: Sequence[int] = (),
) -> LoadBalancerVerdict:
    """How things stand, the worst first."""
    said = _problem(obstacles) or _trouble(found, obstacles.trouble) or _waiting(found, short, paused=paused)
    deleted = deleted_in_words(found, services)
    if said is None and not found.going and foreign:
        return LoadBalancerVerdict(False, LoadBalancerReason.FOREIGN_ADDRESSES, foreign_in_words(foreign, services))
    if said is None and not found.going:
        message = "MetalLB has exactly the tenant's addresses, and no Service waits"
        return LoadBalancerVerdict(True, LoadBalancerReason.IN_STEP, message)
    if said is None:
        return LoadBalancerVerdict(False, LoadBalancerReason.DELETION_WAITS, deleted, passes=not _used(found.going))
    return said._replace(message=f"{said.message}; {deleted}") if deleted else said


def _problem(obstacles: Obstacles) -> LoadBalancerVerdict | None:
    if obstacles.problem:
        worst = obstacles.problem_reason or LoadBalancerReason.NOT_READY
        message = f"the tenant's MetalLB does not have its addresses: {obstacles.problem}"
        return LoadBalancerVerdict(False, worst, message, passes=worst is LoadBalancerReason.CONTESTED)
    if obstacles.refusal:
        message = f"MetalLB does not accept its configuration and goes on with an older one: {obstacles.refusal}"
        return LoadBalancerVerdict(False, LoadBalancerReason.REFUSED, message)
    return None


def _trouble(found: Usage, trouble: AllocationTrouble | None) -> LoadBalancerVerdict | None:
    """What the management cluster did not do."""
    if trouble is None:
        return None
    waiting = f"{waiting_in_words(found.waiting)}: " if found.waiting else ""
    message = f"{waiting}IPAllocations cannot be read or written: {trouble.message}"
    return LoadBalancerVerdict(False, LoadBalancerReason.ALLOCATIONS_NOT_WRITTEN, message, passes=trouble.passes)


def _waiting(found: Usage, short: Short | None, *, paused: bool) -> LoadBalancerVerdict | None:
    """Why Services wait."""
    if paused and found.demand:
        message = f"{waiting_in_words(found.waiting)}, and the cluster is left as it is, by spec.paused"
        return LoadBalancerVerdict(False, LoadBalancerReason.PAUSED, message, passes=True)
    if short is not None:
        return LoadBalancerVerdict(False, short.reason, short.message)
    if found.demand > found.free:
        message = f"{waiting_in_words(found.waiting)}; {found.under_way} more addresses are on their way"
        return LoadBalancerVerdict(False, LoadBalancerReason.GROWING, message, passes=True)
    if found.demand:
        message = (
            f"{waiting_in_words(found.waiting)} although {found.free} are free: MetalLB's controller on the tenant does"
            " not hand them out"
        )
        return LoadBalancerVerdict(False, LoadBalancerReason.SERVICES_WAITING, message, passes=True)
    return None


def foreign_in_words(foreign: Sequence[int], services: Sequence[Balancer]) -> str:
    """Which Services show addresses that the tenant does not hold, and what comes of it."""
    texts = set(as_told(foreign))
    users = [service for service in services if texts & set(service.addresses)]
    who = in_words(users) if users else f"until a moment ago ({', '.join(sorted(texts))})"
    return (
        f"Services show addresses of pools that the tenant does not hold: {who}; no pool hands them out meanwhile."
        " Remove the addresses from the tenant's own MetalLB pools, or allocate them to the tenant"
    )


def deleted_in_words(found: Usage, services: Sequence[Balancer]) -> str:
    """What becomes of blocks whose allocations were deleted; those in use first."""
    said = []
    for block in sorted(found.going, key=lambda block: not block.claimed):
        users = users_of(block, services)
        stays = f"is used by {in_words(users)}" if users else "is being taken back"
        said.append(f"{named(block)} was deleted and {stays}")
    return "; ".join(said)


def _used(blocks: Iterable[HeldBlock]) -> bool:
    return any(block.claimed for block in blocks)


def figures_of(
    found: Usage, old: LoadBalancerUse | None, changes: PoolChanges, foreign: Sequence[int] = ()
) -> LoadBalancerUse:
    """The figures."""
    return LoadBalancerUse(
        held=found.held,
        in_use=found.in_use,
        idle=found.held - found.in_use,
        services=found.services,
        platform_services=found.platform_services,
        waiting_services=len(found.waiting),
        foreign_addresses=as_told(foreign),
        last_growth=changes.growth or (old.last_growth if old else None),
        last_shrink=changes.shrink or (old.last_shrink if old else None),
    )


def new_status(
    cluster: TenantCluster, said: LoadBalancerVerdict | None, figures: LoadBalancerUse | None, now: datetime
) -> TenantClusterStatus:
    """The cluster's status with what is ours in it; None leaves as it is what was said before."""
    status = cluster.status
    if figures is not None:
        status = msgspec.structs.replace(status, load_balancers=figures)
    if said is None:
        return status
    conditions = with_condition(
        status.conditions,
        type=ConditionType.LOAD_BALANCERS_READY,
        status=said.holds,
        reason=said.reason,
        message=said.message[:LONGEST_MESSAGE],
        now=now,
        observed_generation=cluster.metadata.generation,
    )
    return msgspec.structs.replace(status, conditions=conditions)


def without_load_balancers(status: TenantClusterStatus) -> TenantClusterStatus:
    """The status of a cluster that has no load-balancer addresses of ours."""
    others = tuple(condition for condition in status.conditions if condition.type != ConditionType.LOAD_BALANCERS_READY)
    if len(others) == len(status.conditions) and status.load_balancers is None:
        return status
    return msgspec.structs.replace(status, conditions=others, load_balancers=None)


def says_otherwise(old: TenantClusterStatus, new: TenantClusterStatus) -> bool:
    """Whether the condition says something else, not only in other words."""
    return _condition(old) != _condition(new)


def is_news(old: TenantClusterStatus, new: TenantClusterStatus) -> bool:
    """Whether addresses came or went."""
    return _changes(old.load_balancers) != _changes(new.load_balancers)


def shows_more(old: TenantClusterStatus, new: TenantClusterStatus) -> bool:
    """Whether pools have more addresses to keep back, because Services show them."""
    before = old.load_balancers.foreign_addresses if old.load_balancers else ()
    after = new.load_balancers.foreign_addresses if new.load_balancers else ()
    return not set(after) <= set(before)


def _condition(status: TenantClusterStatus) -> tuple[object, ...] | None:
    found = find_condition(status.conditions, ConditionType.LOAD_BALANCERS_READY)
    return (found.status, found.reason) if found else None


def _changes(figures: LoadBalancerUse | None) -> tuple[object, ...] | None:
    return (figures.held, figures.foreign_addresses, figures.last_growth, figures.last_shrink) if figures else None
