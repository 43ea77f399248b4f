"""What to ask for when Services wait, and from which pool. Pure.

What is missing is what the Services that wait need, less the free addresses that the tenant holds, less what has been
asked for already: nothing is asked for twice. A step is at least the provider's increment, cut to what the tenant's
quota leaves. It comes from the first pool, by priority, that has a run long enough. Where none has, comfort gives way:
only what is needed now is asked for, if need be in pieces, because MetalLB takes any number of ranges. Where nothing
is free at all, a request for what is needed waits in the first pool, in line with all others, and is met there as soon
as there is room.

An address is free when no Service has it. MetalLB may see that otherwise: a Service that is deleted while it starts can
keep its address in MetalLB's memory for good. Such an address is as good as none for Services that wait.

A request that waits is given up when it is not needed any more, or when another pool has room.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from butler.api.conditions import find_condition
from butler.api.ipallocation import IPAllocationPhase
from butler.api.labels import ConditionType, LoadBalancerReason
from butler.rules.loadbalancer.usage import asked_count, is_growth
from butler.rules.pool.room import can_hold, why_not

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from butler.api.ipallocation import IPAllocation
    from butler.api.networkpool import NetworkPool
    from butler.rules.loadbalancer.policy import LoadBalancerPolicy
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.usage import Usage

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Ask:
    """So many addresses in one run, from a pool."""

    pool: str
    count: int


class Short(NamedTuple):
    """Why Services will have to wait, as a condition says it."""

    reason: LoadBalancerReason
    message: str


@dataclass(frozen=True, slots=True)
class Growth:
    """What to do so that every Service can have an address."""

    ask: tuple[Ask, ...] = ()
    drop: tuple[IPAllocation, ...] = ()
    """Requests to give up; what they were for is asked for anew, if at all, when they are gone."""
    short: Short | None = None
    because: str = ""
    """Why there is something to ask for, for people."""


ENOUGH = Growth()


def grow(found: Usage, policy: LoadBalancerPolicy, pools: Mapping[str, NetworkPool], lost: int = 0) -> Growth:
    """What is missing, and where it could come from; `lost` are free addresses that MetalLB will not hand out."""
    free = max(0, found.free - lost)
    wanted = max(0, found.demand - free) if policy.elastic else 0
    drop = _not_needed(found, policy, wanted) or _misplaced(found, policy, pools)
    if drop:
        return Growth(drop=drop)
    if found.demand > found.free and not (policy.elastic and policy.pools):
        return Growth(short=_fixed(found, policy))
    missing = wanted - found.under_way
    if missing <= 0:
        return Growth(short=_refused(found, policy, pools) if wanted else None)
    room = missing if policy.most is None else policy.most - found.held - found.under_way
    if room <= 0:
        return Growth(short=_over_quota(found, policy))
    step = max(policy.increment, missing)
    if policy.most is not None:
        step = min(step, room)
    short = _over_quota(found, policy) if step < missing else None
    because = f"{waiting_in_words(found.waiting)}, and {free} of {found.held} addresses are free"
    if lost:
        because += f" ({lost} that no Service has are in use by MetalLB's count)"
    return Growth(_place(step, min(step, missing), policy, pools), short=short, because=because)


def _place(step: int, missing: int, policy: LoadBalancerPolicy, pools: Mapping[str, NetworkPool]) -> tuple[Ask, ...]:
    for count in (step, missing):
        for name in policy.pools:
            if can_hold(pools.get(name), count):
                return (Ask(name, count),)
    pieces, left = [], missing
    for name in policy.pools:
        longest = longest_run(pools.get(name))
        if longest and left:
            pieces.append(Ask(name, min(longest, left)))
            left -= pieces[-1].count
    if pieces:
        # What is still missing is asked for when these are granted, and the pool says what is left.
        return tuple(pieces)
    return (Ask(next((name for name in policy.pools if name in pools), policy.pools[0]), missing),)


def longest_run(pool: NetworkPool | None) -> int:
    """How many addresses a pool can give at once, as far as it says."""
    return (pool.status.largest_free_block or 0) if pool is not None and can_hold(pool, 1) else 0


# Requests that wait.


def _not_needed(found: Usage, policy: LoadBalancerPolicy, wanted: int) -> tuple[IPAllocation, ...]:
    """Requests that can go, the youngest first, as far as the others are enough."""
    going, under_way = [], found.under_way
    for request in reversed(found.requests):
        count = asked_count(request)
        over = policy.most is not None and found.held + under_way > policy.most
        enough = under_way - count >= wanted
        if is_growth(request) and (enough or over) and found.held + under_way - count >= policy.least:
            going.append(request)
            under_way -= count
    return tuple(going)


def _misplaced(found: Usage, policy: LoadBalancerPolicy, pools: Mapping[str, NetworkPool]) -> tuple[IPAllocation, ...]:
    """A request that was refused where it is, and could be met elsewhere or in pieces; one at a time."""
    movable = (
        request
        for request in found.requests
        if is_growth(request)
        and request.status.phase is IPAllocationPhase.FAILED
        and found.held + found.under_way - asked_count(request) >= policy.least
        and _could_be_met(request, policy, pools)
    )
    return tuple(itertools.islice(movable, 1))


def _could_be_met(request: IPAllocation, policy: LoadBalancerPolicy, pools: Mapping[str, NetworkPool]) -> bool:
    here, count = request.spec.pool_ref.name, asked_count(request)
    if here not in policy.pools:
        return True
    if can_hold(pools.get(here), count):
        return False  # its pool grants it in a moment
    return any(longest_run(pools.get(name)) for name in policy.pools)


def _refused(found: Usage, policy: LoadBalancerPolicy, pools: Mapping[str, NetworkPool]) -> Short | None:
    """Why what was asked for does not come."""
    failed = [allocation for allocation in found.requests if allocation.status.phase is IPAllocationPhase.FAILED]
    if not failed:
        return None
    request = failed[0]
    here = request.spec.pool_ref.name
    ready = find_condition(request.status.conditions, ConditionType.READY)
    others = "".join(f"; pool {name} {why_not(pools.get(name))}" for name in policy.pools if name != here)
    why = f"pool {here}: {ready.message if ready else 'refused without a word'}{others}"
    return Short(LoadBalancerReason.POOL_EXHAUSTED, f"{waiting_in_words(found.waiting)}: {why}")


def _over_quota(found: Usage, policy: LoadBalancerPolicy) -> Short:
    return Short(
        LoadBalancerReason.QUOTA_REACHED,
        f"{waiting_in_words(found.waiting)}: the tenant holds {found.held} load-balancer addresses,"
        f" and may hold {policy.most} (quotaPerTenant.maxLoadBalancerIPs)",
    )


def _fixed(found: Usage, policy: LoadBalancerPolicy) -> Short:
    why = "no pool of the provider is for load balancers" if policy.elastic else policy.fixed
    return Short(
        LoadBalancerReason.SERVICES_WAITING,
        f"{waiting_in_words(found.waiting)}, {found.free} of {found.held} addresses are free, and {why}",
    )


def waiting_in_words(waiting: Sequence[Balancer]) -> str:
    """`2 Services wait (shop/web, shop/mail)`."""
    named = ", ".join(f"{service.namespace}/{service.name}" for service in sorted(waiting)[:MOST_NAMED])
    more = ", …" if len(waiting) > MOST_NAMED else ""
    verb = "Service waits" if len(waiting) == 1 else "Services wait"
    return f"{len(waiting)} {verb} for an address ({named}{more})"
