"""Telling a tenant's MetalLB which addresses it has.

The order is what makes it safe, whatever others do: the pool is read first, then every allocation that would be added
is read afresh from the management cluster (or recorded there, which tells as much: see `ipallocation.record`), and the
write is valid only for the pool as it was read. Who takes a range back marks its allocation first, withdraws the range,
and only then releases it. So either we see the mark, or the withdrawal comes after our write, or our write is refused.
Nor is anything dropped that our view does not know of, because it lags behind: a Service may have it by now. A range
that is marked is never added; one that is in the pool and marked may stay, because its drain will take it out.

A pool that is not there has no version that a write could be bound to. It is therefore made so that it hands out
nothing, and turned on when the allocations have been read once more.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation, LoadBalancerReason
from butler.api.tenantcluster import PoolChange
from butler.controllers.loadbalancers.next_look import AT_ONCE, ON_CHANGE, NextLook, pause
from butler.ipam.addresses import Family, range_text
from butler.kube.kinds import CLUSTERS
from butler.rules.loadbalancer.usage import granted_range
from butler.tenant.metallb import ApplyOutcome, Published, addresses, publish, read
from butler.tenant.metallb_health import can_hand_out, read_sign

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Container, Iterable, Sequence
    from datetime import datetime

    from butler.api.ipallocation import IPAllocation
    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.controllers.loadbalancers.look import Look
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.controllers.loadbalancers.states import TenantStates
    from butler.ipam.addresses import Range
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.service import Balancer
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import HeldBlock, Usage
    from butler.tenant.metallb import MetalLBStanding
    from butler.tenant.metallb_health import Sign

    Read = Callable[[IPAllocation], Awaitable[IPAllocation | None]]
    """How an allocation is asked for afresh."""

GREW: Final = "LoadBalancerGrowth"
DRIFT_CORRECTED: Final = "MetalLBDriftCorrected"
REFUSED: Final = "MetalLBRefused"
ASKED_FOR: Final = "the cluster asks for more (spec.networking.lbPoolSize)"
"""Why addresses came that no Service waited for."""
LONGEST_REASON: Final = 1024
LONGEST_PROBLEM: Final = 500
TRIES: Final = 5
"""How often in a row a pool is written that others write too: MetalLB itself does, with every Service."""
CHANCE: Final = 2.9
"""Seconds that MetalLB gets to hand out a free address, before it is asked whether it will. A little less than what
Services that wait get before the status tells of them: then there is a look in any case."""
BEHIND: Final = "the tenant has addresses that were granted a moment ago; looking again"
_REASONS: Final = {
    ApplyOutcome.NOT_INSTALLED: LoadBalancerReason.NOT_INSTALLED,
    ApplyOutcome.NOT_READY: LoadBalancerReason.NOT_READY,
    ApplyOutcome.REFUSED: LoadBalancerReason.REFUSED,
    ApplyOutcome.CONTESTED: LoadBalancerReason.CONTESTED,
}


def entry(block: HeldBlock) -> str:
    """A block as it stands in MetalLB's pool."""
    return _text(block.range)


def _text(held: Range) -> str:
    return addresses([held])[0]


def publishable(blocks: Iterable[HeldBlock], there: Container[str]) -> list[HeldBlock]:
    """What MetalLB's pool should hold, in the order in which it hands out, given the entries that it holds.

    A block whose allocation was deleted comes last, and is not added any more once no Service uses it.
    """
    stay = [block for block in blocks if not block.is_going or block.claimed or entry(block) in there]
    return sorted(stay, key=lambda block: (block.is_going, block.range))


def split(blocks: Iterable[HeldBlock]) -> tuple[list[Range], list[Range]]:
    """Those that are handed out first, and last."""
    known = list(blocks)
    return [block.range for block in known if not block.is_going], [block.range for block in known if block.is_going]


@dataclass(slots=True)
class PublishedPool:
    """What MetalLB on one tenant was told, and what it answered. `Publisher` alone changes it."""

    entries: tuple[str, ...] | None = None
    """What its pool held when it was last told, in order; None before that."""
    hands_out: bool = True
    """Whether it was told to give addresses to Services that come."""
    in_drain: bool | None = None
    """Whether its pool carries the mark of a drain; None before it was asked."""
    published_at: float | None = None
    """When it was last seen to have what it should have, its advertisement included."""
    problem: str | None = None
    """Why it does not have its addresses: empty when it has; None before it was asked."""
    problem_reason: LoadBalancerReason | None = None
    tries: int = 0
    """How often in a row it could not be told."""
    refusal: str = ""
    """Why it does not accept its configuration."""
    sign_due: float = math.inf
    """When to look whether it accepts its configuration."""
    announced: set[str] = field(default_factory=set)
    """The allocations that were published, by UID; one that comes back after a drain was broken off is no growth."""
    shown: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses that each Service has, by its UID."""
    doubt: bool = False
    """Whether something happened to a Service that MetalLB would not do with the pool that it was told, or a person
    asked for a look."""
    asked: str = ""
    """What the cluster's annotation for that said when it was last heeded."""
    in_vain: float | None = None
    """Since when Services wait though there are free addresses for all of them."""
    lost: int = 0
    """How many addresses that no Service has MetalLB takes for used, by its own count, while Services wait in vain."""


class Publisher:
    """Publishes. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        ledger: Ledger,
        events: EventRecorder,
        metrics: LoadBalancerMetrics,
        settings: LoadBalancerSettings,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._events = events
        self._metrics = metrics
        self._settings = settings
        self._clock = clock
        self._monotonic = monotonic

    def saw(self, found: Usage, services: Sequence[Balancer], pool: PublishedPool) -> None:
        """Take in what became of Services, and forget allocations that are gone."""
        shown = {service.uid: service.addresses for service in services}
        gained = {address for uid, now in shown.items() for address in now if address not in pool.shown.get(uid, ())}
        lost = any(uid in shown and not set(before) <= set(shown[uid]) for uid, before in pool.shown.items())
        pool.doubt = pool.doubt or lost or not found.holds(gained)
        pool.shown = shown
        pool.announced &= {block.uid for block in found.blocks}

    async def keep_in_step(self, look: Look, found: Usage, states: TenantStates) -> NextLook:
        """See to it that MetalLB has what it should have; without a request where nothing speaks against it."""
        pool, check = states.pool, self._next_check(look.cluster, states.pool)
        asked, hands_out = asked_to_look(look.cluster), found.hands_out(more_comes=not states.look.is_short)
        pool.doubt = pool.doubt or asked != pool.asked
        pool.asked = asked
        if _is_as_told(found, pool, hands_out=hands_out) and not pool.doubt and not check.is_due:
            return check
        for _ in range(TRIES):
            standing = await read(look.tenant)
            blocks = publishable(found.blocks, standing.addresses)
            published = await self.put(look, standing, blocks, states, auto_assign=hands_out)
            if published.outcome is not ApplyOutcome.CONTESTED:
                break
        if pool.problem:
            return pause(pool.tries)
        if published.outcome is ApplyOutcome.WRITTEN:
            pool.sign_due = self._monotonic() + self._settings.settle
            return NextLook(self._settings.settle)
        await self.ask_for_sign(look.tenant, pool)
        return self._next_check(look.cluster, pool)

    async def end_drain(self, look: Look, found: Usage, states: TenantStates, *, was_marked: bool) -> NextLook:
        """Make MetalLB hand out addresses again if a drain keeps it from that; nothing else."""
        pool = states.pool
        if was_marked:
            pool.in_drain = True
        elif pool.in_drain is None:
            pool.in_drain = (await read(look.tenant)).is_in_drain
        if not pool.in_drain:
            return ON_CHANGE
        pool.doubt = True
        await self.keep_in_step(look, found, states)
        return pause(pool.tries) if pool.problem else ON_CHANGE

    def failed(self, why: str, pool: PublishedPool) -> NextLook:
        """MetalLB could not be asked, or told; when to try again."""
        pool.problem, pool.problem_reason = why[:LONGEST_PROBLEM], LoadBalancerReason.TENANT_UNREACHABLE
        pool.published_at = None  # only the next look, by asking, can tell that all is well
        pool.tries += 1
        return pause(pool.tries)

    async def ask_for_sign(self, tenant: Client, pool: PublishedPool) -> Sign:
        """Ask whether MetalLB accepts its configuration."""
        sign = await read_sign(tenant)
        pool.refusal = sign.refused
        return sign

    async def ask_if_due(self, tenant: Client, pool: PublishedPool, *, waits_in_vain: bool) -> None:
        """The same, where a refusal is known, or likely, or a write has had time to settle."""
        if pool.refusal or waits_in_vain or self._monotonic() >= pool.sign_due:
            await self.ask_for_sign(tenant, pool)
            pool.sign_due = math.inf

    async def look_for_lost(self, tenant: Client, found: Usage, pool: PublishedPool) -> None:
        """Where Services wait in vain: ask how many of the free addresses MetalLB itself takes for free."""
        if not 0 < found.demand <= found.free:
            pool.in_vain, pool.lost = None, 0
            return
        now = self._monotonic()
        pool.in_vain = now if pool.in_vain is None else pool.in_vain
        if now - pool.in_vain < CHANCE:
            return
        pool.doubt = True
        standing = await read(tenant)
        there = [block for block in found.blocks if entry(block) in standing.addresses]
        left = can_hand_out(standing.pool, sum(block.range.size for block in there))
        if left is not None:
            pool.lost = max(0, sum(block.free for block in there) - left)

    async def put(
        self,
        look: Look,
        standing: MetalLBStanding,
        blocks: Sequence[HeldBlock],
        states: TenantStates,
        *,
        leaving: Sequence[HeldBlock] = (),
        auto_assign: bool = True,
        drained_by: str = "",
    ) -> Published:
        """Make exactly these blocks the tenant's pool, if it is still as it was read; new ones only if they stay.

        `leaving` are those that it is meant to lose. Any other entry that is not known goes only if the management
        cluster, asked now, does not say that it is the tenant's.
        """
        cluster, tenant, pool = look.cluster, look.tenant, states.pool
        there = set(standing.addresses)
        unknown = there - {entry(block) for block in (*blocks, *leaving)}
        if unknown and unknown & {_text(held) for held in await self._ledger.held_by(cluster)}:
            return Published(ApplyOutcome.CONTESTED, message=BEHIND)
        new = [block for block in blocks if entry(block) not in there]
        # A tenant's first pool is when its addresses are first used: by then they are on record.
        added = await self._still_held(new, self._ledger.read_and_record if standing.pool is None else None)
        kept = [block for block in blocks if entry(block) in there]
        first, last = split((*kept, *added))
        published = await publish(
            tenant,
            standing,
            first,
            last=last,
            auto_assign=auto_assign and (standing.pool is not None or not added),
            drained_by=drained_by,
        )
        if auto_assign and standing.pool is None and published.pool is not None and published.is_current:
            added = await self._still_held(added)
            made = replace(standing, pool=published.pool)
            first, last = split(added)
            published = await publish(tenant, made, first, last=last, drained_by=drained_by)
        self._tell(cluster, standing, published, added, states)
        complete = published.is_current and len(added) == len(new)
        pool.problem = "" if complete else published.message or f"{published.outcome}"
        pool.problem_reason = None if complete else _REASONS.get(published.outcome, LoadBalancerReason.CONTESTED)
        pool.tries = 0 if complete else pool.tries + 1
        # A pool that is held back for a drain is not as it should be in the end.
        pool.published_at = self._monotonic() if complete and not drained_by else None
        pool.doubt = pool.doubt and not complete
        if published.is_current:
            pool.entries = tuple(map(entry, publishable((*kept, *added), there)))
            pool.hands_out, pool.in_drain = auto_assign, bool(drained_by)
        return published

    async def _still_held(self, blocks: Sequence[HeldBlock], read: Read | None = None) -> list[HeldBlock]:
        """Those that the management cluster, asked now, says are the tenant's, and not on their way back."""
        ask = read or self._ledger.read
        fresh = await asyncio.gather(*(ask(block.allocation) for block in blocks))
        return [
            block
            for block, found in zip(blocks, fresh, strict=True)
            if found is not None
            and found.metadata.uid == block.uid
            and granted_range(found) == block.range
            and found.status.draining_since is None
        ]

    def _next_check(self, cluster: TenantCluster, pool: PublishedPool) -> NextLook:
        """When what was published has to be compared; each tenant a little sooner or later than the next."""
        if pool.published_at is None:
            return AT_ONCE
        spread = 0.75 + zlib.crc32(cluster.metadata.uid.encode()) % 512 / 1024
        return NextLook.within(pool.published_at + self._settings.check_every * spread - self._monotonic())

    def _tell(
        self,
        cluster: TenantCluster,
        standing: MetalLBStanding,
        published: Published,
        added: Sequence[HeldBlock],
        states: TenantStates,
    ) -> None:
        pool = states.pool
        if published.outcome is ApplyOutcome.REFUSED and pool.problem != published.message:
            self._events.record(cluster, CLUSTERS, REFUSED, published.message, "Warning")
        if published.outcome is not ApplyOutcome.WRITTEN:
            return
        drift = (*published.drift, *_vanished(standing, pool.entries))
        if drift:
            self._metrics.drift_corrected()
            self._events.record(cluster, CLUSTERS, DRIFT_CORRECTED, "; ".join(drift), "Warning")
        if drift and pool.entries is None:
            return  # what came and what another hand had taken out cannot be told apart
        grown = [block for block in added if block.may_go and block.uid not in pool.announced]
        pool.announced.update(block.uid for block in added)
        if grown:
            count = sum(block.range.size for block in grown)
            reason = _why(grown)
            states.status.grew(PoolChange(time=self._clock(), addresses=count, reason=reason))
            self._metrics.grew(count)
            noun = "address" if count == 1 else "addresses"
            message = f"{count} {noun} added ({_ranges(grown)}): {reason}"
            self._events.record(cluster, CLUSTERS, GREW, message)


def _is_as_told(found: Usage, pool: PublishedPool, *, hands_out: bool) -> bool:
    """Whether MetalLB was told exactly what it should have."""
    if pool.entries is None:
        return False
    wanted = tuple(map(entry, publishable(found.blocks, pool.entries)))
    return pool.entries == wanted and pool.hands_out == hands_out


def asked_to_look(cluster: TenantCluster) -> str:
    """What the cluster's annotation says that asks for a look."""
    return cluster.metadata.annotations.get(Annotation.LOOK_AGAIN, "")


def _vanished(standing: MetalLBStanding, entries: tuple[str, ...] | None) -> list[str]:
    """What is not there though it was published: it was deleted there."""
    pool = ["IPAddressPool default-pool was deleted"] if entries and standing.pool is None else []
    announced = entries is None or standing.advertisement is not None
    return pool if announced else [*pool, "L2Advertisement default was deleted"]


def _why(blocks: Iterable[HeldBlock]) -> str:
    said = (block.allocation.metadata.annotations.get(Annotation.REASON, "") for block in blocks)
    return "; ".join(dict.fromkeys(reason or ASKED_FOR for reason in said))[:LONGEST_REASON]


def _ranges(blocks: Iterable[HeldBlock]) -> str:
    return ", ".join(
        f"{range_text(block.range, Family.V4)} from pool {block.allocation.spec.pool_ref.name}" for block in blocks
    )
