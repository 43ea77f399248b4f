"""Taking addresses back, without ever moving a Service.

MetalLB takes the address away from a Service when it leaves the pool. So a block goes in steps, each of which can be
broken off, repeated, or finished by another process:

1. its allocation is marked: from now on nobody adds it to a pool;
2. MetalLB's pool hands out no address for a moment (`autoAssign: false`); Services that have one keep it;
3. when MetalLB has had time to take that in, the pool is read and then all Services are listed afresh. If one has or
   asks for an address of the block, or any Service waits that could have one, the drain is broken off: the mark goes,
   and then all is published as before;
4. else the pool is written without the block, handing out addresses again, valid only for the pool as it was read;
5. when that is confirmed and has had time to settle, Services are listed once more, for one that asked for an address
   of the block by name in between: then it gets the block back;
6. else the allocation is released, valid only for the version that carries the mark.

Every drain writes the pool after the mark, if only a token that is new each time: when it begins (2), and before it
ends, should the block be out of the pool by somebody else's hand. So whoever read the pool before, and was paused
since, finds its write refused; and whoever reads it later sees the mark.

Two kinds of blocks go this way: what was added for demand and was idle for long, and what a person deleted. The
second ones are never handed out to Services that wait: they are no reason to break off.

Where MetalLB shows whether it has taken in a change (`butler.tenant.metallb_health`), steps 3 and 5 wait for that, not
only for time to pass; and where it says that it refuses its configuration, nothing is taken back. A MetalLB that hangs
would otherwise still hand out addresses from memory that are another tenant's by then.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from butler.api.tenantcluster import PoolChange
from butler.controllers.loadbalancers.publishing import entry, publishable, split
from butler.ipam.addresses import Family, range_text
from butler.kube.kinds import CLUSTERS
from butler.rules.allocation.release import DELETED_BY_REQUEST, Grounds
from butler.rules.loadbalancer.deletion import DRAINING, deleting
from butler.rules.loadbalancer.usage import hands_out, survey
from butler.tenant.metallb import Outcome, address_pool, differs, read
from butler.tenant.metallb_health import read_sign, size_seen
from butler.tenant.services import load_balancers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from butler.api.tenantcluster import TenantCluster
    from butler.controllers.loadbalancers.allocations import Ledger
    from butler.controllers.loadbalancers.memory import Memory
    from butler.controllers.loadbalancers.metrics import LoadBalancerMetrics
    from butler.controllers.loadbalancers.publishing import Publishing
    from butler.kube.client import Client
    from butler.kube.events import EventRecorder
    from butler.rules.loadbalancer.settings import LoadBalancerSettings
    from butler.rules.loadbalancer.usage import Block, Survey
    from butler.tenant.metallb import Standing

SHRANK: Final = "LoadBalancerShrink"
REST: Final = 30.0
"""Seconds before a drain that was broken off is tried again."""
SOON: Final = 1.0
AT_ONCE: Final = 0.05
A_SECOND: Final = 1.1
LONGEST_SETTLING: Final = 15.0
"""Seconds after which MetalLB is taken to be stuck: the drain is broken off, and Services can have addresses again."""


def _mark(block: Block, now: datetime) -> Mapping[str, Any]:
    """What is written when the drain of a block begins; all at once, because a later write would begin it anew."""
    said = {"conditions": deleting(block.allocation, DRAINING, now)} if block.is_going else {}
    return {"draining_since": now, **said}


class Draining:
    """Drains. `new_token` gives another text each time; `clock` gives the time of day, `monotonic` the other one."""

    def __init__(
        self,
        ledger: Ledger,
        publishing: Publishing,
        events: EventRecorder,
        metrics: LoadBalancerMetrics,
        settings: LoadBalancerSettings,
        new_token: Callable[[], str],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
    ) -> None:
        self._ledger = ledger
        self._publishing = publishing
        self._events = events
        self._metrics = metrics
        self._settings = settings
        self._new_token = new_token
        self._clock = clock
        self._monotonic = monotonic

    async def begin(self, blocks: Iterable[Block]) -> None:
        """Step 1."""
        now = self._clock()
        await asyncio.gather(*(self._ledger.mark(block.allocation, **_mark(block, now)) for block in blocks))

    async def break_off(self, blocks: Iterable[Block], memory: Memory) -> None:
        """The marks go, and with the next publishing all is as before."""
        await asyncio.gather(*(self._ledger.mark(block.allocation, draining_since=None) for block in blocks))
        memory.held_back = None
        memory.no_drain_before = self._monotonic() + min(REST, self._settings.grace.total_seconds())
        self._metrics.drain_broken_off()

    async def go_on(
        self, cluster: TenantCluster, tenant: Client, found: Survey, memory: Memory, served_class: str
    ) -> float:
        """Do the next step for the blocks that are marked; in how many seconds there is another one."""
        standing = await read(tenant)
        there = set(standing.addresses)
        inside = [block for block in found.draining if entry(block) in there]
        staying = publishable((block for block in found.blocks if not block.is_draining), there)
        if inside:
            return await self._take_out(cluster, tenant, standing, staying, inside, memory, served_class)
        if any(block.version not in memory.withdrawn for block in found.draining):
            return await self._stamp(cluster, tenant, standing, staying, found.draining, memory)
        return await self._give_back(cluster, tenant, standing, found, memory, served_class)

    async def _take_out(
        self,
        cluster: TenantCluster,
        tenant: Client,
        standing: Standing,
        staying: Sequence[Block],
        inside: Sequence[Block],
        memory: Memory,
        served_class: str,
    ) -> float:
        """Steps 2 to 4."""
        blocks = [*staying, *inside]
        first, last = split(blocks)
        wanted = address_pool(first, last=last, auto_assign=False, drained_by=memory.token)
        if memory.held_back is None or differs(wanted, standing.pool):
            return await self._hold_back(cluster, tenant, standing, blocks, memory)
        held_for = self._monotonic() - memory.held_back
        if held_for < self._settings.settle:
            return self._settings.settle - held_for
        sign, seen = await read_sign(tenant), size_seen(standing.pool)
        unread = sign.read_at is not None and sign.read_at == memory.read_at
        unseen = unread or (seen is not None and seen != sum(block.range.size for block in blocks))
        if unseen and not sign.refused and held_for < LONGEST_SETTLING:
            return SOON
        if unseen or sign.refused or await self._is_needed(tenant, blocks, inside, served_class):
            await self.break_off(inside, memory)
            return 0.0
        published = await self._publishing.put(
            cluster, tenant, standing, staying, memory, leaving=inside, auto_assign=hands_out(staying)
        )
        if not published.is_current:
            return AT_ONCE if published.outcome is Outcome.CONTESTED else SOON
        memory.held_back = None
        now = self._monotonic()
        memory.withdrawn.update({block.version: now for block in inside})
        return self._settings.settle

    async def _hold_back(
        self, cluster: TenantCluster, tenant: Client, standing: Standing, blocks: Sequence[Block], memory: Memory
    ) -> float:
        sign = await read_sign(tenant)
        memory.refusal = sign.refused
        if sign.refused:
            await self.break_off([block for block in blocks if block.is_draining], memory)
            return 0.0
        # It counts whole seconds: a change within this one would not show. Whoever wakes us earlier changes nothing.
        now = self._monotonic()
        if memory.steady is None or memory.steady[0] != sign.read_at:
            memory.steady = (sign.read_at, now)
        if sign.read_at is not None and now < memory.steady[1] + A_SECOND:
            return memory.steady[1] + A_SECOND - now
        # Should the answer be lost, the wait begins anew, and not at an earlier time.
        memory.held_back, memory.token = None, self._new_token()
        published = await self._publishing.put(
            cluster, tenant, standing, blocks, memory, auto_assign=False, drained_by=memory.token
        )
        if published.is_current:
            # Where it was so already, by another process, MetalLB does not read its pools again.
            was_so = standing.pool is not None and standing.pool.get("spec", {}).get("autoAssign") is False
            memory.held_back, memory.read_at = self._monotonic(), None if was_so else sign.read_at
            return self._settings.settle
        return AT_ONCE if published.outcome is Outcome.CONTESTED else SOON

    async def _stamp(
        self,
        cluster: TenantCluster,
        tenant: Client,
        standing: Standing,
        staying: Sequence[Block],
        outside: Sequence[Block],
        memory: Memory,
    ) -> float:
        """Write the pool, which lacks these blocks already: nobody who read it earlier can write it any more then."""
        memory.token = self._new_token()
        published = await self._publishing.put(
            cluster,
            tenant,
            standing,
            staying,
            memory,
            auto_assign=hands_out(staying),
            drained_by=memory.token,
        )
        # Where MetalLB is not there, nothing can be written, nor announced.
        if not published.is_current and published.outcome is not Outcome.NOT_INSTALLED:
            return AT_ONCE if published.outcome is Outcome.CONTESTED else SOON
        now = self._monotonic()
        memory.withdrawn.update({block.version: now for block in outside})
        return self._settings.settle

    async def _give_back(
        self,
        cluster: TenantCluster,
        tenant: Client,
        standing: Standing,
        found: Survey,
        memory: Memory,
        served_class: str,
    ) -> float:
        """Steps 5 and 6."""
        outside, now = found.draining, self._monotonic()
        out_for = now - max(memory.withdrawn[block.version] for block in outside)
        if out_for < self._settings.settle:
            return self._settings.settle - out_for
        sign, seen = await read_sign(tenant), size_seen(standing.pool)
        there = standing.addresses
        staying = publishable((block for block in found.blocks if not block.is_draining), there)
        unseen = seen is not None and seen != sum(block.range.size for block in staying)
        if unseen and not sign.refused and out_for < LONGEST_SETTLING:
            return SOON
        if unseen or sign.refused or await self._is_needed(tenant, outside, outside, served_class):
            await self.break_off(outside, memory)
            return 0.0
        for block in outside:
            await self._release(cluster, block, memory)
        return 0.0

    async def _is_needed(
        self, tenant: Client, blocks: Sequence[Block], going: Sequence[Block], served_class: str
    ) -> bool:
        """Whether a Service has or asks for one of the addresses that go, or waits in vain for any; asked afresh."""
        services = await load_balancers(tenant)
        fresh = survey([block.allocation for block in blocks], services, self._clock(), served_class)
        uids = {block.uid for block in going}
        return fresh.is_held_up or any(block.claimed for block in fresh.blocks if block.uid in uids)

    async def _release(self, cluster: TenantCluster, block: Block, memory: Memory) -> None:
        idle, count = block.allocation.status.idle_since, block.range.size
        which = "it" if count == 1 else "them"
        unused = (
            f"no Service has used {which} since {idle:%Y-%m-%d %H:%M:%S} UTC" if idle else f"no Service uses {which}"
        )
        if block.is_going:
            unused = f"its IPAllocation was deleted, and {unused}"
        await self._ledger.release(
            block.allocation, DELETED_BY_REQUEST if block.is_going else Grounds(unused, "released")
        )
        memory.last_shrink = PoolChange(
            time=self._clock(),
            addresses=count + (memory.last_shrink.addresses if memory.last_shrink else 0),
            reason=unused,
        )
        self._metrics.shrank(count)
        noun = "address" if count == 1 else "addresses"
        where = f"{range_text(block.range, Family.V4)} to pool {block.allocation.spec.pool_ref.name}"
        self._events.record(cluster, CLUSTERS, SHRANK, f"{count} {noun} given back ({where}): {unused}")
