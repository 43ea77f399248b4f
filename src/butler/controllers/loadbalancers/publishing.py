"""Telling a tenant's MetalLB which addresses it has.

The order is what makes it safe, whoever else is at work: the pool is read first, then every allocation that would be
added is read afresh from the management cluster, and the write is valid only for the pool as it was read. Who takes a
range back marks its allocation first, withdraws the range, and only then releases it. So either we see the mark, or
the withdrawal comes after our write, or our write is refused. Nor is anything dropped that our view does not know of,
because it lags behind: a Service may have it by now. A range that is marked is never added; one that is in the
pool and marked may stay, because its drain will take it out.

A pool that is not there has no version that a write could be bound to. It is therefore made so that it hands out
nothing, and turned on when the allocations have been read once more.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from butler.api.labels import Annotation, LoadBalancerReason
from butler.api.tenantcluster import PoolChange
from butler.ipam.addresses import Family, range_text
from butler.kube.kinds import CLUSTERS
from butler.rules.loadbalancer.usage import granted_range
from butler.tenant.metallb import Outcome, Published, addresses, publish

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Sequence
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.controllers.loadbalancers.memory import Memory
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.ipam.addresses import Range
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.usage import Block
    from butler.tenant.metallb import Standing

GREW: Final = "LoadBalancerGrowth"
DRIFT_CORRECTED: Final = "MetalLBDriftCorrected"
REFUSED: Final = "MetalLBRefused"
ASKED_FOR: Final = "the cluster asks for more (spec.networking.lbPoolSize)"
"""Why addresses came that no Service waited for."""
LONGEST_REASON: Final = 1024
BEHIND: Final = "the tenant has addresses that were granted a moment ago; looking again"
_REASONS: Final = {
    Outcome.NOT_INSTALLED: LoadBalancerReason.NOT_INSTALLED,
    Outcome.NOT_READY: LoadBalancerReason.NOT_READY,
    Outcome.REFUSED: LoadBalancerReason.REFUSED,
    Outcome.CONTESTED: LoadBalancerReason.CONTESTED,
}


def entry(block: Block) -> str:
    """A block as it stands in MetalLB's pool."""
    return _text(block.range)


def _text(held: Range) -> str:
    return addresses([held])[0]


def publishable(blocks: Iterable[Block], there: Container[str]) -> list[Block]:
    """What MetalLB's pool should hold, in the order in which it hands out, given the entries that it holds.

    A block whose allocation was deleted comes last, and is not added any more once no Service uses it.
    """
    stay = [block for block in blocks if not block.is_going or block.claimed or entry(block) in there]
    return sorted(stay, key=lambda block: (block.is_going, block.range))


def split(blocks: Iterable[Block]) -> tuple[list[Range], list[Range]]:
    """Those that are handed out first, and last."""
    known = list(blocks)
    return [block.range for block in known if not block.is_going], [block.range for block in known if block.is_going]


class Publishing:
    """Publishes. `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        ledger: Ledger,
        events: EventRecorder,
        metrics: LoadBalancerMetrics,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._events = events
        self._metrics = metrics
        self._clock = clock
        self._monotonic = monotonic

    async def put(
        self,
        cluster: TenantCluster,
        tenant: Client,
        standing: Standing,
        blocks: Sequence[Block],
        memory: Memory,
        *,
        leaving: Sequence[Block] = (),
        auto_assign: bool = True,
        drained_by: str = "",
    ) -> Published:
        """Make exactly these blocks the tenant's pool, if it is still as it was read; new ones only if they stay.

        `leaving` are those that it is meant to lose. Any other entry that is not known goes only if the management
        cluster, asked now, does not say that it is the tenant's.
        """
        there = set(standing.addresses)
        unknown = there - {entry(block) for block in (*blocks, *leaving)}
        if unknown and unknown & {_text(held) for held in await self._ledger.held_by(cluster)}:
            return Published(Outcome.CONTESTED, message=BEHIND)
        new = [block for block in blocks if entry(block) not in there]
        added = await self._still_held(new)
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
        self._tell(cluster, standing, published, added, memory)
        complete = published.is_current and len(added) == len(new)
        memory.problem = "" if complete else published.message or f"{published.outcome}"
        memory.problem_reason = None if complete else _REASONS.get(published.outcome, LoadBalancerReason.CONTESTED)
        memory.tries = 0 if complete else memory.tries + 1
        # A pool that is held back for a drain is not as it should be in the end.
        memory.published_at = self._monotonic() if complete and not drained_by else None
        memory.doubt = memory.doubt and not complete
        if published.is_current:
            memory.entries = tuple(map(entry, publishable((*kept, *added), there)))
            memory.hands_out, memory.in_drain = auto_assign, bool(drained_by)
        return published

    async def _still_held(self, blocks: Sequence[Block]) -> list[Block]:
        """Those that the management cluster, asked now, says are the tenant's, and not on their way back."""
        fresh = await asyncio.gather(*(self._ledger.read(block.allocation) for block in blocks))
        return [
            block
            for block, found in zip(blocks, fresh, strict=True)
            if found is not None
            and found.metadata.uid == block.uid
            and granted_range(found) == block.range
            and found.status.draining_since is None
        ]

    def _tell(
        self,
        cluster: TenantCluster,
        standing: Standing,
        published: Published,
        added: Sequence[Block],
        memory: Memory,
    ) -> None:
        if published.outcome is Outcome.REFUSED and memory.problem != published.message:
            self._events.record(cluster, CLUSTERS, REFUSED, published.message, "Warning")
        if published.outcome is not Outcome.WRITTEN:
            return
        drift = (*published.drift, *_vanished(standing, memory.entries))
        if drift:
            self._metrics.drift_corrected()
            self._events.record(cluster, CLUSTERS, DRIFT_CORRECTED, "; ".join(drift), "Warning")
        if drift and memory.entries is None:
            return  # what came and what somebody had taken out cannot be told apart
        grown = [block for block in added if block.may_go and block.uid not in memory.announced]
        memory.announced.update(block.uid for block in added)
        if grown:
            count = sum(block.range.size for block in grown)
            reason = _why(grown)
            memory.last_growth = PoolChange(time=self._clock(), addresses=count, reason=reason)
            self._metrics.grew(count)
            noun = "address" if count == 1 else "addresses"
            message = f"{count} {noun} added ({_ranges(grown)}): {reason}"
            self._events.record(cluster, CLUSTERS, GREW, message)


def _vanished(standing: Standing, entries: tuple[str, ...] | None) -> list[str]:
    """What is not there though it was published: somebody deleted it."""
    pool = ["IPAddressPool default-pool was deleted"] if entries and standing.pool is None else []
    announced = entries is None or standing.advertisement is not None
    return pool if announced else [*pool, "L2Advertisement default was deleted"]


def _why(blocks: Iterable[Block]) -> str:
    said = (block.allocation.metadata.annotations.get(Annotation.REASON, "") for block in blocks)
    return "; ".join(dict.fromkeys(text or ASKED_FOR for text in said))[:LONGEST_REASON]


def _ranges(blocks: Iterable[Block]) -> str:
    return ", ".join(
        f"{range_text(block.range, Family.V4)} from pool {block.allocation.spec.pool_ref.name}" for block in blocks
    )
